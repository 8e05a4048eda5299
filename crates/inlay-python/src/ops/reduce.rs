//! `sum`, `mean`, `prod`, `amax`, `amin`.

use inlay::Tensor;
use pyo3::prelude::*;

use super::{Given, Maybe, Object, operation};
use crate::convert::Call;
use crate::tensor::PyTensor;

type Reduce = fn(&Tensor, Option<&[i64]>, bool) -> inlay::Result<Tensor>;

fn reduce<'py>(
    py: Python<'py>,
    op: &'static str,
    make: Reduce,
    x: Object<'_, 'py>,
    [axis, keepdim, name]: [Maybe<'_, 'py>; 3],
) -> Given<'py> {
    let mut call = Call::new(py, op);
    call.name(name)?;
    let axes = Call::some(axis).map(|axis| call.integers("axis", axis)).transpose()?;
    let keepdim = call.flag_or("keepdim", keepdim, false)?;
    let x = call.array("x", x)?;
    let result = call.run(x.numel(), || make(&x, axes.as_deref(), keepdim))?;
    call.give(result)
}

macro_rules! reductions {
    ($($name:ident: $($doc:literal)+;)*) => { $(
        operation! {
            $(#[doc = $doc])+
            ///
            /// `axis` is one, a list of them, or None for all; `keepdim` leaves them with size 1. The order
            /// of steps depends on the shape alone, so the result does not depend on the number of threads.
            $name(x, axis: Maybe<'_, 'py>, keepdim: Maybe<'_, 'py>, name: Maybe<'_, 'py>)
            [axis=None, keepdim=None, name=None]
            "(x, axis=None, keepdim=False, name=None)"
            "($self, axis=None, keepdim=False, name=None)"
            => (|py, x, axis, keepdim, name| {
                reduce(py, stringify!($name), Tensor::$name, x, [axis, keepdim, name])
            })
        }
    )* };
}
reductions!(
    sum: "The sum over axes."
        ""
        "Integers and bools are summed in 64 bits and wrap, 16-bit floats in 32 and rounded once."
        ""
        ">>> import inlay"
        ">>> inlay.sum([[1, 2], [3, 4]], axis=0)"
        "array([4, 6])";
    mean: "The mean over axes; that of integers is taken without overflow and rounded down."
        ""
        ">>> import inlay"
        ">>> inlay.mean([[1., 2.], [3., 4.]], axis=1)"
        "array([1.5, 3.5])";
    prod: "The product over axes."
        ""
        "Integers and bools are multiplied in 64 bits and wrap, 16-bit floats in 32 and rounded once."
        ""
        ">>> import inlay"
        ">>> inlay.prod([[1, 2], [3, 4]], axis=0)"
        "array([3, 8])";
    amax: "The largest over axes; NaN if one is. Its gradient is shared by all that equal it."
        ""
        ">>> import inlay"
        ">>> inlay.amax([[1, 5], [3, 4]], axis=0)"
        "array([3, 5])";
    amin: "The smallest over axes; NaN if one is. Its gradient is shared by all that equal it."
        ""
        ">>> import inlay"
        ">>> inlay.amin([[1, 5], [3, 4]], axis=0)"
        "array([1, 4])";
);
