//! Creates tensors from sizes and numbers: `full`, `zeros`, `ones`, `arange`.

use inlay_core::{DType, Error, Kind, Meta, Result};

use super::stretch::BroadcastTo;
use crate::declare::declare;
use crate::funnel::apply_on;
use crate::sizes::{Numbers, sizes_of};
use crate::{Device, IntoShape, Scalar, Tensor, current_device, with_device};

declare! {
    /// A tensor of zeros.
    ///
    /// >>> import inlay
    /// >>> inlay.zeros([2])
    /// Tensor([0., 0.], shape=[2], dtype=float32)
    ZEROS = "zeros"(
        shape: Sizes, dtype: Type = float32, name: Label = None, *, device: MaybeDevice = None
    )
        -> Tensor
        => on(device, || Tensor::zeros(&shape, dtype));

    /// A tensor of ones.
    ///
    /// >>> import inlay
    /// >>> inlay.ones([2], dtype='int64')
    /// Tensor([1, 1], shape=[2], dtype=int64)
    ONES = "ones"(
        shape: Sizes, dtype: Type = float32, name: Label = None, *, device: MaybeDevice = None
    )
        -> Tensor
        => on(device, || Tensor::ones(&shape, dtype));

    /// A tensor of one value.
    ///
    /// The default dtype follows the kind of number: int64, float32, complex64 or bool.
    ///
    /// >>> import inlay
    /// >>> inlay.full([2], 7)
    /// Tensor([7, 7], shape=[2], dtype=int64)
    FULL = "full"(
        shape: Sizes, fill_value: Number, dtype: MaybeType = None, name: Label = None, *,
        device: MaybeDevice = None
    )
        -> Tensor
        => {
            let dtype = dtype.unwrap_or(fill_value.dtype());
            on(device, || Tensor::full(&shape, fill_value, dtype))
        };

    /// ``start, start + step, ...`` before `end`; with one argument, ``0, 1, ...`` before it.
    ///
    /// The default dtype is int64 if all three are integers, else float32.
    ///
    /// >>> import inlay
    /// >>> inlay.arange(1, 6, 2)
    /// Tensor([1, 3, 5], shape=[3], dtype=int64)
    ARANGE = "arange"(
        start: MaybeNumber = 0, end: MaybeNumber = None, step: MaybeNumber = 1,
        dtype: MaybeType = None, *, device: MaybeDevice = None, name: Label = None
    )
        -> Tensor
        => {
            let zero = Scalar::from(0);
            let (start, end) = match end {
                Some(end) => (start.unwrap_or(zero), end),
                None => (zero, start.unwrap_or(zero)),
            };
            let step = step.unwrap_or(Scalar::from(1));
            let natural = [start, end, step].map(Scalar::dtype).into_iter();
            let dtype = dtype.unwrap_or(natural.fold(DType::I64, DType::max));
            on(device, || Tensor::arange(start, end, step, dtype))
        };
}

impl Tensor {
    /// Returns a tensor that has `value` everywhere.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::full([2, 2], 0.5, DType::F32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.5; 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A value that the dtype does not take, a shape that does not fit in memory.
    #[track_caller]
    pub fn full(shape: impl IntoShape, value: impl Into<Scalar>, dtype: DType) -> Result<Tensor> {
        filled(FULL.name, &shape.numbers(), value.into(), dtype)
    }

    /// Returns a tensor of zeros.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::zeros([2, 3], DType::F32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0; 6]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape that does not fit in memory.
    #[track_caller]
    pub fn zeros(shape: impl IntoShape, dtype: DType) -> Result<Tensor> {
        filled(ZEROS.name, &shape.numbers(), Scalar::Bool(false), dtype)
    }

    /// Returns a tensor of ones.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::ones(3, DType::I64)?;
    /// assert_eq!(x.to_vec::<i64>()?, [1, 1, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape that does not fit in memory.
    #[track_caller]
    pub fn ones(shape: impl IntoShape, dtype: DType) -> Result<Tensor> {
        filled(ONES.name, &shape.numbers(), Scalar::Bool(true), dtype)
    }

    /// Returns `start, start + step, …` before `end`, in a real dtype.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::arange(1, 6, 2, DType::I32)?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 3, 5]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A step of 0, numbers that are not finite or don't fit in the dtype, bool and complex dtypes.
    #[track_caller]
    pub fn arange(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<Tensor> {
        arange([start.into(), end.into(), step.into()], dtype)
    }
}

/// Makes a tensor on `device`, or on the current device without one.
pub(super) fn on(device: Option<Device>, make: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
    with_device(device.unwrap_or_else(current_device), make)?
}

fn filled(op: &'static str, shape: &Numbers, value: Scalar, dtype: DType) -> Result<Tensor> {
    let shape = &sizes_of(op, shape)?[..];
    // Checked here, so that an error about the size names this operation.
    inlay_core::Layout::contiguous(op, shape, dtype.size())?;
    let value = value.to_tensor(op, "fill_value", dtype)?;
    let shape = Meta::known(dtype, shape).shape;
    apply_on(current_device(), BroadcastTo::new(&shape), &[&value])?.copy()
}

const OP: &str = ARANGE.name;

fn arange(bounds: [Scalar; 3], dtype: DType) -> Result<Tensor> {
    if !matches!(dtype.kind(), Kind::Integer | Kind::Float) {
        return Err(Error::DType { op: OP, arg: "dtype", got: dtype, expected: "a real dtype" });
    }
    let integers = bounds.map(|bound| match bound {
        Scalar::Bool(value) => Some(i128::from(value)),
        Scalar::Int(value) => Some(value),
        _ => None,
    });
    if let [Some(start), Some(end), Some(step)] = integers {
        return integer_range(start, end, step, dtype);
    }
    let names = ["start", "end", "step"];
    let mut floats = [0.0; 3];
    for ((float, bound), arg) in floats.iter_mut().zip(bounds).zip(names) {
        *float = match bound {
            Scalar::Bool(value) => f64::from(u8::from(value)),
            Scalar::Int(value) => value as f64,
            Scalar::Float(value) => value,
            Scalar::Complex(_) => {
                return Err(Error::Scalar { op: OP, arg, got: "complex", dtype });
            }
        };
        if !float.is_finite() {
            let (got, expected) = (float.to_string(), "a finite number".into());
            return Err(Error::Argument { op: OP, arg, got, expected });
        }
    }
    if dtype.kind() == Kind::Integer {
        return Err(Error::Scalar { op: OP, arg: "start, end or step", got: "float", dtype });
    }
    let [start, end, step] = floats;
    let count = (!is_zero(step)).then(|| ((end - start) / step).ceil().max(0.0));
    let values = collect(count, |k| start + k as f64 * step)?;
    Tensor::from_slice(&values, &[values.len()])?.cast(dtype)
}

fn is_zero(step: f64) -> bool {
    step == 0.0
}

fn integer_range(start: i128, end: i128, step: i128, dtype: DType) -> Result<Tensor> {
    let count = (step != 0).then(|| {
        let span = end.saturating_sub(start);
        let whole = span / step + i128::from(span % step != 0 && (span > 0) == (step > 0));
        whole.max(0) as f64
    });
    let ends = [
        start,
        start.saturating_add((count.unwrap_or(0.0) as i128 - 1).max(0).saturating_mul(step)),
    ];
    let (low, high) = dtype.integer_range().unwrap_or((i128::MIN, i128::MAX));
    let outside = ends.into_iter().find(|value| *value < low || *value > high);
    if let Some(value) = outside.filter(|_| count != Some(0.0)) {
        let (got, arg) = (value.to_string(), "start or end");
        let expected = format!("values of {dtype}: {low} to {high}");
        return Err(Error::Argument { op: OP, arg, got, expected });
    }
    let value = |k: usize| start + k as i128 * step;
    let numbers = if dtype.kind() == Kind::Integer {
        // Every value fits in the dtype, so the cast of the wrapped `u64` restores it.
        let values = collect(count, |k| value(k) as u64)?;
        Tensor::from_slice(&values, &[values.len()])?
    } else {
        let values = collect(count, |k| value(k) as f64)?;
        Tensor::from_slice(&values, &[values.len()])?
    };
    numbers.cast(dtype)
}

/// Collects `count` values. `None` means that the step was 0.
fn collect<T>(count: Option<f64>, value: impl Fn(usize) -> T) -> Result<Vec<T>> {
    let Some(count) = count else {
        let (got, expected) = ("0".into(), "anything but 0".into());
        return Err(Error::Argument { op: OP, arg: "step", got, expected });
    };
    let mut values = Vec::new();
    // A count that exceeds `usize` saturates, and the reservation then fails.
    let count = count as usize;
    let bytes = count.saturating_mul(size_of::<T>());
    values.try_reserve_exact(count).map_err(|_| Error::OutOfMemory { bytes })?;
    values.extend((0..count).map(value));
    Ok(values)
}
