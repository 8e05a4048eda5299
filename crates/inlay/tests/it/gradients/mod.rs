//! Compares gradients with central differences, to second order, eager and as programs.

mod rules;
mod tape;

use std::cell::RefCell;

use inlay::{DType, GradOptions, Program, Reduce, Result, Tensor, current_device};

use crate::support::Rng;

/// A function of tensors to differentiate.
type Function = Box<dyn Fn(&[Tensor]) -> Result<Tensor>>;

fn random(rng: &mut Rng, shape: &[usize]) -> Tensor {
    let count = shape.iter().product();
    // The numbers are distinct and not near zero, so that the small step of a difference does not
    // cross a tie or a change of sign.
    let order = rng.permutation(count);
    let sign = |rng: &mut Rng| if rng.chance(2) { 1.0 } else { -1.0 };
    let values: Vec<f64> =
        order.iter().map(|&k| sign(rng) * (0.5 + k as f64 / count as f64)).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

fn ints(values: &[i64]) -> Tensor {
    Tensor::from_slice(values, &[values.len()]).unwrap()
}

/// The loss: a weighted sum of the result. All weights are different.
fn loss(result: &Tensor) -> Result<Tensor> {
    let weights: Vec<f64> = (0..result.numel()).map(|k| 0.3 + (k as f64 * 0.7).sin()).collect();
    let weights = Tensor::from_slice(&weights, result.shape())?.cast(result.dtype())?;
    result.multiply(&weights)?.sum(None, false)
}

fn leaves(inputs: &[Tensor]) -> Vec<Tensor> {
    inputs.iter().map(|input| input.copy().unwrap().with_gradient().unwrap()).collect()
}

/// The gradients of the loss. They are recorded if they will be differentiated again.
fn gradients(f: &Function, inputs: &[Tensor], create_graph: bool) -> Result<Vec<Tensor>> {
    let options = GradOptions { create_graph, allow_unused: true, ..GradOptions::default() };
    let total = loss(&f(inputs)?)?;
    let found = Tensor::grad_of(&[&total], &inputs.iter().collect::<Vec<_>>(), &[], options)?;
    let zeros = |input: &Tensor| Tensor::zeros(input.shape(), input.dtype());
    found
        .into_iter()
        .zip(inputs)
        .map(|(grad, input)| grad.map_or_else(|| zeros(input), Ok))
        .collect()
}

/// Compares the gradients of `value` with central differences.
fn compare(
    name: &str,
    value: &dyn Fn(&[Tensor]) -> Result<f64>,
    inputs: &[Tensor],
    grads: &[Tensor],
) {
    let step = 1e-5;
    for (which, grad) in grads.iter().enumerate() {
        let grad = grad.to_vec::<f64>().unwrap();
        let start = inputs[which].to_vec::<f64>().unwrap();
        for k in 0..start.len() {
            let at = |change: f64| {
                let mut moved = start.clone();
                moved[k] += change;
                let mut inputs = inputs.to_vec();
                inputs[which] = Tensor::from_slice(&moved, inputs[which].shape()).unwrap();
                value(&inputs).unwrap()
            };
            let expected = (at(step) - at(-step)) / (2.0 * step);
            let close = (grad[k] - expected).abs() <= 1e-6 * (1.0 + expected.abs());
            assert!(close, "{name}: input {which} at {k}: {} and {expected}", grad[k]);
        }
    }
}

fn check(name: &str, inputs: Vec<Tensor>, f: Function) {
    let found = check_static(name, &inputs, &f);
    if seen(found) {
        // On the GPU, only the bits are compared with those of the CPU.
        return;
    }
    let leaves_of = leaves(&inputs);
    let grads = gradients(&f, &leaves_of, false).unwrap();
    let first = |inputs: &[Tensor]| Ok(loss(&f(inputs)?)?.to_vec::<f64>()?[0]);
    compare(name, &first, &inputs, &grads);

    // The second order is the gradient of a weighted sum of the gradients.
    let total = |inputs: &[Tensor], create: bool| -> Result<Tensor> {
        let grads = gradients(&f, inputs, create)?;
        let mut total = Tensor::zeros((), DType::F64)?;
        for grad in &grads {
            total = total.add(&loss(grad)?)?;
        }
        Ok(total)
    };
    let leaves_of = leaves(&inputs);
    let first_order = total(&leaves_of, true).unwrap();
    let options = GradOptions { allow_unused: true, ..GradOptions::default() };
    let all: Vec<&Tensor> = leaves_of.iter().collect();
    let found = match first_order.stop_gradient() {
        // The function is linear, so its second derivatives are 0.
        true => vec![None; all.len()],
        false => Tensor::grad_of(&[&first_order], &all, &[], options).unwrap(),
    };
    let zeros = |input: &Tensor| Tensor::zeros(input.shape(), input.dtype()).unwrap();
    let second: Vec<Tensor> =
        found.into_iter().zip(&inputs).map(|(g, x)| g.unwrap_or_else(|| zeros(x))).collect();
    let value = |inputs: &[Tensor]| total(&leaves(inputs), false)?.to_vec::<f64>().map(|v| v[0]);
    compare(&format!("{name}, second order"), &value, &inputs, &second);
}

/// The result of a function, its gradients, and their gradients, with weights from `weights`.
fn to_second_order(
    f: &Function,
    inputs: &[Tensor],
    weights: &mut dyn FnMut(&Tensor) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let mut total = |results: &[Tensor]| -> Result<Tensor> {
        let mut sum = Tensor::zeros((), DType::F64)?;
        for result in results {
            sum = sum.add(&result.multiply(&weights(result)?)?.sum(None, false)?)?;
        }
        Ok(sum)
    };
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let options =
        |create_graph| GradOptions { create_graph, allow_unused: true, retain_graph: true };
    let owned: Vec<Tensor> = inputs.iter().map(|input| (*input).clone()).collect();
    let mut all = vec![f(&owned)?];
    for order in [1, 2] {
        let loss = total(&all[if order == 1 { 0 } else { 1 }..])?;
        if loss.stop_gradient() {
            break;
        }
        let grads = Tensor::grad_of(&[&loss], &inputs, &[], options(order == 1))?;
        all.extend(grads.into_iter().flatten());
    }
    Ok(all)
}

/// Compares eager results with those of a program with unknown sizes, bit by bit.
fn check_static(name: &str, inputs: &[Tensor], f: &Function) -> Vec<Vec<u64>> {
    let mut given = Vec::new();
    let eager = to_second_order(f, &leaves(inputs), &mut |result| {
        let values: Vec<f64> = (0..result.numel()).map(|k| 0.3 + (k as f64 * 0.7).sin()).collect();
        let weights = Tensor::from_slice(&values, result.shape())?;
        given.push(weights.clone());
        Ok(weights)
    });
    let eager = eager.unwrap();
    let program = Program::new();
    let data = |name: &str, like: &Tensor| {
        program.data(name, &vec![None; like.rank()], like.dtype()).unwrap()
    };
    let names: Vec<String> = (0..inputs.len()).map(|k| format!("x{k}")).collect();
    let symbols = names.iter().zip(inputs).map(|(name, x)| data(name, x).with_gradient().unwrap());
    let symbols: Vec<Tensor> = symbols.collect();
    let mut count = 0;
    let built = to_second_order(f, &symbols, &mut |result| {
        count += 1;
        Ok(data(&format!("w{}", count - 1), result))
    });
    let built = built.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(built.len(), eager.len(), "{name}");
    let weights: Vec<String> = (0..given.len()).map(|k| format!("w{k}")).collect();
    let feed = names.iter().zip(inputs).chain(weights.iter().zip(&given));
    let feed: Vec<(&str, &Tensor)> = feed.map(|(name, value)| (name.as_str(), value)).collect();
    let results = program.run(&feed, &built.iter().collect::<Vec<_>>());
    let results = results.unwrap_or_else(|error| panic!("{name}: {error}\n{program}"));
    let bits = |tensor: &Tensor| -> Vec<u64> {
        tensor.to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
    };
    for (got, want) in results.iter().zip(&eager) {
        assert_eq!(got.shape(), want.shape(), "{name}");
        assert_eq!(want.device(), current_device(), "{name}");
        assert_eq!(got.device(), current_device(), "{name}");
        assert_eq!(bits(got), bits(want), "{name}");
    }
    eager.iter().map(bits).collect()
}

thread_local! {
    /// The bits of all gradients of a test, while devices are compared.
    static SEEN: RefCell<Option<Vec<Vec<u64>>>> = const { RefCell::new(None) };
}

/// If devices are being compared, stores the bits. Returns whether they are.
fn seen(bits: Vec<Vec<u64>>) -> bool {
    SEEN.with_borrow_mut(|seen| seen.as_mut().map(|seen| seen.extend(bits))).is_some()
}

/// Runs a test on the CPU and on the GPU and compares the bits of the gradients.
#[cfg(feature = "gpu")]
fn same_on_gpu(test: fn()) {
    let bits_of = |run: &dyn Fn()| {
        SEEN.set(Some(Vec::new()));
        run();
        SEEN.take().unwrap()
    };
    let cpu = bits_of(&test);
    let gpu = bits_of(&|| crate::support::device::on_gpu(test));
    assert!(!cpu.is_empty() && cpu.len() == gpu.len());
    for (at, (cpu, gpu)) in cpu.iter().zip(&gpu).enumerate() {
        let numbers =
            |bits: &[u64]| -> Vec<f64> { bits.iter().map(|&n| f64::from_bits(n)).collect() };
        assert!(cpu == gpu, "result {at}: {:?} and {:?}", numbers(cpu), numbers(gpu));
    }
}

const REDUCTIONS: [Reduce; 5] =
    [Reduce::Sum, Reduce::Mul, Reduce::Mean, Reduce::Amax, Reduce::Amin];
