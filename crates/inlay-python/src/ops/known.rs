//! The functions of recent calls, which are found by the objects of their arguments.

use std::cell::RefCell;

use inlay::{Operation, Value};
use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};
use smallvec::SmallVec;

use super::arguments::Objects;

/// The number of functions that are remembered.
const KNOWN: usize = 64;

/// A function, and the arguments that it was made of. They are immutable objects, so the same
/// objects make the same function.
struct Known {
    operation: &'static Operation,
    constants: SmallVec<[Option<Py<PyAny>>; 8]>,
    function: inlay::Function,
}

thread_local! {
    static FUNCTIONS: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

/// Returns the function of a call. That of a recent call with the same objects is found without a
/// look at their values.
pub(super) fn known(
    operation: &'static Operation,
    objects: &Objects<'_, '_>,
    values: &[Value<'_>],
) -> inlay::Result<inlay::Function> {
    let constant = |k: usize| {
        objects[k].filter(|object| !operation.arguments[k].kind.has_tensors() && !object.is_none())
    };
    let is_same = |known: &Known| {
        std::ptr::eq(known.operation, operation)
            && known.constants.len() == objects.len()
            && (0..objects.len()).all(|k| {
                let before = known.constants[k].as_ref().map(Py::as_ptr);
                before == constant(k).map(|object| object.as_ptr())
            })
    };
    let found = FUNCTIONS.with_borrow(|all| {
        all.iter().find(|known| is_same(known)).map(|known| known.function.clone())
    });
    if let Some(function) = found {
        return Ok(function);
    }
    // The objects were converted to values before. A second conversion could run Python code, and
    // an iterator would be at its end.
    let values: SmallVec<[Value<'static>; 8]> = values.iter().map(without_tensors).collect();
    let function = inlay::Function::new(operation.name, &values, &[])?;
    if (0..objects.len()).filter_map(constant).all(is_immutable) {
        let constants =
            (0..objects.len()).map(|k| constant(k).map(|object| object.to_owned().unbind()));
        let known = Known { operation, constants: constants.collect(), function: function.clone() };
        // What is dropped may run Python code, which may call this function.
        let dropped = FUNCTIONS.with_borrow_mut(|all| {
            let dropped = if all.len() >= KNOWN { std::mem::take(all) } else { Vec::new() };
            all.push(known);
            dropped
        });
        drop(dropped);
    }
    Ok(function)
}

fn without_tensors(value: &Value<'_>) -> Value<'static> {
    match value {
        Value::Absent | Value::Tensor(_) | Value::Tensors(_) => Value::Absent,
        Value::Int(value) => Value::Int(*value),
        Value::Flag(value) => Value::Flag(*value),
        Value::Reduce(value) => Value::Reduce(*value),
        Value::DType(value) => Value::DType(*value),
        Value::Device(value) => Value::Device(*value),
        Value::Scalar(value) => Value::Scalar(*value),
        Value::Ints(values) => Value::Ints(values.clone()),
        Value::Bounds(bounds) => Value::Bounds(bounds.clone()),
    }
}

fn is_immutable(object: Borrowed<'_, '_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyString>()
}
