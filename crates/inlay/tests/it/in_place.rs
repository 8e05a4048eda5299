//! Arithmetic in place: the same numbers as out of place, in the memory of the target.

use inlay::{DType, NoGrad, Program, Result, Tensor};

use crate::support::device::also_on_gpu;
use crate::support::{Nd, Rng};

type Fresh = fn(&Tensor, &Tensor) -> Result<Tensor>;
type InPlace = for<'a> fn(&'a Tensor, &Tensor) -> Result<&'a Tensor>;

const OPERATIONS: [(&str, Fresh, InPlace); 4] = [
    ("add", |x, y| x.add(y), |x, y| x.add_(y)),
    ("subtract", |x, y| x.subtract(y), |x, y| x.subtract_(y)),
    ("multiply", |x, y| x.multiply(y), |x, y| x.multiply_(y)),
    ("divide", |x, y| x.divide(y), |x, y| x.divide_(y)),
];

/// Fails unless both have the same elements. NaN equals NaN, whatever its bits are.
#[track_caller]
fn assert_equal(a: &Tensor, b: &Tensor) {
    let text = |tensor: &Tensor| format!("{:?}", tensor.cpu().unwrap());
    assert_eq!(text(a), text(b));
}

#[test]
fn results_are_those_of_the_fresh_operation() {
    let rng = &mut Rng(15);
    for dtype in DType::ALL {
        for (name, fresh, in_place) in OPERATIONS {
            for of_y in [&[3, 4][..], &[4], &[3, 1], &[]] {
                let x = Nd::random(rng, dtype, &[3, 4]);
                let y = Nd::random(rng, dtype, of_y).scattered(rng);
                let expected = fresh(&x.tensor(), &y);
                for target in [x.tensor(), x.scattered(rng)] {
                    let result = in_place(&target, &y);
                    match &expected {
                        Ok(expected) if expected.dtype() == dtype => {
                            result.unwrap();
                            assert_equal(&target, expected);
                        }
                        _ => {
                            let text = result.unwrap_err().to_string();
                            assert!(text.starts_with(name), "{text}");
                            assert_equal(&target, &x.tensor());
                        }
                    }
                }
            }
        }
    }
}

/// Long enough for vector instructions and threads.
#[test]
fn long_tensors_are_written_once_per_element() -> Result<()> {
    let n = 300_001;
    let x = Tensor::arange(0, n, 1, DType::I32)?;
    let y = x.copy()?;
    x.multiply_(3)?.subtract_(&y)?.add_(&x)?;
    assert_equal(&x, &(y.copy()? * 4)?);
    let (even, odd) = (x.i(inlay::Slice::from(..).step(2))?, x.i(inlay::Slice::from(1..).step(2))?);
    let sum = (even.i(..-1)? + &odd)?;
    even.i(..-1)?.add_(&odd)?;
    assert_equal(&x.i(inlay::Slice::from(..-1).step(2))?, &sum);
    Ok(())
}

#[test]
fn operands_may_overlap_the_target() -> Result<()> {
    let x = Tensor::new([1.0f32, 2.0, 3.0, 4.0])?;
    x.add_(&x)?;
    assert_eq!(x.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
    // Each sum is of old values.
    x.i(1..)?.add_(x.i(..-1)?)?;
    assert_eq!(x.to_vec::<f32>()?, [2.0, 6.0, 10.0, 14.0]);
    x.subtract_(&x.i(3)?)?;
    assert_eq!(x.to_vec::<f32>()?, [-12.0, -8.0, -4.0, 0.0]);
    Ok(())
}

#[test]
fn errors_name_the_operation_and_nothing_is_written() -> Result<()> {
    let text = |result: Result<&Tensor>| result.unwrap_err().to_string();
    let x = Tensor::new([1, 2])?;
    let wide = Tensor::new([[1, 2], [3, 4]])?;
    let expected = "add: y has shape [2, 2], which does not broadcast to [2]";
    assert_eq!(text(x.add_(&wide)), expected);
    let expected = "divide: the result has dtype float64, x has dtype int32";
    assert_eq!(text(x.divide_(2)), expected);
    assert!(text(x.multiply_(0.5)).starts_with("multiply: y is a float"));
    assert_eq!(x.to_vec::<i32>()?, [1, 2]);
    let repeated = x.broadcast_to([2, 2])?;
    let expected = "add: x has elements that overlap in memory and can't be written in place";
    assert_eq!(text(repeated.add_(1)), expected);
    Ok(())
}

#[test]
fn gradients_read_the_old_values() -> Result<()> {
    let x = Tensor::new([1.0f32, 2.0])?.with_gradient()?;
    let h = (&x * 1.0)?;
    h.multiply_(&h)?.add_(1)?.divide_(2)?;
    h.sum(None, false)?.backward(None, false)?;
    assert_eq!(h.to_vec::<f32>()?, [1.0, 2.5]);
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [1.0, 2.0]);
    // The operand may want a gradient although the target did not, and may be broadcast.
    let (total, y) =
        (Tensor::new([[1.0f32, 1.0], [2.0, 2.0]])?, x.detach().copy()?.with_gradient()?);
    total.multiply_(&y)?.subtract_(&y)?;
    total.sum(None, false)?.backward(None, false)?;
    assert_eq!(y.grad().unwrap().to_vec::<f32>()?, [1.0, 1.0]);
    Ok(())
}

#[test]
fn leaves_are_written_only_without_recording() -> Result<()> {
    let x = Tensor::new([1.0f32, 2.0])?.with_gradient()?;
    let text = x.add_(1).unwrap_err().to_string();
    assert!(text.starts_with("add: x is a leaf that wants a gradient"), "{text}");
    let off = NoGrad::new();
    x.add_(1)?;
    drop(off);
    assert_eq!(x.to_vec::<f32>()?, [2.0, 3.0]);
    Ok(())
}

#[test]
fn programs_give_the_handle_its_new_value() -> Result<()> {
    let program = Program::new();
    let x = program.data("x", &[None, None], DType::F32)?;
    let y = program.data("y", &[None], DType::F32)?;
    let total = (&x + 0)?;
    total.add_(&y)?.multiply_(2)?;
    let a = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    let run = |y: &Tensor| program.run(&[("x", &a), ("y", y)], &[&total]);
    assert_eq!(run(&Tensor::new([10.0f32, 20.0])?)?[0].to_vec::<f32>()?, [22.0, 44.0, 26.0, 48.0]);
    assert_eq!(run(&Tensor::new([1.0f32])?)?[0].to_vec::<f32>()?, [4.0, 6.0, 8.0, 10.0]);
    let text = run(&Tensor::new([1.0f32; 3])?).unwrap_err().to_string();
    assert!(text.starts_with("add: y has shape [3]"), "{text}");
    // A result that would be larger than the target is refused when the sizes are known.
    let small = (&y + 0)?;
    small.add_(&x.sum(1, false)?)?;
    let one = Tensor::new([1.0f32])?;
    let text = program.run(&[("x", &a), ("y", &one)], &[&small]).unwrap_err().to_string();
    assert!(text.starts_with("add: y has shape [2], which does not broadcast to [1]"), "{text}");
    Ok(())
}

also_on_gpu!(
    results_are_those_of_the_fresh_operation,
    long_tensors_are_written_once_per_element,
    operands_may_overlap_the_target,
    errors_name_the_operation_and_nothing_is_written,
    gradients_read_the_old_values,
);
