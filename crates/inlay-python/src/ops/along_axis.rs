//! `take_along_axis`, `put_along_axis` and its twin.

use inlay::PutAlongAxis;
use pyo3::prelude::*;

use super::scatter::reduce_of;
use super::{Given, Maybe, Object, Place, operation, twins};
use crate::convert::Call;
use crate::tensor::PyTensor;

operation! {
    /// Single elements at the positions of an index of x's rank: ``x[i][index[i][j]]`` for axis 1.
    ///
    /// With `broadcast`, the index stretches to x's shape off the axis, as in NumPy. Without, it may be
    /// smaller than x there, as in ``torch.gather``.
    ///
    /// >>> import inlay
    /// >>> inlay.take_along_axis([[1, 2, 3], [4, 5, 6]], [[2, 0], [1, 1]], 1)
    /// array([[3, 1],
    ///        [5, 5]])
    take_along_axis(x, index: Object<'_, 'py>, axis: Object<'_, 'py>, broadcast: Maybe<'_, 'py>)
    [index, axis, broadcast=None]
    "(x, index, axis, broadcast=True)"
    "($self, index, axis, broadcast=True)"
    => (|py, x, index, axis, broadcast| {
        let mut call = Call::new(py, "take_along_axis");
        let axis = call.integer("axis", axis)?;
        let broadcast = call.flag_or("broadcast", broadcast, true)?;
        let x = call.array("x", x)?;
        let index = call.index("index", index)?;
        let size = x.numel().max(index.numel());
        let taken = call.run(size, || x.take_along_axis(&index, axis, broadcast))?;
        call.give(taken)
    })
}

twins! {
    /// Write single elements to the positions of an index of x's rank.
    ///
    /// For axis 1 and for j in order: ``x[i][index[i][j][k]][k] (op)= values[i][j][k]``.
    ///
    /// Args:
    ///     x: the tensor to start from.
    ///     index: integers, of x's rank.
    ///     values: of x's dtype.
    ///     axis: the axis along which the index counts.
    ///     reduce: 'assign', or as in ``scatter``: 'add', 'mul', 'mean', 'amax', 'amin'.
    ///     include_self: whether the old value of a place takes part in its reduction.
    ///     broadcast: True stretches index and values to x's shape off the axis, as in Paddle and
    ///         NumPy. With False they may be smaller than x there, and values larger than the index,
    ///         as in torch's ``scatter_reduce``.
    ///
    /// >>> import inlay
    /// >>> inlay.put_along_axis([[0, 0, 0], [0, 0, 0]], [[2], [0]], 7, 1)
    /// array([[0, 0, 7],
    ///        [7, 0, 0]])
    put_along_axis put_along_axis_(
        x,
        index: Object<'_, 'py>,
        values: Object<'_, 'py>,
        axis: Object<'_, 'py>,
        reduce: Maybe<'_, 'py>,
        include_self: Maybe<'_, 'py>,
        broadcast: Maybe<'_, 'py>,
    )
    [index, values, axis, reduce=None, include_self=None, broadcast=None]
    "(x, index, values, axis, reduce='assign', include_self=True, broadcast=True)"
    "($self, index, values, axis, reduce='assign', include_self=True, broadcast=True)"
    => put_along_axis_at
}

fn put_along_axis_at<'py>(
    place: Place,
    py: Python<'py>,
    object: Object<'_, 'py>,
    index: Object<'_, 'py>,
    values: Object<'_, 'py>,
    axis: Object<'_, 'py>,
    reduce: Maybe<'_, 'py>,
    include_self: Maybe<'_, 'py>,
    broadcast: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, "put_along_axis");
    let axis = call.integer("axis", axis)?;
    let how = match reduce_of(&call, reduce, "assign", &["assign"])? {
        Some(reduce) => PutAlongAxis::reduce(axis, reduce),
        None => PutAlongAxis::assign(axis),
    };
    let how = how
        .include_self(call.flag_or("include_self", include_self, true)?)
        .broadcast(call.flag_or("broadcast", broadcast, true)?);
    let x = place.bring_in(&mut call, "x", object)?;
    let index = call.index("index", index)?;
    let values = call.values("values", values, x.dtype())?;
    place.write(
        call,
        object,
        &x,
        |x| x.put_along_axis(&index, &values, how),
        |x| x.put_along_axis_(&index, &values, how).map(drop),
    )
}
