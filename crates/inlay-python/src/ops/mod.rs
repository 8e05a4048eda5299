//! The operations as Python functions and as methods of `Tensor`, made from their declarations.
//!
//! Only what is syntax in Python (`x[...]`, operators) and what is not an operation is written here.

mod args;
mod arguments;
mod entry;
mod gradients;
mod item;
mod operators;
mod table;

use pyo3::prelude::*;

use self::arguments::{Objects, Values};
use self::entry::Entry;
use crate::convert::Call;

/// An argument that is there.
type Object<'a, 'py> = &'a Bound<'py, PyAny>;
/// An argument with a default.
type Maybe<'a, 'py> = Option<&'a Bound<'py, PyAny>>;
/// What Python gets.
type Given<'py> = PyResult<Bound<'py, PyAny>>;

/// Calls an operation, or its in-place twin, with the objects of its arguments.
fn call<'py>(py: Python<'py>, entry: &Entry, objects: &Objects<'_, 'py>) -> Given<'py> {
    let mut call = Call::new(py, entry.operation.name);
    let mut values = Values::new();
    arguments::convert(&mut call, entry, objects, &mut values)?;
    let run = || entry.operation.call_bound(entry.in_place, values.given());
    let result = call.run(values.size(), run)?;
    match objects.first() {
        Some(Some(target)) if entry.in_place => Ok((**target).clone()),
        _ => call.give(result),
    }
}

/// Adds the operations to the module and to `Tensor`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    table::register(module)?;
    macro_rules! add {
        ($($name:ident),+) => {
            $(module.add_function(wrap_pyfunction!(gradients::$name, module)?)?;)+
        };
    }
    add!(_set_grad_enabled, grad, is_grad_enabled);
    // Last, since it says what the module exports.
    entry::register(module)
}
