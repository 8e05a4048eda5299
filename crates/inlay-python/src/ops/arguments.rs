//! Conversion of Python objects to the values that the declaration of an operation asks for.
#![expect(unsafe_code, reason = "borrows memory that only the GIL protects")]

use std::borrow::Cow;
use std::mem::ManuallyDrop;

use inlay::{Argument, ArgumentKind as Kind, Bounds, DType, Error, Reduce, Returns, Tensor, Value};
use numpy::PyUntypedArrayMethods;
use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use smallvec::SmallVec;

use super::Object;
use super::entry::Entry;
use super::foreign::{self, Found, Way};
use crate::bridges::Native;
use crate::convert::{Arg, Call, KEEP_GIL};
use crate::numpy::as_array;
use crate::tensor::PyTensor;
use crate::{device, dtype};

/// The largest number of arguments of an operation. `entry::register` checks it.
pub(super) const MOST: usize = 8;

/// The objects of a call: one for each argument up to the last that is given.
pub(super) type Objects<'a, 'py> = [Option<Borrowed<'a, 'py, PyAny>>];

/// The values of a call's arguments, and how many elements the call works on.
///
/// A value is written into its slot and not moved: a load of bytes that were just stored in smaller
/// pieces stalls until the stores have reached the cache.
pub(super) struct Values<'a> {
    /// Only the values of `owned` are dropped. To drop all takes a twentieth of a tiny call.
    slots: ManuallyDrop<[Value<'a>; MOST]>,
    /// The number of arguments up to the last that is given.
    given: usize,
    /// The slots whose values may own memory.
    owned: SmallVec<[usize; MOST]>,
    /// Elements of the largest tensor among the arguments.
    largest: Option<usize>,
    /// Elements of the shape that the arguments describe.
    made: Option<usize>,
}

impl<'a> Values<'a> {
    pub(super) fn new() -> Self {
        let slots = ManuallyDrop::new([const { Value::Absent }; MOST]);
        Values { slots, given: 0, owned: SmallVec::new(), largest: None, made: None }
    }

    /// Sets a value that was absent.
    pub(super) fn set(&mut self, k: usize, value: Value<'a>) {
        use Value::{Bounds, Ints, Tensor, Tensors};
        if matches!(value, Tensor(Arg::Owned(_)) | Tensors(_) | Ints(_) | Bounds(_)) {
            self.owned.push(k);
        }
        self.put(k, value);
    }

    #[inline(always)]
    fn put(&mut self, k: usize, value: Value<'a>) {
        // Nothing leaks: an absent value owns nothing.
        std::mem::forget(std::mem::replace(&mut self.slots[k], value));
    }

    // The functions for the most common values are not inlined. Otherwise the compiler builds the
    // values of all kinds of arguments in one place and moves them from there.

    #[inline(never)]
    fn set_int(&mut self, k: usize, value: i64) {
        self.put(k, Value::Int(value));
    }

    #[inline(never)]
    fn set_bound(&mut self, k: usize, value: i64) {
        self.put(k, Value::Bounds(Bounds::One(value)));
    }

    #[inline(never)]
    fn set_flag(&mut self, k: usize, value: bool) {
        self.put(k, Value::Flag(value));
    }

    #[inline(never)]
    fn set_borrowed(&mut self, k: usize, tensor: &'a Tensor) {
        self.saw(tensor);
        self.put(k, Value::Tensor(Arg::Borrowed(tensor)));
    }

    #[inline(never)]
    pub(super) fn set_owned(&mut self, k: usize, tensor: Tensor) {
        self.saw(&tensor);
        self.owned.push(k);
        self.put(k, Value::Tensor(Arg::Owned(tensor)));
    }

    /// Removes a value. A lent tensor is kept for the next call.
    pub(super) fn clear(&mut self, k: usize) {
        if let Value::Tensor(Arg::Owned(tensor)) =
            std::mem::replace(&mut self.slots[k], Value::Absent)
        {
            tensor.give_back();
        }
    }

    #[inline(always)]
    pub(super) fn saw(&mut self, tensor: &Tensor) {
        self.largest = self.largest.max(Some(tensor.numel()));
    }

    /// Multiplies the number of elements of the described shape.
    fn make(&mut self, size: i64) {
        self.made = Some(self.made.unwrap_or(1).saturating_mul(size.max(0) as usize));
    }

    /// The values of the arguments up to the last that is given.
    pub(super) fn given(&self) -> &[Value<'a>] {
        &self.slots[..self.given]
    }

    /// An upper bound for the number of elements that the call works on.
    pub(super) fn size(&self) -> usize {
        self.largest.max(self.made).unwrap_or(usize::MAX)
    }
}

impl Drop for Values<'_> {
    fn drop(&mut self) {
        for k in std::mem::take(&mut self.owned) {
            self.clear(k);
        }
    }
}

/// Converts the objects of a call into `values`. Arrays are converted last, because the conversion
/// of attributes may run arbitrary Python code, which could free the memory of an array. Tensors of
/// another library are taken on its short way `native`, if that is possible.
pub(super) fn convert<'a, 'py>(
    call: &mut Call<'py>,
    entry: &Entry,
    objects: &'a Objects<'_, 'py>,
    native: Option<(&'static Native, Found)>,
    values: &mut Values<'a>,
) -> PyResult<Way> {
    let arguments = entry.operation.arguments;
    let mut left = SmallVec::<[usize; MOST]>::new();
    values.given = objects.len();
    for (k, (object, argument)) in objects.iter().zip(arguments).enumerate() {
        let Some(object) = object.as_deref() else { continue };
        // Integers, flags and tensors are the most common. Their values own no memory.
        match argument.kind {
            Kind::Int => values.set_int(k, call.integer(argument.name, object)?),
            Kind::Extent => {
                let extent = call.integer(argument.name, object)?;
                values.make(extent);
                values.set_int(k, extent);
            }
            Kind::Bound => values.set_int(k, call.bound(argument.name, object)?),
            Kind::Flag => values.set_flag(k, call.flag(argument.name, object)?),
            Kind::AxisList | Kind::BoundList if object.is_exact_instance_of::<PyInt>() => {
                let one = match argument.kind {
                    Kind::AxisList => call.integer(argument.name, object)?,
                    _ => call.bound(argument.name, object)?,
                };
                values.set_bound(k, one);
            }
            kind if kind.has_tensors() => {
                let is_target = k == 0 && entry.in_place;
                match call.own(object).filter(|_| kind.is_tensor() && !is_target) {
                    Some(tensor) => values.set_borrowed(k, tensor),
                    None => left.push(k),
                }
            }
            _ => attribute(call, argument, object, values, k)?,
        }
    }
    // A number of columns that is left out is that of the rows.
    if arguments.get(1).is_some_and(|columns| columns.kind == Kind::Extent)
        && matches!(values.slots.get(1), None | Some(Value::Absent))
    {
        values.made = values.made.map(|rows| rows.saturating_mul(rows));
    }
    entry.advise(call.py(), objects)?;
    let way = match native {
        Some(native) => foreign::tensors(call, native, entry, objects, &mut left, values),
        None => Way::Short,
    };
    if way == Way::Long {
        return Ok(way);
    }
    let lends = native.is_none() && lends(call, entry, objects, &left);
    for k in left {
        let is_target = entry.in_place && k == 0;
        // An array has a dtype of its own, so it is the same for every kind of argument.
        let array = objects[k].as_deref().filter(|_| arguments[k].kind.is_tensor() && !is_target);
        let tensor = array.and_then(|object| match lends {
            // SAFETY: the caller of the call keeps its arguments alive. `lends` has checked that
            // nothing uses them after the call, that no Python code runs before it ends, and that
            // it keeps the GIL, so that no other thread can change the arrays. The values, which
            // have the tensor, are dropped at its end.
            true => unsafe { call.lent_array(object) },
            false => call.plain_array(object),
        });
        match tensor {
            Some(tensor) => values.set_owned(k, tensor),
            None => other_tensor(call, arguments, is_target, objects, k, values)?,
        }
    }
    match entry.operation.returns {
        Returns::Tensor => call.make_tensor(),
        // A view costs the same at any size.
        Returns::View if native.is_none() => (values.largest, values.made) = (Some(0), None),
        _ => {}
    }
    Ok(way)
}

/// Whether the arrays among the arguments `left` can be lent to the call: it keeps the GIL, returns a
/// fresh result, records nothing, and the conversion of its arguments runs no Python code.
fn lends<'py>(call: &Call<'py>, entry: &Entry, objects: &Objects<'_, 'py>, left: &[usize]) -> bool {
    let is_plain = |k: &usize| {
        objects[*k].as_deref().is_some_and(|object| match as_array(object) {
            Some(array) => array.len() <= KEEP_GIL,
            None => foreign::is_simple(object),
        })
    };
    !call.has_tensor() && entry.operation.returns == Returns::Fresh && left.iter().all(is_plain)
}

/// Converts tensor argument `k`, which is neither a `Tensor` nor a plain array: a list, a number, a
/// list of tensors, an array of a subclass, or the target of a write.
#[inline(never)]
fn other_tensor<'a, 'py>(
    call: &mut Call<'py>,
    arguments: &'static [Argument],
    is_target: bool,
    objects: &'a Objects<'_, 'py>,
    k: usize,
    values: &mut Values<'a>,
) -> PyResult<()> {
    let (Argument { name, kind, .. }, Some(object)) = (arguments[k], objects[k].as_deref()) else {
        return Ok(());
    };
    let dtype_of = |values: &Values<'a>, k: usize| match values.slots.get(k) {
        Some(Value::Tensor(tensor)) => Some(tensor.dtype()),
        _ => None,
    };
    let tensor = match kind {
        Kind::Tensor if is_target => call.target(name, object)?,
        Kind::Index => call.index(name, object)?,
        Kind::Mask => call.mask(name, object)?,
        Kind::Like => match (0..k).find_map(|k| dtype_of(values, k)) {
            Some(dtype) => call.values(name, object, dtype)?,
            None => call.array(name, object)?,
        },
        // The first of two operands. A number or a list of them takes the dtype of the second.
        Kind::Operand if arguments.get(k + 1).is_some_and(|next| next.kind == kind) => {
            let other = objects.get(k + 1).and_then(|other| other.as_deref());
            match other.filter(|other| Call::yields(object, other)) {
                Some(other) => {
                    let dtype = match dtype_of(values, k + 1) {
                        Some(dtype) => dtype,
                        None => call.array(arguments[k + 1].name, other)?.dtype(),
                    };
                    call.values(name, object, dtype)?
                }
                None => call.array(name, object)?,
            }
        }
        Kind::Operand => {
            let first = objects[k - 1].as_deref();
            let typed = first.is_some_and(|first| Call::are_scalars(first, object));
            match dtype_of(values, k - 1).filter(|_| !typed) {
                Some(dtype) => call.values(name, object, dtype)?,
                None => call.array(name, object)?,
            }
        }
        Kind::Tensors | Kind::Indices => {
            let tensors = match kind {
                Kind::Tensors => {
                    list(call, name, object, "a list or tuple of tensors", Call::array)
                }
                _ => list(call, name, object, "a tuple or list of tensors", Call::index),
            }?;
            let size = tensors.iter().map(|tensor| tensor.numel()).fold(0, usize::saturating_add);
            values.largest = values.largest.max(Some(size));
            values.set(k, Value::Tensors(tensors));
            return Ok(());
        }
        _ => call.array(name, object)?,
    };
    values.saw(&tensor);
    values.set(k, Value::Tensor(tensor));
    Ok(())
}

/// Converts a list of tensors, each of them by `convert`.
fn list<'a, 'py>(
    call: &mut Call<'py>,
    arg: &'static str,
    object: Object<'a, 'py>,
    expected: &str,
    convert: impl for<'o> Fn(&mut Call<'py>, &'static str, &'o Bound<'py, PyAny>) -> PyResult<Arg<'o>>,
) -> PyResult<Vec<Arg<'a>>> {
    if !Call::is_list(object) {
        return Err(call.expected(arg, object, expected));
    }
    let items = Call::items(object);
    items.iter().map(|item| Ok(Cow::Owned(convert(call, arg, item)?.into_owned()))).collect()
}

/// Converts an argument that is neither a tensor nor a plain integer nor a flag.
#[inline(never)]
fn attribute<'py>(
    call: &mut Call<'py>,
    argument: &Argument,
    object: Object<'_, 'py>,
    values: &mut Values<'_>,
    k: usize,
) -> PyResult<()> {
    let value = constant(call, argument, object)?;
    if let (Kind::Sizes, Value::Ints(sizes)) = (argument.kind, &value) {
        values.make(1);
        sizes.iter().for_each(|&size| values.make(size));
    }
    values.set(k, value);
    Ok(())
}

/// Converts an argument that is not a tensor.
pub(super) fn constant<'py>(
    call: &mut Call<'py>,
    &Argument { name: arg, kind, .. }: &Argument,
    object: Object<'_, 'py>,
) -> PyResult<Value<'static>> {
    Ok(match kind {
        Kind::Int | Kind::Extent => Value::Int(call.integer(arg, object)?),
        Kind::Bound => Value::Int(call.bound(arg, object)?),
        Kind::Flag => Value::Flag(call.flag(arg, object)?),
        Kind::Label => {
            call.name(object)?;
            Value::Absent
        }
        Kind::Reduce => Value::Reduce(reduce(call, arg, object, "")?),
        Kind::ReduceOrAssign => Value::Reduce(reduce(call, arg, object, "assign")?),
        Kind::Axes | Kind::Ints => Value::Ints(call.integers(arg, object)?),
        Kind::Sizes => Value::Ints(call.sizes(arg, object)?),
        Kind::AxisList => Value::Bounds(axes(call, arg, object)?),
        Kind::BoundList => Value::Bounds(bounds(call, arg, object)?),
        Kind::DType => Value::DType(dtype::parse(call.op(), object)?),
        Kind::Device => Value::Device(device::parse(call.op(), object)?),
        Kind::Scalar => Value::Scalar(call.scalar(arg, object)?),
        kind => unreachable!("{kind:?} is a tensor"),
    })
}

/// Converts a tensor argument that is a number, a list or an array, by the rules of its kind. A
/// number takes the dtype `like`, if that is given.
pub(super) fn tensor<'a, 'py>(
    call: &mut Call<'py>,
    &Argument { name, kind, .. }: &Argument,
    object: Object<'a, 'py>,
    like: Option<DType>,
) -> PyResult<Arg<'a>> {
    match (kind, like) {
        (Kind::Index | Kind::Indices, _) => call.index(name, object),
        (Kind::Mask, _) => call.mask(name, object),
        (Kind::Like | Kind::Operand, Some(dtype)) => call.values(name, object, dtype),
        _ => call.array(name, object),
    }
}

/// Like [`tensor`], but the result shares no memory with the object. A graph may save it, and a write to
/// the object must not change what was saved.
pub(super) fn tensor_to_save<'py>(
    call: &mut Call<'py>,
    argument: &Argument,
    object: Object<'_, 'py>,
    like: Option<DType>,
) -> PyResult<Tensor> {
    match tensor(call, argument, object, like)? {
        Arg::Owned(made) if !made.is_foreign() && !object.is_exact_instance_of::<PyTensor>() => {
            Ok(made)
        }
        shared => shared.copy().map_err(|error| call.raise(&error)),
    }
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
    let items = Call::items(object).iter().map(bound).collect::<PyResult<Vec<_>>>()?;
    Ok(Bounds::List(items))
}
