//! Conversion of Python objects to the values that the declaration of an operation asks for.

use std::borrow::Cow;

use inlay::{ArgumentKind as Kind, Bounds, Error, Operation, Reduce, Returns, Value};
use pyo3::Borrowed;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use smallvec::SmallVec;

use super::Object;
use crate::convert::{Arg, Call};
use crate::{device, dtype};

/// The largest number of arguments of an operation. `entry::register` checks it.
pub(super) const MOST: usize = 8;

/// The values of the arguments, up to the last one that is given.
pub(super) type Values<'a> = SmallVec<[Value<'a>; MOST]>;

/// Converts the arguments into `values`, and returns the number of elements that the call
/// processes.
///
/// Tensors are converted last, because the conversion of other arguments may run arbitrary Python
/// code.
///
/// `values` is an out parameter, because moving bytes that were just stored stalls on store
/// forwarding.
pub(super) fn values<'a, 'py>(
    call: &mut Call<'py>,
    operation: &'static Operation,
    in_place: bool,
    objects: &'a [Option<Borrowed<'_, 'py, PyAny>>],
    values: &mut Values<'a>,
) -> PyResult<usize> {
    for (argument, object) in operation.arguments.iter().zip(objects) {
        values.push(match object.as_deref() {
            Some(object) if !argument.kind.has_tensors() => {
                attribute(call, argument.name, argument.kind, object)?
            }
            _ => Value::Absent,
        });
    }
    // Advice concerns arguments with defaults, so a call with only required arguments skips it.
    let last = objects.len().checked_sub(1).map(|last| &operation.arguments[last]);
    if let Some(advice) = &operation.advice
        && last.is_some_and(|last| last.default.is_some())
    {
        let given = |name: &str| {
            let mut named = operation.arguments.iter().zip(objects);
            named.any(|(argument, object)| argument.name == name && object.is_some())
        };
        if given(advice.given) && !given(advice.without) {
            let text = std::ffi::CString::new(advice.text)?;
            PyErr::warn(call.py(), &call.py().get_type::<PyUserWarning>(), &text, 1)?;
        }
    }
    tensors(call, operation, in_place, objects, values)?;
    if operation.returns == Returns::Tensor {
        call.make_tensor();
    }
    Ok(size(operation, values))
}

/// Stores a tensor as value `k`. The old value is `Value::Absent`, which owns nothing, so dropping
/// it is skipped.
#[inline(always)]
fn put<'a>(values: &mut Values<'a>, k: usize, tensor: Arg<'a>) {
    std::mem::forget(std::mem::replace(&mut values[k], Value::Tensor(tensor)));
}

/// Converts the arguments that are tensors or lists of tensors.
fn tensors<'a, 'py>(
    call: &mut Call<'py>,
    operation: &'static Operation,
    in_place: bool,
    objects: &'a [Option<Borrowed<'_, 'py, PyAny>>],
    values: &mut Values<'a>,
) -> PyResult<()> {
    let mut first = None;
    for (k, (argument, object)) in operation.arguments.iter().zip(objects).enumerate() {
        let (arg, Some(object)) = (argument.name, object.as_deref()) else { continue };
        let tensor = match argument.kind {
            Kind::Tensor if k == 0 && in_place => call.target(arg, object)?,
            Kind::Tensor => call.array(arg, object)?,
            Kind::Index => call.index(arg, object)?,
            Kind::Mask => call.mask(arg, object)?,
            Kind::Like => match first {
                Some(like) => call.values(arg, object, like)?,
                None => call.array(arg, object)?,
            },
            Kind::Operand if matches!(values[k], Value::Absent) => {
                return operands(call, operation, k, objects, values);
            }
            Kind::Tensors => {
                values[k] = list(call, arg, object, "a list or tuple of tensors", Call::array)?;
                continue;
            }
            Kind::Indices => {
                values[k] = list(call, arg, object, "a tuple or list of tensors", Call::index)?;
                continue;
            }
            _ => continue,
        };
        first.get_or_insert(tensor.dtype());
        put(values, k, tensor);
    }
    Ok(())
}

/// Converts the two operands `k` and `k + 1`. If one of them is a Python number or list and the
/// other is a tensor or array, the number or list takes the dtype of the other.
fn operands<'a, 'py>(
    call: &mut Call<'py>,
    operation: &'static Operation,
    k: usize,
    objects: &'a [Option<Borrowed<'_, 'py, PyAny>>],
    values: &mut Values<'a>,
) -> PyResult<()> {
    let (Some(x), Some(y)) = (objects[k].as_deref(), objects[k + 1].as_deref()) else {
        return Ok(());
    };
    let [x_name, y_name] = [k, k + 1].map(|k| operation.arguments[k].name);
    if Call::is_untyped(x) && !Call::is_untyped(y) {
        let y = call.array(y_name, y)?;
        let x = call.values(x_name, x, y.dtype())?;
        put(values, k, x);
        put(values, k + 1, y);
    } else {
        let x = call.array(x_name, x)?;
        let y = call.values(y_name, y, x.dtype())?;
        put(values, k, x);
        put(values, k + 1, y);
    }
    Ok(())
}

/// Converts a list of tensors. `bring` converts each item.
fn list<'a, 'py>(
    call: &mut Call<'py>,
    arg: &'static str,
    object: Object<'a, 'py>,
    expected: &str,
    bring: impl for<'o> Fn(&mut Call<'py>, &'static str, &'o Bound<'py, PyAny>) -> PyResult<Arg<'o>>,
) -> PyResult<Value<'a>> {
    if !Call::is_list(object) {
        return Err(call.expected(arg, object, expected));
    }
    let items = Call::items(object)?;
    let tensors = items.iter().map(|item| Ok(Cow::Owned(bring(call, arg, item)?.into_owned())));
    tensors.collect::<PyResult<Vec<_>>>().map(Value::Tensors)
}

/// Converts an argument that is not a tensor.
fn attribute<'py>(
    call: &mut Call<'py>,
    arg: &'static str,
    kind: Kind,
    object: Object<'_, 'py>,
) -> PyResult<Value<'static>> {
    Ok(match kind {
        Kind::Int | Kind::Extent => Value::Int(call.integer(arg, object)?),
        Kind::Bound => Value::Int(call.bound(arg, object)?),
        Kind::Flag => Value::Flag(call.flag(arg, object)?),
        Kind::Reduce => Value::Reduce(reduce(call, arg, object, "")?),
        Kind::ReduceOrAssign => Value::Reduce(reduce(call, arg, object, "assign")?),
        Kind::Axes | Kind::Ints => Value::Ints(call.integers(arg, object)?),
        Kind::Sizes => Value::Ints(call.sizes(arg, object)?),
        Kind::AxisList => Value::Bounds(axes(call, arg, object)?),
        Kind::BoundList => Value::Bounds(bounds(call, arg, object)?),
        Kind::DType => Value::DType(dtype::parse(call.op(), object)?),
        Kind::Device => Value::Device(device::parse(call.op(), object)?),
        Kind::Scalar => Value::Scalar(call.scalar(arg, object)?),
        Kind::Label => {
            call.name(object)?;
            Value::Absent
        }
        kind => unreachable!("{kind:?} is converted with the tensors"),
    })
}

/// Converts the name of a reduction. `other`, unless empty, is one more name, for which the result
/// is `None`.
fn reduce<'py>(
    call: &Call<'py>,
    arg: &'static str,
    object: Object<'_, 'py>,
    other: &str,
) -> PyResult<Option<Reduce>> {
    let name = call.text(arg, object)?;
    let found = Reduce::from_name(&name);
    if found.is_none() && (other.is_empty() || name != other) {
        let known = if other.is_empty() { String::new() } else { format!("{other}, ") };
        let expected = format!("one of {known}{}", Reduce::NAMES);
        let (op, got) = (call.op(), format!("{:?}", &*name));
        return Err(call.raise(&Error::Argument { op, arg, got, expected }));
    }
    Ok(found)
}

/// Converts an axis or a list of axes.
fn axes<'py>(call: &Call<'py>, arg: &'static str, object: Object<'_, 'py>) -> PyResult<Bounds> {
    if object.is_exact_instance_of::<PyInt>() {
        return Ok(Bounds::One(call.integer(arg, object)?));
    }
    let axes = call.integers(arg, object)?;
    Ok(match axes.as_slice() {
        [axis] if !Call::is_list(object) => Bounds::One(*axis),
        _ => Bounds::List(axes.into_iter().map(Some).collect()),
    })
}

/// Converts a slice bound, or a list of slice bounds whose items may be `None`.
fn bounds<'py>(call: &Call<'py>, arg: &'static str, object: Object<'_, 'py>) -> PyResult<Bounds> {
    if !Call::is_list(object) {
        return Ok(Bounds::One(call.bound(arg, object)?));
    }
    let bound = |item: &Bound<'py, PyAny>| match item.is_none() {
        true => Ok(None),
        false => call.bound(arg, item).map(Some),
    };
    let items = Call::items(object)?.iter().map(bound).collect::<PyResult<Vec<_>>>()?;
    Ok(Bounds::List(items))
}

/// Returns an upper estimate of the number of elements that a call processes: the elements of its
/// largest tensor argument or of the shape that it creates. It is 0 for a view.
fn size(operation: &Operation, given: &[Value<'_>]) -> usize {
    if operation.returns == Returns::View {
        return 0;
    }
    let (mut largest, mut made) = (None, None::<usize>);
    let mut last = 0;
    for (argument, value) in operation.arguments.iter().zip(given) {
        match (argument.kind, value) {
            (_, Value::Tensor(tensor)) => largest = largest.max(Some(tensor.numel())),
            (_, Value::Tensors(tensors)) => {
                let sizes = tensors.iter().map(|tensor| tensor.numel());
                let all = sizes.fold(0, usize::saturating_add);
                largest = largest.max(Some(all));
            }
            (Kind::Sizes, Value::Ints(sizes)) => {
                made =
                    Some(sizes.iter().fold(1, |n, &size| n.saturating_mul(size.max(0) as usize)));
            }
            (Kind::Extent, Value::Int(extent)) => {
                last = (*extent).max(0) as usize;
                made = Some(made.unwrap_or(1).saturating_mul(last));
            }
            _ => {}
        }
    }
    // If the number of columns is left out, it equals the number of rows (`tril_indices`).
    let columns = operation.arguments.get(1).is_some_and(|argument| argument.kind == Kind::Extent);
    if columns && !matches!(given.get(1), Some(Value::Int(_))) {
        made = made.map(|rows| rows.saturating_mul(last));
    }
    largest.max(made).unwrap_or(usize::MAX)
}
