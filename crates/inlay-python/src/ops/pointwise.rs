//! Arithmetic, comparisons and `where`.

use inlay::Tensor;
use pyo3::prelude::*;

use super::{Given, Maybe, Object, operation};
use crate::convert::{Arg, Call};
use crate::tensor::PyTensor;

/// An operation of two tensors.
pub(super) type Binary = fn(&Tensor, &Tensor) -> inlay::Result<Tensor>;

/// Applies `make`; a plain number or list beside a tensor or array takes its dtype.
pub(super) fn binary<'py>(
    py: Python<'py>,
    op: &'static str,
    make: Binary,
    x: Object<'_, 'py>,
    y: Object<'_, 'py>,
) -> Given<'py> {
    binary_in(Call::new(py, op), make, x, y)
}

fn binary_in<'py>(
    mut call: Call<'py>,
    make: Binary,
    x: Object<'_, 'py>,
    y: Object<'_, 'py>,
) -> Given<'py> {
    let (x, y) = pair(&mut call, x, y)?;
    let result = call.run(x.numel().max(y.numel()), || make(&x, &y))?;
    call.give(result)
}

fn pair<'a, 'py>(
    call: &mut Call<'py>,
    x: Object<'a, 'py>,
    y: Object<'a, 'py>,
) -> PyResult<(Arg<'a>, Arg<'a>)> {
    if Call::is_untyped(x) && !Call::is_untyped(y) {
        let y = call.array("y", y)?;
        return Ok((call.values("x", x, y.dtype())?, y));
    }
    let x = call.array("x", x)?;
    let y = call.values("y", y, x.dtype())?;
    Ok((x, y))
}

macro_rules! binary_operations {
    ($($name:ident, $doc:literal;)*) => { $(
        operation! {
            #[doc = $doc]
            ///
            /// Shapes broadcast as in NumPy. Both have one dtype; a plain number or a list takes that of
            /// the other.
            $name(x, y: Object<'_, 'py>, name: Maybe<'_, 'py>)
            [y, name=None]
            "(x, y, name=None)"
            "($self, y, name=None)"
            => (|py, x, y, name| {
                let mut call = Call::new(py, stringify!($name));
                call.name(name)?;
                binary_in(call, Tensor::$name, x, y)
            })
        }
    )* };
}
binary_operations!(
    add, "``x + y``, element by element; integers wrap, bools are or-ed.";
    subtract, "``x - y``, element by element; integers wrap; not for bools.";
    multiply, "``x * y``, element by element; integers wrap, bools are and-ed.";
    divide, "``x / y``, element by element; the quotient of integers and bools is float64.";
    equal, "``x == y``, element by element, as bool.";
    not_equal, "``x != y``, element by element, as bool.";
    less_than, "``x < y``, element by element, as bool; not for complex numbers.";
    less_equal, "``x <= y``, element by element, as bool; not for complex numbers.";
    greater_than, "``x > y``, element by element, as bool; not for complex numbers.";
    greater_equal, "``x >= y``, element by element, as bool; not for complex numbers.";
);

/// The elements of `x` where `condition` is true, else those of `y`.
///
/// The condition is bool, x and y have one dtype, and the shapes broadcast as in NumPy.
///
/// >>> import inlay
/// >>> inlay.where([True, False, True], [1, 2, 3], 0)
/// array([1, 0, 3])
#[pyfunction]
#[pyo3(name = "where", signature = (condition, x, y, name=None))]
pub(super) fn where_<'py>(
    py: Python<'py>,
    condition: Object<'_, 'py>,
    x: Object<'_, 'py>,
    y: Object<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, "where");
    call.name(name)?;
    let condition = call.mask("condition", condition)?;
    let (x, y) = pair(&mut call, x, y)?;
    let size = condition.numel().max(x.numel()).max(y.numel());
    let chosen = call.run(size, || condition.choose(&x, &y))?;
    call.give(chosen)
}

#[pymethods]
impl PyTensor {
    /// The elements of `x` where this bool tensor is true, else those of `y`.
    #[pyo3(name = "where", signature = (x, y, name=None))]
    fn where_method<'py>(
        slf: &Bound<'py, Self>,
        x: Object<'_, 'py>,
        y: Object<'_, 'py>,
        name: Maybe<'_, 'py>,
    ) -> Given<'py> {
        where_(slf.py(), slf.as_any(), x, y, name)
    }
}
