//! `diagonal`, `diagonal_scatter` and `diagonal_scatter_`.

use inlay::DiagonalScatter;
use pyo3::prelude::*;

use super::{Given, Maybe, Object, Place, operation, twins};
use crate::convert::Call;
use crate::tensor::PyTensor;

twins! {
    /// Write `src` onto a diagonal of `input`.
    ///
    /// Args:
    ///     input: the tensor to start from, of at least two dimensions.
    ///     src: of input's dtype, and of the shape of ``diagonal(input, offset, axis1, axis2)``: the
    ///         two axes dropped, the diagonal's length last.
    ///     offset: above the main diagonal if positive, below if negative. Past the edge the diagonal
    ///         is empty, and so must `src` be.
    ///     axis1, axis2: the axes of the rows and of the columns.
    ///     name: the label of the node in a static graph.
    ///
    /// Returns:
    ///     A fresh tensor, or a NumPy array if no argument was a Tensor.
    ///
    /// Raises:
    ///     ValueError: a shape that does not fit, fewer than two dimensions, equal axes.
    ///     IndexError: an axis out of range.
    ///     TypeError: dtypes that differ.
    ///
    /// >>> import inlay, numpy as np
    /// >>> inlay.diagonal_scatter(np.zeros((3, 3), dtype=int), [1, 2], offset=1)
    /// array([[0, 1, 0],
    ///        [0, 0, 2],
    ///        [0, 0, 0]])
    diagonal_scatter diagonal_scatter_(
        input,
        src: Object<'_, 'py>,
        offset: Maybe<'_, 'py>,
        axis1: Maybe<'_, 'py>,
        axis2: Maybe<'_, 'py>,
        name: Maybe<'_, 'py>,
    )
    [src, offset=None, axis1=None, axis2=None, name=None]
    "(input, src, offset=0, axis1=0, axis2=1, name=None)"
    "($self, src, offset=0, axis1=0, axis2=1, name=None)"
    => diagonal_scatter_at
}

fn diagonal_scatter_at<'py>(
    place: Place,
    py: Python<'py>,
    object: Object<'_, 'py>,
    src: Object<'_, 'py>,
    offset: Maybe<'_, 'py>,
    axis1: Maybe<'_, 'py>,
    axis2: Maybe<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, "diagonal_scatter");
    call.name(name)?;
    let at = diagonal_of(&call, offset, axis1, axis2)?;
    let x = place.bring_in(&mut call, "input", object)?;
    let src = call.values("src", src, x.dtype())?;
    place.write(
        call,
        object,
        &x,
        |x| x.diagonal_scatter(&src, at),
        |x| x.diagonal_scatter_(&src, at).map(drop),
    )
}

fn diagonal_of<'py>(
    call: &Call<'py>,
    offset: Maybe<'_, 'py>,
    axis1: Maybe<'_, 'py>,
    axis2: Maybe<'_, 'py>,
) -> PyResult<DiagonalScatter> {
    Ok(DiagonalScatter {
        offset: call.bound_or("offset", offset, 0)?,
        axis1: call.integer_or("axis1", axis1, 0)?,
        axis2: call.integer_or("axis2", axis2, 1)?,
    })
}

operation! {
    /// The diagonal of two axes, as a view: both dropped, the diagonal's length last.
    ///
    /// >>> import inlay
    /// >>> inlay.diagonal([[1, 2, 3], [4, 5, 6]], offset=1)
    /// array([2, 6])
    diagonal(x, offset: Maybe<'_, 'py>, axis1: Maybe<'_, 'py>, axis2: Maybe<'_, 'py>)
    [offset=None, axis1=None, axis2=None]
    "(x, offset=0, axis1=0, axis2=1)"
    "($self, offset=0, axis1=0, axis2=1)"
    => (|py, x, offset, axis1, axis2| {
        let mut call = Call::new(py, "diagonal");
        let at = diagonal_of(&call, offset, axis1, axis2)?;
        let x = call.array("x", x)?;
        let view = call.run(0, || x.diagonal(at))?;
        call.give(view)
    })
}
