//! `masked_scatter`, `masked_fill`, their twins, and `masked_select`.

use pyo3::prelude::*;

use super::{Given, Maybe, Object, Place, operation, twins};
use crate::convert::Call;
use crate::tensor::PyTensor;

twins! {
    /// Write the elements of `source`, in order, to the true places of `mask`.
    ///
    /// The k-th true place of the mask, in row-major order, takes the k-th element of the source, in
    /// row-major order.
    ///
    /// Args:
    ///     input: the tensor to start from.
    ///     mask: bool; broadcasts to input's shape.
    ///     source: of input's dtype, any shape, and at least as many elements as the mask selects.
    ///     name: the label of the node in a static graph.
    ///
    /// Returns:
    ///     A fresh tensor, or a NumPy array if no argument was a Tensor.
    ///
    /// Raises:
    ///     ValueError: a mask that does not broadcast, a source with too few elements.
    ///     TypeError: a mask that is not bool, dtypes that differ.
    ///
    /// >>> import inlay, numpy as np
    /// >>> x = np.zeros((2, 3), dtype=int)
    /// >>> inlay.masked_scatter(x, [[True, False, True], [False, True, False]], [1, 2, 3, 4])
    /// array([[1, 0, 2],
    ///        [0, 3, 0]])
    masked_scatter masked_scatter_(
        input,
        mask: Object<'_, 'py>,
        source: Object<'_, 'py>,
        name: Maybe<'_, 'py>,
    )
    [mask, source, name=None]
    "(input, mask, source, name=None)"
    "($self, mask, source, name=None)"
    => masked_scatter_at
}

fn masked_scatter_at<'py>(
    place: Place,
    py: Python<'py>,
    object: Object<'_, 'py>,
    mask: Object<'_, 'py>,
    source: Object<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, "masked_scatter");
    call.name(name)?;
    let x = place.bring_in(&mut call, "input", object)?;
    let mask = call.mask("mask", mask)?;
    let source = call.values("source", source, x.dtype())?;
    place.write(
        call,
        object,
        &x,
        |x| x.masked_scatter(&mask, &source),
        |x| x.masked_scatter_(&mask, &source).map(drop),
    )
}

twins! {
    /// Write one value to the true places of `mask`, which is bool and broadcasts to x's shape.
    ///
    /// `value` is a number that x's dtype takes, or a 0-D tensor of that dtype.
    ///
    /// >>> import inlay
    /// >>> inlay.masked_fill([1, 2, 3], [True, False, True], 0)
    /// array([0, 2, 0])
    masked_fill masked_fill_(
        x,
        mask: Object<'_, 'py>,
        value: Object<'_, 'py>,
        name: Maybe<'_, 'py>,
    )
    [mask, value, name=None]
    "(x, mask, value, name=None)"
    "($self, mask, value, name=None)"
    => masked_fill_at
}

fn masked_fill_at<'py>(
    place: Place,
    py: Python<'py>,
    object: Object<'_, 'py>,
    mask: Object<'_, 'py>,
    value: Object<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, "masked_fill");
    call.name(name)?;
    let x = place.bring_in(&mut call, "x", object)?;
    let mask = call.mask("mask", mask)?;
    let value = call.values("value", value, x.dtype())?;
    place.write(
        call,
        object,
        &x,
        |x| x.masked_fill(&mask, &*value),
        |x| x.masked_fill_(&mask, &*value).map(drop),
    )
}

operation! {
    /// The elements at the true places of `mask`, 1-D, in row-major order.
    ///
    /// The mask is bool and broadcasts to x's shape.
    ///
    /// >>> import inlay
    /// >>> inlay.masked_select([[1, 2], [3, 4]], [True, False])
    /// array([1, 3])
    masked_select(x, mask: Object<'_, 'py>, name: Maybe<'_, 'py>)
    [mask, name=None]
    "(x, mask, name=None)"
    "($self, mask, name=None)"
    => (|py, x, mask, name| {
        let mut call = Call::new(py, "masked_select");
        call.name(name)?;
        let x = call.array("x", x)?;
        let mask = call.mask("mask", mask)?;
        let found = call.run(x.numel(), || x.masked_select(&mask))?;
        call.give(found)
    })
}
