//! Calls with tensors of PyTorch, Paddle or JAX.

use inlay::{ArgumentKind, Tensor, Value};
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};
use smallvec::SmallVec;

use super::arguments::{MOST, Objects, Values};
use super::entry::Entry;
use super::{Given, Object};
use crate::bridges::{Foreign, Native};
use crate::convert::{Arg, Call, KEEP_GIL};
use crate::dlpack::Purpose;
use crate::error::{Class, raise, type_name};
use crate::tensor::PyTensor;

/// The library of an object, if it can be one of the three.
#[inline]
pub(super) fn of(object: Object<'_, '_>) -> PyResult<Option<Foreign>> {
    // The most common arguments are looked at first.
    if is_simple(object) { Ok(None) } else { Foreign::of(object) }
}

/// Returns the library to whose bridge a call goes: that of its tensors. Fails if they belong to
/// two libraries. A call that writes into a tensor or array of another kind only reads them.
#[inline]
pub(super) fn library(entry: &Entry, objects: &Objects<'_, '_>) -> PyResult<Option<Foreign>> {
    let mut found: Option<(Foreign, usize)> = None;
    for (k, (object, argument)) in objects.iter().zip(entry.operation.arguments).enumerate() {
        let Some(object) = object.as_deref().filter(|_| argument.kind.has_tensors()) else {
            continue;
        };
        if argument.kind.is_tensor() || !Call::is_list(object) {
            let library = of(object)?;
            if k == 0 && entry.in_place && library.is_none() {
                return Ok(None);
            }
            join(entry, objects, &mut found, library, k)?;
        } else {
            for item in Call::items(object) {
                join(entry, objects, &mut found, of(&item)?, k)?;
            }
        }
    }
    Ok(found.map(|(library, _)| library))
}

/// Notes the library of argument `k`.
#[inline]
fn join(
    entry: &Entry,
    objects: &Objects<'_, '_>,
    found: &mut Option<(Foreign, usize)>,
    library: Option<Foreign>,
    k: usize,
) -> PyResult<()> {
    match (*found, library) {
        (None, Some(library)) => *found = Some((library, k)),
        (Some((first, at)), Some(library)) if first != library => {
            return Err(mixed(entry, objects, (at, first), (k, library)));
        }
        _ => {}
    }
    Ok(())
}

#[cold]
fn mixed(
    entry: &Entry,
    objects: &Objects<'_, '_>,
    (a, first): (usize, Foreign),
    (b, second): (usize, Foreign),
) -> PyErr {
    let arguments = entry.operation.arguments;
    let (Some(Some(one)), Some(Some(two))) = (objects.get(a), objects.get(b)) else {
        unreachable!("both arguments were given")
    };
    let text = format!(
        "{}: {} is a {} and {} a {}, expected tensors of one library: convert one of them, for \
         example with {}",
        entry.operation.name,
        arguments[a].name,
        described(one, first),
        arguments[b].name,
        described(two, second),
        first.conversion(arguments[b].name),
    );
    Class::Type.error(one.py(), text)
}

fn described(object: Object<'_, '_>, library: Foreign) -> String {
    match Call::is_list(object) {
        true => format!("list of tensors of {}", library.name()),
        false => type_name(object),
    }
}

/// The short way for a call on tensors of a library, if it may take that.
pub(super) fn native<'py>(
    py: Python<'py>,
    library: Foreign,
    entry: &Entry,
    objects: &Objects<'_, 'py>,
) -> Option<&'static Native> {
    let arguments = entry.operation.arguments;
    // Lists of tensors take the long way.
    let has_list = arguments
        .iter()
        .any(|argument| matches!(argument.kind, ArgumentKind::Tensors | ArgumentKind::Indices));
    // A tensor of Inlay that requires a gradient would lose it. The long way says so.
    let tracked = |object: Object<'_, 'py>| {
        object.cast::<PyTensor>().is_ok_and(|tensor| !tensor.get().inner().stop_gradient())
    };
    if has_list || objects.iter().flatten().any(|object| tracked(object)) {
        return None;
    }
    let tensors = objects.iter().zip(arguments).filter_map(|(object, argument)| {
        let object = (*object)?;
        let foreign = argument.kind.is_tensor() && matches!(of(&object), Ok(Some(_)));
        foreign.then_some(object)
    });
    let target = objects.first().and_then(|target| target.as_deref()).filter(|_| entry.in_place);
    Native::suits(py, library, target, tensors)
}

/// Converts the tensors of a library among the arguments `left`, and removes them from that list.
/// Returns false if one of them is anything but plain elements in memory.
#[expect(unsafe_code, reason = "borrows memory that only the GIL protects")]
pub(super) fn tensors<'a, 'py>(
    native: &Native,
    entry: &Entry,
    objects: &'a Objects<'_, 'py>,
    left: &mut SmallVec<[usize; MOST]>,
    values: &mut Values<'a>,
) -> PyResult<bool> {
    let mut foreign = SmallVec::<[usize; MOST]>::new();
    // Whether the conversion of the other arguments may run Python code.
    let mut owning = false;
    for &k in &*left {
        let Some(object) = objects[k].as_deref() else { continue };
        if of(object)?.is_some() {
            foreign.push(k);
        } else {
            owning |= !is_simple(object);
        }
    }
    left.retain(|k| !foreign.contains(k));
    loop {
        let mut largest = 0;
        for &k in &foreign {
            let Some(object) = objects[k].as_deref() else { continue };
            let is_target = entry.in_place && k == 0;
            let purpose = if is_target { Purpose::Write } else { Purpose::Read };
            // SAFETY: a tensor that is not owning is used only until the call has run. Until then
            // the GIL is held, since the tensors are small, and no Python code runs, since the other
            // arguments are simple.
            let Some(tensor) = (unsafe { native.tensor(object, purpose, owning) }) else {
                return Ok(false);
            };
            largest = largest.max(tensor.numel());
            values.saw(&tensor);
            values.set(k, Value::Tensor(Arg::Owned(tensor)));
        }
        if owning || largest <= KEEP_GIL && values.size() <= KEEP_GIL {
            return Ok(true);
        }
        // The GIL will be released, so the memory must be kept alive by more than its object.
        foreign.iter().for_each(|&k| values.clear(k));
        owning = true;
    }
}

/// Whether the conversion of an argument runs no Python code.
fn is_simple(object: Object<'_, '_>) -> bool {
    object.is_exact_instance_of::<PyTensor>()
        || object.is_exact_instance_of::<PyUntypedArray>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
}

/// Returns the result of a call on the short way. A view of an argument would be unknown to the
/// library, so it becomes a copy.
pub(super) fn give<'py>(
    py: Python<'py>,
    native: &Native,
    entry: &Entry,
    result: Tensor,
) -> Given<'py> {
    let op = entry.operation.name;
    let result = match result.is_foreign() {
        true => result.copy().map_err(|error| raise(py, &error))?,
        false => result,
    };
    native.give(py, op, result)
}

/// Calls the operation through the bridge of a library.
pub(super) fn call<'py>(
    library: Foreign,
    entry: &Entry,
    objects: &Objects<'_, 'py>,
    advised: bool,
) -> Given<'py> {
    let Some(py) = objects.iter().flatten().map(|object| object.py()).next() else {
        unreachable!("one of the arguments is a tensor")
    };
    if !advised {
        entry.advise(py, objects)?;
    }
    let given = |k: usize| match objects.get(k).and_then(|object| object.as_deref()) {
        Some(object) => object.clone(),
        None => py.None().into_bound(py),
    };
    let all = PyTuple::new(py, (0..entry.operation.arguments.len()).map(given))?;
    library.call(entry.operation.name, entry.in_place, all)
}
