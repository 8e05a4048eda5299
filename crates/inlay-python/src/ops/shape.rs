//! `cast`, `reshape`, `transpose`, `broadcast_to`.

use pyo3::prelude::*;

use super::{Given, Maybe, Object, operation};
use crate::convert::Call;
use crate::dtype;
use crate::tensor::PyTensor;

operation! {
    /// A copy in another dtype.
    ///
    /// Floats become integers by cutting off the fraction, ending at the type's ends, NaN at 0;
    /// integers wrap; whatever is not 0 is true. Complex numbers become only complex ones or bool.
    ///
    /// >>> import inlay
    /// >>> inlay.cast([1.5, -1.5, 300.0], 'uint8')
    /// array([  1,   0, 255], dtype=uint8)
    cast(x, dtype: Object<'_, 'py>)
    [dtype]
    "(x, dtype)"
    "($self, dtype)"
    => (|py, x, dtype| {
        let mut call = Call::new(py, "cast");
        let dtype = dtype::parse("cast", dtype)?;
        let x = call.array("x", x)?;
        let result = call.run(x.numel(), || x.cast(dtype))?;
        call.give(result)
    })
}

operation! {
    /// The same elements in row-major order under another shape, in which one size may be -1.
    ///
    /// A view where strides can say it, else a copy.
    ///
    /// >>> import inlay
    /// >>> inlay.reshape([1, 2, 3, 4], [2, -1])
    /// array([[1, 2],
    ///        [3, 4]])
    reshape(x, shape: Object<'_, 'py>, name: Maybe<'_, 'py>)
    [shape, name=None]
    "(x, shape, name=None)"
    "($self, shape, name=None)"
    => (|py, x, shape, name| {
        let mut call = Call::new(py, "reshape");
        call.name(name)?;
        let shape = call.integers("shape", shape)?;
        let x = call.array("x", x)?;
        let result = call.run(x.numel(), || x.reshape(&shape))?;
        call.give(result)
    })
}

operation! {
    /// The axes in the order of `perm`, as a view.
    ///
    /// >>> import inlay
    /// >>> inlay.transpose([[1, 2, 3]], [1, 0]).shape
    /// (3, 1)
    transpose(x, perm: Object<'_, 'py>, name: Maybe<'_, 'py>)
    [perm, name=None]
    "(x, perm, name=None)"
    "($self, perm, name=None)"
    => (|py, x, perm, name| {
        let mut call = Call::new(py, "transpose");
        call.name(name)?;
        let perm = call.integers("perm", perm)?;
        let x = call.array("x", x)?;
        let result = call.run(0, || x.transpose(&perm))?;
        call.give(result)
    })
}

operation! {
    /// x stretched to `shape` by NumPy's rules, as a view whose repeated elements are the same.
    ///
    /// In-place operations refuse such a view.
    ///
    /// >>> import inlay
    /// >>> inlay.broadcast_to([1, 2], [2, 2])
    /// array([[1, 2],
    ///        [1, 2]])
    broadcast_to(x, shape: Object<'_, 'py>, name: Maybe<'_, 'py>)
    [shape, name=None]
    "(x, shape, name=None)"
    "($self, shape, name=None)"
    => (|py, x, shape, name| {
        let mut call = Call::new(py, "broadcast_to");
        call.name(name)?;
        let shape = call.sizes("shape", shape)?;
        let x = call.array("x", x)?;
        let result = call.run(0, || x.broadcast_to(&shape))?;
        call.give(result)
    })
}
