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
mod kernel;
mod known;
mod operators;
mod recorded;
mod requires;
mod table;

use pyo3::prelude::*;

use self::arguments::{Objects, Values};
use self::entry::Entry;
use self::foreign::{Found, Way};
use crate::convert::Call;

pub(crate) use operators::is_operand;

/// An argument that is given.
type Object<'a, 'py> = &'a Bound<'py, PyAny>;
/// An argument that may be left out.
type Maybe<'a, 'py> = Option<&'a Bound<'py, PyAny>>;
/// The result of a call.
type Given<'py> = PyResult<Bound<'py, PyAny>>;

/// How a call on tensors of another library may end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// With a plain result. A gradient is not recorded.
    Plain,
    /// With a plain result, or a node of the library's graph if a gradient is needed.
    Node,
}

/// Calls an operation, or its in-place form, with the objects of its arguments in declared order.
/// Trailing arguments may be left out.
fn call<'py>(py: Python<'py>, entry: &Entry, objects: &Objects<'_, 'py>) -> Given<'py> {
    let Some(found) = foreign::library(entry, objects)? else {
        let mut call = Call::new(py, entry.operation.name);
        let mut values = Values::new();
        arguments::convert(&mut call, entry, objects, None, &mut values)?;
        let run = || entry.operation.call_bound(entry.in_place, values.given());
        let result = call.run(values.size(), run)?;
        return match objects.first() {
            Some(Some(target)) if entry.in_place => Ok((**target).clone()),
            _ => call.give(result),
        };
    };
    let mut advised = false;
    match call_found(py, entry, objects, found, Ending::Node, &mut advised)? {
        Some(result) => Ok(result),
        None => foreign::call(found, entry, objects, advised),
    }
}

/// [`call`], but returns `None` for a call that is not on plain tensors of another library.
fn call_short<'py>(
    py: Python<'py>,
    entry: &Entry,
    objects: &Objects<'_, 'py>,
    ending: Ending,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match foreign::library(entry, objects)? {
        Some(found) => call_found(py, entry, objects, found, ending, &mut false),
        None => Ok(None),
    }
}

/// Calls an operation on tensors of a library. Returns `None` if the call must go through the bridge;
/// `advised` then says whether the user was warned about its arguments.
fn call_found<'py>(
    py: Python<'py>,
    entry: &Entry,
    objects: &Objects<'_, 'py>,
    found: Found,
    ending: Ending,
    advised: &mut bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(native) = foreign::native(py, found, entry, objects) else { return Ok(None) };
    let mut call = Call::new(py, entry.operation.name);
    let mut values = Values::new();
    let way = arguments::convert(&mut call, entry, objects, Some((native, found)), &mut values)?;
    *advised = true;
    if way == Way::Long {
        return Ok(None);
    }
    let run = || entry.operation.call_bound(entry.in_place, values.given());
    let result = call.run(values.size(), run);
    let target = objects.first().copied().flatten().filter(|_| entry.in_place);
    if let Some(target) = &target
        && (result.is_ok() || call.watch().was_replaced())
    {
        native.count_write(target)?;
    }
    let result = result?;
    let given = match (target, way) {
        (Some(target), _) => (*target).clone(),
        (_, Way::Recorded(wanted)) if ending == Ending::Node => {
            recorded::record((native, found), entry, objects, values, wanted, result)?
        }
        _ => foreign::give(py, native, entry, result)?,
    };
    Ok(Some(given))
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
