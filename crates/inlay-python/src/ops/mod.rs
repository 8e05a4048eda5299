//! The operations as Python functions and as methods of `Tensor`.
//!
//! They are generated from the declarations of the operations. Only Python syntax (`x[...]`,
//! operators) and functions that are not operations are written by hand.

mod args;
mod arguments;
mod entry;
mod foreign;
mod functions;
mod gradients;
mod hooks;
mod item;
mod operators;
mod requires;
mod table;

use pyo3::prelude::*;

use self::arguments::{Objects, Values};
use self::entry::Entry;
use self::foreign::Way;
use crate::convert::Call;

pub(crate) use operators::is_operand;

/// An argument that is given.
type Object<'a, 'py> = &'a Bound<'py, PyAny>;
/// An argument that may be left out.
type Maybe<'a, 'py> = Option<&'a Bound<'py, PyAny>>;
/// The result of a call.
type Given<'py> = PyResult<Bound<'py, PyAny>>;

/// Calls an operation, or its in-place form, with the objects of its arguments in declared order.
/// Trailing arguments may be left out.
fn call<'py>(py: Python<'py>, entry: &Entry, objects: &Objects<'_, 'py>) -> Given<'py> {
    let found = foreign::library(entry, objects)?;
    let native = match found {
        None => None,
        Some(found) => match foreign::native(py, found, entry, objects) {
            None => return foreign::call(found, entry, objects, None),
            Some(native) => Some((native, found)),
        },
    };
    let mut call = Call::new(py, entry.operation.name);
    let mut values = Values::new();
    let way = arguments::convert(&mut call, entry, objects, native, &mut values)?;
    if let Some(found) = found.filter(|_| way != Way::Short) {
        return foreign::call(found, entry, objects, Some(way));
    }
    let run = || entry.operation.call_bound(entry.in_place, values.given());
    let result = call.run(values.size(), run)?;
    match (objects.first(), native) {
        (Some(Some(target)), native) if entry.in_place => {
            native.map_or(Ok(()), |(native, _)| native.count_write(target))?;
            Ok((**target).clone())
        }
        (_, Some((native, _))) => foreign::give(py, native, entry, result),
        _ => call.give(result),
    }
}

/// Adds the operations to the module and to `Tensor`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    table::register(module)?;
    functions::register(module)?;
    macro_rules! add {
        ($($name:ident),+) => {
            $(module.add_function(wrap_pyfunction!(gradients::$name, module)?)?;)+
        };
    }
    add!(_set_grad_enabled, grad, is_grad_enabled);
    // This must be last, because it replaces the module's `__all__`.
    entry::register(module)
}
