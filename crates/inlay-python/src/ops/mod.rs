//! The operations as Python functions and as methods of `Tensor`.
//!
//! An operation is written once, as a function of [`Place`] and its arguments; [`operation!`] and
//! [`twins!`] make of it what Python calls.
#![expect(clippy::too_many_arguments, reason = "a binding has as many as the Python function")]

mod along_axis;
mod args;
mod create;
mod diagonal;
mod gradients;
mod index;
mod item;
mod masked;
mod nd;
mod operators;
mod pointwise;
mod reduce;
mod scatter;
mod shape;
mod slice;
mod triangle;

use pyo3::prelude::*;

use crate::convert::{Arg, Call};
use inlay::Tensor;

/// An argument that is there.
type Object<'a, 'py> = &'a Bound<'py, PyAny>;
/// An argument with a default.
type Maybe<'a, 'py> = Option<&'a Bound<'py, PyAny>>;
/// What Python gets.
type Given<'py> = PyResult<Bound<'py, PyAny>>;

/// Where a write goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Into a fresh result.
    Fresh,
    /// Into the first argument, which is returned.
    Target,
}

impl Place {
    /// The first argument of a write.
    fn bring_in<'a, 'py>(
        self,
        call: &mut Call<'py>,
        arg: &'static str,
        x: Object<'a, 'py>,
    ) -> PyResult<Arg<'a>> {
        match self {
            Place::Fresh => call.array(arg, x),
            Place::Target => call.target(arg, x),
        }
    }

    /// Runs a write on `x`, which came as `object`: `fresh` or `in_place`.
    fn write<'py>(
        self,
        call: Call<'py>,
        object: Object<'_, 'py>,
        x: &Tensor,
        fresh: impl FnOnce(&Tensor) -> inlay::Result<Tensor> + Send,
        in_place: impl FnOnce(&Tensor) -> inlay::Result<()> + Send,
    ) -> Given<'py> {
        match self {
            Place::Fresh => {
                let result = call.run(x.numel(), || fresh(x))?;
                call.give(result)
            }
            Place::Target => {
                call.run(x.numel(), || in_place(x))?;
                Ok(object.clone())
            }
        }
    }
}

/// A function and a method out of a body that takes the interpreter and the arguments.
///
/// The two texts are the signatures that `help` shows, with the defaults' values.
macro_rules! operation {
    (
        $(#[$doc:meta])*
        $name:ident($first:ident $(, $arg:ident: $ty:ty)* $(,)?)
        [$($signature:tt)*] $function_text:literal $method_text:literal
        => $body:expr
    ) => {
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = ($first, $($signature)*), text_signature = $function_text)]
        pub(super) fn $name<'py>(
            py: Python<'py>,
            $first: &Bound<'py, PyAny>,
            $($arg: $ty),*
        ) -> Given<'py> {
            $body(py, $first, $($arg),*)
        }

        #[pymethods]
        impl PyTensor {
            $(#[$doc])*
            #[pyo3(signature = ($($signature)*), text_signature = $method_text)]
            fn $name<'py>(slf: &Bound<'py, Self>, $($arg: $ty),*) -> Given<'py> {
                $body(slf.py(), slf.as_any(), $($arg),*)
            }
        }
    };
}
use operation;

/// An operation and its twin that writes into its first argument, out of a body that takes the
/// [`Place`] first.
macro_rules! twins {
    (
        $(#[$doc:meta])*
        $name:ident $twin:ident($first:ident $(, $arg:ident: $ty:ty)* $(,)?)
        [$($signature:tt)*] $function_text:literal $method_text:literal
        => $body:expr
    ) => {
        operation! {
            $(#[$doc])*
            $name($first $(, $arg: $ty)*)
            [$($signature)*] $function_text $method_text
            => (|py, $first, $($arg),*| $body(Place::Fresh, py, $first, $($arg),*))
        }
        operation! {
            #[doc = concat!("``", stringify!($name), "`` in place: writes into `", stringify!($first),
                "` and returns it.")]
            #[doc = ""]
            #[doc = concat!("`", stringify!($first), "` is a Tensor or a NumPy array that can be written. ",
                "When the call raises, it is what it was.")]
            $twin($first $(, $arg: $ty)*)
            [$($signature)*] $function_text $method_text
            => (|py, $first, $($arg),*| $body(Place::Target, py, $first, $($arg),*))
        }
    };
}
use twins;

/// Adds the operations to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        ($($file:ident: $($name:ident),+;)+) => {
            $($(module.add_function(wrap_pyfunction!($file::$name, module)?)?;)+)+
        };
    }
    add!(
        gradients: _set_grad_enabled, grad, is_grad_enabled;
        along_axis: put_along_axis, put_along_axis_, take_along_axis;
        create: arange, full, ones, zeros;
        diagonal: diagonal, diagonal_scatter, diagonal_scatter_;
        index: index_fill, index_fill_, index_select, select_scatter, select_scatter_;
        masked: masked_fill, masked_fill_, masked_scatter, masked_scatter_, masked_select;
        nd: concat, index_add, index_add_, index_put, index_put_, scatter_nd, scatter_nd_add, stack;
        pointwise: add, divide, equal, greater_equal, greater_than, less_equal, less_than,
            multiply, not_equal, subtract, where_;
        scatter: scatter, scatter_;
        reduce: amax, amin, mean, prod, sum;
        shape: broadcast_to, cast, reshape, transpose;
        slice: slice_scatter, slice_scatter_;
        triangle: tril, tril_indices, triu, triu_indices;
    );
    Ok(())
}
