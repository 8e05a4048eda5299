//! Tests of `jit`: traces, sizes that a function reads, donated memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use inlay::{DType, Error, Result, Slice, SliceScatter, Tensor, jit};

use crate::support::device::also_on_gpu;

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, &[values.len()]).unwrap()
}

/// Calls a function of one tensor, and checks that the calls with ones of `sizes` give `want`.
/// Returns how often the function was called.
fn calls(
    function: impl Fn(&Tensor) -> Result<Tensor>,
    sizes: &[usize],
    want: impl Fn(usize) -> Vec<f32>,
) -> usize {
    let calls = AtomicUsize::new(0);
    let traced = jit(|args: &[Tensor]| {
        calls.fetch_add(1, Ordering::Relaxed);
        Ok(vec![function(&args[0])?])
    });
    for &size in sizes {
        let x = Tensor::ones(&[size], DType::F32).unwrap();
        let got = traced.call(&[&x]).unwrap();
        assert_eq!(got[0].to_vec::<f32>().unwrap(), want(size), "size {size}");
    }
    calls.load(Ordering::Relaxed)
}

#[test]
fn a_function_is_traced_once_for_dtypes_and_ranks() {
    let calls = AtomicUsize::new(0);
    let double = jit(|args: &[Tensor]| {
        calls.fetch_add(1, Ordering::Relaxed);
        Ok(vec![args[0].add(&args[0])?])
    });
    for size in 0..4 {
        let x = Tensor::ones(&[size], DType::F32).unwrap();
        assert_eq!(double.call(&[&x]).unwrap()[0].to_vec::<f32>().unwrap(), vec![2.0; size]);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    double.call(&[&Tensor::ones(&[2], DType::F64).unwrap()]).unwrap();
    double.call(&[&Tensor::ones(&[2, 2], DType::F32).unwrap()]).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    // If a gradient is recorded, the function itself is called.
    let x = floats(&[3.0]).with_gradient().unwrap();
    double.call(&[&x]).unwrap()[0].backward(None, false).unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [2.0]);
}

#[test]
fn a_function_that_needs_a_size_is_traced_for_each_set_of_sizes() {
    let calls = AtomicUsize::new(0);
    // The last size of the index is the number of axes that it names.
    let add = jit(|args: &[Tensor]| {
        calls.fetch_add(1, Ordering::Relaxed);
        Ok(vec![args[0].scatter_nd_add(&args[1], &args[2])?])
    });
    let x = Tensor::zeros(&[2, 2], DType::F32).unwrap();
    let one = Tensor::from_slice(&[1i64, 0], &[1, 2]).unwrap();
    let two = Tensor::from_slice(&[1i64, 0, 0, 1], &[2, 2]).unwrap();
    for (index, update, want) in [
        (&one, floats(&[5.0]), [0.0, 0.0, 5.0, 0.0]),
        (&two, floats(&[5.0, 6.0]), [0.0, 6.0, 5.0, 0.0]),
        (&one, floats(&[7.0]), [0.0, 0.0, 7.0, 0.0]),
    ] {
        let got = add.call(&[&x, index, &update]).unwrap();
        assert_eq!(got[0].to_vec::<f32>().unwrap(), want);
    }
    // The function was called once with unknown sizes, and once for each of two sets of sizes.
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn a_traced_function_has_no_values() {
    let peek = jit(|args: &[Tensor]| {
        args[0].to_vec::<f32>()?;
        Ok(vec![args[0].clone()])
    });
    let error = peek.call(&[&floats(&[1.0])]).unwrap_err();
    assert_eq!(error, Error::Symbolic { op: "to_vec" });
}

#[test]
fn a_function_that_reads_a_size_is_traced_for_each_size() {
    let mean = |x: &Tensor| {
        let count = Tensor::scalar(x.numel() as f32)?;
        x.sum(None, false)?.divide(&count)
    };
    // Once with open sizes, and once for each of two sizes.
    assert_eq!(calls(mean, &[5, 6, 5], |_| vec![1.0]), 3);
    let branch = |x: &Tensor| if x.shape()[0] > 3 { x.add(x) } else { Ok(x.clone()) };
    let want = |n: usize| vec![if n > 3 { 2.0 } else { 1.0 }; n];
    assert_eq!(calls(branch, &[2, 4, 3], want), 4);
    let layout = |x: &Tensor| {
        let axes = vec![x.layout().shape()[0] as f32; 1];
        x.sum(None, true)?.multiply(&floats(&axes))
    };
    assert_eq!(calls(layout, &[2, 3], |n| vec![(n * n) as f32]), 3);
}

#[test]
fn a_loop_over_an_open_size_ends() {
    let powers = |x: &Tensor| (0..x.shape()[0]).try_fold(x.clone(), |y, _| y.add(&y));
    assert_eq!(calls(powers, &[3, 0, 1], |n| vec![2f32.powi(n as i32); n]), 4);
}

#[test]
fn sizes_of_results_follow_from_those_of_the_arguments() {
    let halves = |x: &Tensor| {
        let half = x.slice(&SliceScatter::new(0, Slice::new(0, None, 2)))?;
        let both = Tensor::concat(&[&half, x], 0)?;
        // The function fails if it sees another size, which would be the result of the call.
        assert_eq!(both.shape(), [half.shape()[0] + x.numel()]);
        both.reshape(&[1, both.numel() as i64])?.sum(1, false)
    };
    assert_eq!(calls(halves, &[4, 5, 0], |n| vec![(n + n.div_ceil(2)) as f32]), 4);
}

#[test]
fn an_error_because_of_an_open_size_is_not_the_result() {
    let calls = AtomicUsize::new(0);
    let checked = jit(|args: &[Tensor]| {
        calls.fetch_add(1, Ordering::Relaxed);
        match args[0].shape() {
            [2] => Ok(vec![args[0].clone()]),
            shape => Err(Error::TooLarge { op: "mine", shape: shape.to_vec() }),
        }
    });
    assert_eq!(checked.call(&[&floats(&[1.0, 2.0])]).unwrap().len(), 1);
    let error = checked.call(&[&floats(&[1.0])]).unwrap_err();
    assert_eq!(error, Error::TooLarge { op: "mine", shape: vec![1] });
}

#[test]
fn a_size_that_depends_on_values_is_an_error_and_loops_over_it_end() {
    let looped = jit(|args: &[Tensor]| {
        let chosen = args[0].masked_select(&args[1])?;
        let sum = (0..chosen.numel()).try_fold(chosen.sum(None, false)?, |y, _| y.add(&y))?;
        Ok(vec![sum])
    });
    let mask = Tensor::from_slice(&[true, false], &[2]).unwrap();
    let error = looped.call(&[&floats(&[1.0, 2.0]), &mask]).unwrap_err();
    assert_eq!(error, Error::LateSize);
}

#[test]
fn the_rank_and_the_dtype_leave_sizes_open() {
    let ranked = |x: &Tensor| {
        assert_eq!((x.rank(), x.dtype(), x.is_symbolic()), (1, DType::F32, true));
        x.multiply(x)
    };
    assert_eq!(calls(ranked, &[2, 3, 4], |n| vec![1.0; n]), 1);
}

#[test]
fn a_function_inside_of_another_one_sees_its_sizes() {
    let inner = jit(|args: &[Tensor]| {
        let count = Tensor::scalar(args[0].numel() as f32)?;
        Ok(vec![args[0].multiply(&count)?])
    });
    let outer = |x: &Tensor| Ok(inner.call(&[x])?.remove(0));
    assert_eq!(calls(outer, &[2, 3], |n| vec![n as f32; n]), 3);
}

#[test]
fn donated_arguments_are_written_and_the_plan_says_so() {
    let first = SliceScatter::new(0, Slice::new(0, 1, 1));
    let write = |args: &[Tensor]| Ok(vec![args[0].slice_scatter(&args[1], &first)?]);
    let (kept, given) = (jit(write), jit(write).donate(true));
    let (x, y) = (floats(&[1.0, 2.0]), floats(&[7.0]));
    kept.call(&[&x, &y]).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert!(kept.explain().contains("fresh"), "{}", kept.explain());
    let got = given.call(&[&x, &y]).unwrap();
    assert_eq!(got[0].to_vec::<f32>().unwrap(), [7.0, 2.0]);
    assert_eq!(x.to_vec::<f32>().unwrap(), [7.0, 2.0]);
    let text = given.explain();
    assert!(text.contains("slice_scatter(arg0, arg1), in place of arg0"), "{text}");
    assert_eq!(jit(write).explain(), "");
}

also_on_gpu!(
    a_function_is_traced_once_for_dtypes_and_ranks,
    a_function_that_needs_a_size_is_traced_for_each_set_of_sizes,
    a_traced_function_has_no_values,
    a_function_that_reads_a_size_is_traced_for_each_size,
    a_loop_over_an_open_size_ends,
    sizes_of_results_follow_from_those_of_the_arguments,
    an_error_because_of_an_open_size_is_not_the_result,
    a_size_that_depends_on_values_is_an_error_and_loops_over_it_end,
    the_rank_and_the_dtype_leave_sizes_open,
    a_function_inside_of_another_one_sees_its_sizes,
    donated_arguments_are_written_and_the_plan_says_so,
);

#[test]
fn writes_in_place_never_change_the_arguments() {
    let first = jit(|args: &[Tensor]| {
        let [x, w] = args else { unreachable!("two arguments") };
        x.set(0, 9)?;
        Ok(vec![x.multiply(w)?.sum(None, false)?, x.clone()])
    });
    let wants = floats(&[1.0, 1.0]).with_gradient().unwrap();
    for w in [floats(&[1.0, 1.0]), wants] {
        let x = floats(&[1.0, 2.0]);
        for _ in 0..2 {
            let results = first.call(&[&x, &w]).unwrap();
            assert_eq!(results[0].item::<f32>(), Ok(11.0));
            assert_eq!(results[1].to_vec::<f32>(), Ok(vec![9.0, 2.0]));
            assert_eq!(x.to_vec::<f32>(), Ok(vec![1.0, 2.0]));
        }
    }
}

#[test]
fn a_symbolic_tensor_can_not_be_used_after_its_trace() {
    let kept = std::sync::Mutex::new(None);
    let keep = jit(|args: &[Tensor]| {
        *kept.lock().unwrap() = Some(args[0].clone());
        Ok(vec![args[0].add(1)?])
    });
    keep.call(&[&floats(&[1.0])]).unwrap();
    let escaped = kept.lock().unwrap().take().unwrap();
    assert!(escaped.add(1).is_err());
}
