//! `index_select`, and `index_fill`, `select_scatter` with their twins.

use inlay::SelectScatter;
use pyo3::prelude::*;

use super::{Given, Maybe, Object, Place, operation, twins};
use crate::convert::Call;
use crate::tensor::PyTensor;

operation! {
    /// The rows along `axis` at the positions of a 1-D index, in its order.
    ///
    /// >>> import inlay
    /// >>> inlay.index_select([[1, 2], [3, 4]], [1, 1, -2])
    /// array([[3, 4],
    ///        [3, 4],
    ///        [1, 2]])
    index_select(x, index: Object<'_, 'py>, axis: Maybe<'_, 'py>, name: Maybe<'_, 'py>)
    [index, axis=None, name=None]
    "(x, index, axis=0, name=None)"
    "($self, index, axis=0, name=None)"
    => (|py, x, index, axis, name| {
        let mut call = Call::new(py, "index_select");
        call.name(name)?;
        let axis = call.integer_or("axis", axis, 0)?;
        let x = call.array("x", x)?;
        let index = call.index("index", index)?;
        let rows = call.run(x.numel().max(index.numel()), || x.index_select(&index, axis))?;
        call.give(rows)
    })
}

twins! {
    /// Write one value to the rows along `axis` that a 1-D index names.
    ///
    /// `value` is a number that x's dtype takes, or a 0-D tensor of that dtype.
    ///
    /// >>> import inlay
    /// >>> inlay.index_fill([[1, 2], [3, 4]], [0], 1, 9)
    /// array([[9, 2],
    ///        [9, 4]])
    index_fill index_fill_(
        x,
        index: Object<'_, 'py>,
        axis: Object<'_, 'py>,
        value: Object<'_, 'py>,
        name: Maybe<'_, 'py>,
    )
    [index, axis, value, name=None]
    "(x, index, axis, value, name=None)"
    "($self, index, axis, value, name=None)"
    => index_fill_at
}

fn index_fill_at<'py>(
    place: Place,
    py: Python<'py>,
    object: Object<'_, 'py>,
    index: Object<'_, 'py>,
    axis: Object<'_, 'py>,
    value: Object<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, "index_fill");
    call.name(name)?;
    let axis = call.integer("axis", axis)?;
    let x = place.bring_in(&mut call, "x", object)?;
    let index = call.index("index", index)?;
    let value = call.values("value", value, x.dtype())?;
    place.write(
        call,
        object,
        &x,
        |x| x.index_fill(&index, axis, &*value),
        |x| x.index_fill_(&index, axis, &*value).map(drop),
    )
}

twins! {
    /// Write `values`, which lacks `axis`, to one position of that axis.
    ///
    /// >>> import inlay
    /// >>> inlay.select_scatter([[1, 2], [3, 4]], [8, 9], 1, -1)
    /// array([[1, 8],
    ///        [3, 9]])
    select_scatter select_scatter_(
        x,
        values: Object<'_, 'py>,
        axis: Object<'_, 'py>,
        index: Object<'_, 'py>,
        name: Maybe<'_, 'py>,
    )
    [values, axis, index, name=None]
    "(x, values, axis, index, name=None)"
    "($self, values, axis, index, name=None)"
    => select_scatter_at
}

fn select_scatter_at<'py>(
    place: Place,
    py: Python<'py>,
    object: Object<'_, 'py>,
    values: Object<'_, 'py>,
    axis: Object<'_, 'py>,
    index: Object<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, "select_scatter");
    call.name(name)?;
    let at =
        SelectScatter { axis: call.integer("axis", axis)?, index: call.bound("index", index)? };
    let x = place.bring_in(&mut call, "x", object)?;
    let values = call.values("values", values, x.dtype())?;
    place.write(
        call,
        object,
        &x,
        |x| x.select_scatter(&values, at),
        |x| x.select_scatter_(&values, at).map(drop),
    )
}
