//! Functions: results in memory that the caller gives, and texts.

use inlay::{DType, Dim, ErrorKind, Extent, Function, Meta, Result, Tensor, Value};
use proptest::prelude::*;

use crate::support::case::{Expect, canonical, files, load};
use crate::support::{Nd, Rng};

fn matrix() -> Tensor {
    Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]])
}

fn zeros(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, DType::F32).unwrap()
}

/// Texts of all forms, with the inputs of a call.
fn calls() -> Vec<(&'static str, Vec<Tensor>)> {
    let (x, index) = (matrix(), Tensor::from([2i64, 0, 2]));
    let batch = |tensor: &Tensor| Tensor::stack(&[tensor, tensor], 0).unwrap();
    let scalar = Tensor::from(2.0f32);
    vec![
        ("scatter(@, @, @)", vec![x.clone(), index.clone(), x.clone()]),
        ("scatter(@, @, @, overwrite=False)", vec![x.clone(), index.clone(), x.clone()]),
        ("add(@, @)", vec![x.clone(), x.i(0).unwrap()]),
        ("transpose(@)", vec![x.clone()]),
        ("reshape(@, shape=[-1])", vec![x.clone()]),
        ("broadcast_to(@, shape=[2, 3, 2])", vec![x.clone()]),
        ("index_select(@, @, axis=-1)", vec![x.clone(), Tensor::from([1i32, 0])]),
        ("masked_select(@, @)", vec![x.clone(), x.greater_than(2).unwrap()]),
        ("concat([@, @], axis=1)", vec![x.clone(), x.clone()]),
        ("sum(@, axis=[0])", vec![x.clone()]),
        ("cast(@, dtype='int8')", vec![x.clone()]),
        ("full(shape=[2, 2], fill_value=1.5)", vec![]),
        ("vjp(11; add(@, @))", vec![x.clone(), x.i(0).unwrap(), x.clone(), x.clone()]),
        ("vjp(11; multiply(@, @))", vec![x.clone(), scalar, x.clone(), x.clone()]),
        ("vjp(1; transpose(@))", vec![x.clone(), x.t(), x.t()]),
        (
            "vjp(101; scatter(@, @, @, overwrite=False))",
            vec![x.clone(), index.clone(), x.clone(), x.clone(), x.clone()],
        ),
        (
            "vmap(0, _, 1; scatter(@, @, @))",
            vec![batch(&x), index, Tensor::stack(&[&x, &x], 1).unwrap()],
        ),
        ("vmap(0; transpose(@))", vec![batch(&x)]),
        ("vmap(1, 1; masked_select(@, @))", vec![x.clone(), x.not_equal(9).unwrap()]),
    ]
}

trait Transposed {
    fn t(&self) -> Tensor;
}

impl Transposed for Tensor {
    fn t(&self) -> Tensor {
        self.transpose(None).unwrap().copy().unwrap()
    }
}

/// A tensor of the same dtype and shape, with other elements.
fn other(rng: &mut Rng, like: &Tensor) -> Nd {
    Nd::random(rng, like.dtype(), like.shape())
}

fn borrowed(tensors: &[Tensor]) -> Vec<&Tensor> {
    tensors.iter().collect()
}

fn assert_same(got: &[Tensor], expected: &[Tensor], text: &str) {
    assert_eq!(got.len(), expected.len(), "{text}");
    for (got, expected) in got.iter().zip(expected) {
        let (got, expected) = (canonical(Nd::of_tensor(got)), canonical(Nd::of_tensor(expected)));
        assert_eq!((got.dtype, &got.shape), (expected.dtype, &expected.shape), "{text}");
        assert_eq!(got.cells, expected.cells, "{text}");
    }
}

#[test]
fn results_go_into_any_memory() -> Result<()> {
    let rng = &mut Rng(16);
    for (text, inputs) in calls() {
        let function = Function::parse(text)?;
        let inputs = borrowed(&inputs);
        let expected = function.call(&inputs)?;
        for _ in 0..4 {
            let outputs = expected.iter().map(|result| other(rng, result));
            let outputs: Vec<Tensor> = outputs.collect::<Vec<_>>().iter().map(Nd::tensor).collect();
            function.call_into(&inputs, &borrowed(&outputs))?;
            assert_same(&outputs, &expected, text);
            let outputs: Vec<Nd> = expected.iter().map(|result| other(rng, result)).collect();
            let outputs: Vec<Tensor> = outputs.iter().map(|nd| nd.scattered(rng)).collect();
            function.call_into(&inputs, &borrowed(&outputs))?;
            assert_same(&outputs, &expected, text);
        }
    }
    Ok(())
}

/// The input and, shifted by an element, the outputs of its dtype are parts of one block of memory.
#[test]
fn outputs_may_overlap_inputs() -> Result<()> {
    for (text, given) in calls() {
        let function = Function::parse(text)?;
        let expected = function.call(&borrowed(&given))?;
        for input in 0..given.len() {
            let (dtype, shape) = (given[input].dtype(), given[input].shape().to_vec());
            let fits = |result: &Tensor| result.dtype() == dtype;
            let all = expected.iter().filter(|result| fits(result)).map(Tensor::numel).sum();
            let block = Tensor::zeros([1 + given[input].numel().max(all)], dtype)?;
            let part = |from: usize, like: &Tensor| {
                block.i(from..from + like.numel())?.reshape(like.shape().to_vec())
            };
            let shared = part(0, &given[input])?;
            shared.assign(&[], &given[input])?;
            assert_eq!((shared.data_ptr(), shared.shape()), (block.data_ptr(), &shape[..]));
            let mut inputs = borrowed(&given);
            inputs[input] = &shared;
            let (mut from, mut outputs) = (1, Vec::new());
            for result in &expected {
                outputs.push(match fits(result) {
                    true => part(from, result)?,
                    false => result.zeros_like()?,
                });
                from += if fits(result) { result.numel() } else { 0 };
            }
            function.call_into(&inputs, &borrowed(&outputs))?;
            assert_same(&outputs, &expected, text);
        }
    }
    Ok(())
}

#[test]
fn two_outputs_may_each_overlap_an_input() -> Result<()> {
    // The gradients of a sum are both the gradient of the result.
    let gradients = Function::parse("vjp(11; add(@, @))")?;
    let (x, y, seed) = (matrix(), matrix(), matrix());
    gradients.call_into(&[&x, &y, &x, &seed], &[&y, &x])?;
    assert_same(&[x, y], &[matrix(), matrix()], "the gradient of a sum");
    // The second result is a view of the first output.
    let swap = Function::parse("vjp(11; subtract(@, @))")?;
    let (x, seed) = (matrix(), matrix());
    swap.call_into(&[&x, &x, &x, &seed], &[&x, &seed])?;
    assert_same(&[x, seed], &[matrix(), matrix().negative()?], "the gradient of a difference");
    // A matrix is transposed in its own memory.
    let x = Tensor::from([[1, 2, 3], [4, 5, 6], [7, 8, 9]]);
    Function::parse("transpose(@)")?.call_into(&[&x], &[&x])?;
    assert_eq!(x.to_vec::<i32>()?, [1, 4, 7, 2, 5, 8, 3, 6, 9]);
    Ok(())
}

/// Every case of an operation with an in-place form: output 0 is input 0.
#[test]
fn writes_in_place_are_all_or_nothing() {
    let mut counts = [0; 2];
    for file in files() {
        for case in load(&file).into_iter().filter(|case| case.has_twin && case.attrs.is_empty()) {
            let tensors: Vec<Tensor> = case.tensors(0).into_iter().map(|(_, x)| x).collect();
            let operation = inlay::operations().iter().find(|one| one.name == case.op).unwrap();
            let takes = operation.arguments.iter().filter(|one| one.kind.is_tensor()).count();
            let text = format!("{}({})", case.op, vec!["@"; takes].join(", "));
            let Ok(function) = Function::parse(&text) else { continue };
            if function.inputs() != tensors.len() {
                continue;
            }
            let before = Nd::of_tensor(&tensors[0]);
            let result = function.call_into(&borrowed(&tensors), &[&tensors[0]]);
            let after = canonical(Nd::of_tensor(&tensors[0]));
            match (case.expect(true), result) {
                (Expect::Value(expected), Ok(())) => {
                    let expected = canonical(expected.clone());
                    assert_eq!(after.cells, expected.cells, "{}", case.name);
                    counts[0] += 1;
                }
                (Expect::Error { .. }, Err(_)) => {
                    assert_eq!(after.cells, canonical(before).cells, "{}", case.name);
                    counts[1] += 1;
                }
                (_, result) => panic!("{} {}: {result:?}", case.op, case.name),
            }
        }
    }
    assert!(counts[0] > 50 && counts[1] > 5, "{counts:?}");
}

#[test]
fn in_place_errors_write_nothing() -> Result<()> {
    let scatter = Function::parse("scatter(@, @, @)")?;
    let (x, updates) = (matrix(), matrix());
    let index = Tensor::from([0i64, 1, 7]);
    let error = scatter.call_into(&[&x, &index, &updates], &[&x]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Index);
    assert_same(&[x], &[matrix()], "nothing is written");
    // The write reads its own target.
    let (x, index) = (matrix(), Tensor::from([2i64, 1, 0]));
    scatter.call_into(&[&x, &index, &x], &[&x])?;
    assert_eq!(x.to_vec::<f32>()?, [5.0, 6.0, 3.0, 4.0, 1.0, 2.0]);
    Ok(())
}

#[test]
fn wrong_outputs_are_errors() -> Result<()> {
    let (x, sum) = (matrix(), Function::parse("add(@, @)")?);
    let fails = |inputs: &[&Tensor], outputs: &[&Tensor], words: &str| {
        let error = sum.call_into(inputs, outputs).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("add: ") && text.contains(words), "{text}");
    };
    let out = zeros(&[3, 2]);
    fails(&[&x, &x], &[], "1 results");
    fails(&[&x, &x], &[&out, &out], "1 results");
    fails(&[&x], &[&out], "takes 2 tensors, got 1");
    fails(&[&x, &x], &[&zeros(&[2, 3])], "shape [3, 2]");
    fails(&[&x, &x], &[&zeros(&[3, 3])], "shape [3, 2]");
    fails(&[&x, &x], &[&zeros(&[6])], "shape [3, 2]");
    fails(&[&x, &x], &[&Tensor::zeros([3, 2], DType::F64)?], "dtype float32");
    fails(&[&x, &x], &[&Tensor::zeros([3, 2], DType::I32)?], "dtype float32");
    fails(&[&x, &x], &[&zeros(&[2]).broadcast_to([3, 2])?], "overlap");
    // The result is larger than the first input, so it does not fit there.
    let row = Tensor::from([1.0f32, 2.0]);
    fails(&[&row, &x], &[&row], "shape [3, 2]");
    assert_eq!(row.to_vec::<f32>()?, [1.0, 2.0]);
    let gradients = Function::parse("vjp(11; add(@, @))")?;
    let error = gradients.call_into(&[&x, &x, &x, &x], &[&out]).unwrap_err();
    assert!(error.to_string().contains("2 results"), "{error}");
    let error = gradients.call_into(&[&x, &x, &x, &x], &[&out, &zeros(&[2, 3])]).unwrap_err();
    assert!(error.to_string().contains("shape [3, 2]"), "{error}");
    Ok(())
}

#[test]
fn empty_results_are_written_nowhere() -> Result<()> {
    let (x, out) = (zeros(&[0, 2]), zeros(&[0, 2]));
    Function::parse("add(@, @)")?.call_into(&[&x, &x], &[&out])?;
    Function::parse("vjp(11; add(@, @))")?.call_into(&[&x, &x, &x, &x], &[&out, &out])?;
    Function::parse("scatter(@, @, @)")?
        .call_into(&[&x, &Tensor::zeros([0], DType::I64)?, &x], &[&x])?;
    Ok(())
}

#[test]
fn functions_are_made_of_values_or_texts() -> Result<()> {
    let values = [Value::Absent, Value::Absent, Value::Int(-1)];
    let select = Function::new("index_select", &values, &[])?;
    assert_eq!(select.text(), "index_select(@, @, axis=-1)");
    assert_eq!(format!("{select:?}"), select.text());
    assert!(Function::new("index_select", &[Value::Flag(true), Value::Absent], &[]).is_ok());
    assert!(Function::new("no_such", &[], &[]).is_err());
    assert!(Function::new("tril", &vec![Value::Absent; 9], &[]).is_err());
    assert!(Function::new("tril", &[Value::Absent, Value::Flag(true)], &[]).is_err());
    assert!(Function::new("concat", &[], &[]).is_err());
    Ok(())
}

#[test]
fn open_sizes_are_named() -> Result<()> {
    let many = Function::parse("vmap(1, _; index_select(@, @))")?;
    let open = |dtype, rank| Meta { dtype, shape: (0..rank).map(|_| Dim::unknown()).collect() };
    let results = many.infer(&[open(DType::F32, 3), open(DType::I64, 1)])?;
    let of = |input, axis| Extent::Of { input, axis };
    assert_eq!(results, [(DType::F32, vec![of(0, 1), of(1, 0), of(0, 2)])]);
    Ok(())
}

#[test]
fn texts_of_all_calls_are_read_back() -> Result<()> {
    for (text, inputs) in calls() {
        let function = Function::parse(text)?;
        assert_eq!((function.text(), function.inputs()), (text, inputs.len()));
        let spaced = text.replace(',', " , ").replace('(', " ( ");
        assert_eq!(Function::parse(&spaced)?.text(), text);
    }
    Ok(())
}

/// Pieces of texts, so that many random texts are nearly right.
const PIECES: &str = "tril concat scatter full vjp vmap ( ) [ ] @ , ; _ = ' axis reduce diagonal \
                      shape fill_value True None 0 1 - .5 1e999 complex( é";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_texts_are_read_or_refused(text in ".{0,60}") {
        if let Ok(function) = Function::parse(&text) {
            let again = Function::parse(function.text()).unwrap();
            prop_assert_eq!(again.text(), function.text());
        }
    }

    #[test]
    fn changed_texts_are_read_or_refused(seed: u64) {
        let rng = &mut Rng(seed);
        let all = calls();
        let pieces: Vec<&str> = PIECES.split_whitespace().collect();
        let mut text = rng.pick(&all).0.to_owned();
        for _ in 0..rng.below(4) {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let (mut from, mut to) = (*rng.pick(&places), *rng.pick(&places));
            if rng.chance(2) {
                to = from;
            }
            if from > to {
                (from, to) = (to, from);
            }
            let piece: &str = pieces[rng.below(pieces.len())];
            text.replace_range(from..to, piece);
        }
        match Function::parse(&text) {
            Ok(function) => {
                let again = Function::parse(function.text()).unwrap();
                prop_assert_eq!(again.text(), function.text());
                prop_assert_eq!(again.inputs(), function.inputs());
            }
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Value, "{}: {}", text, error),
        }
    }
}
