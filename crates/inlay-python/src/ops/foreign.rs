//! Calls with tensors of PyTorch, Paddle or JAX.

use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};

use super::arguments::Objects;
use super::entry::Entry;
use super::{Given, Object};
use crate::bridges::{Foreign, class_of};
use crate::convert::Call;
use crate::error::Class;
use crate::tensor::PyTensor;

/// The library of an object, if it can be one of the three.
#[inline]
fn of(object: Object<'_, '_>) -> PyResult<Option<Foreign>> {
    // The most common arguments are looked at first.
    if object.is_exact_instance_of::<PyTensor>()
        || object.is_exact_instance_of::<PyUntypedArray>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
    {
        return Ok(None);
    }
    Foreign::of(object)
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
        false => class_of(object),
    }
}

/// Calls the operation through the bridge of a library.
pub(super) fn call<'py>(
    py: Python<'py>,
    library: Foreign,
    entry: &Entry,
    objects: &Objects<'_, 'py>,
) -> Given<'py> {
    entry.advise(py, objects)?;
    let given = |k: usize| match objects.get(k).and_then(|object| object.as_deref()) {
        Some(object) => object.clone(),
        None => py.None().into_bound(py),
    };
    let all = PyTuple::new(py, (0..entry.operation.arguments.len()).map(given))?;
    library.call(entry.operation.name, entry.in_place, all)
}
