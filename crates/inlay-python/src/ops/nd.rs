//! `index_add`, `index_put` with their twins, `scatter_nd`, `scatter_nd_add`, `concat`, `stack`.

use inlay::Tensor;
use pyo3::prelude::*;

use super::{Given, Maybe, Object, Place, operation, twins};
use crate::convert::{Arg, Call};
use crate::tensor::PyTensor;

twins! {
    /// Add rows of `value` to the places along `axis` that a 1-D index names, duplicates too.
    ///
    /// >>> import inlay
    /// >>> inlay.index_add([1, 1, 1], [0, 0, -1], 0, [10, 20, 30])
    /// array([31,  1, 31])
    index_add index_add_(
        x,
        index: Object<'_, 'py>,
        axis: Object<'_, 'py>,
        value: Object<'_, 'py>,
        name: Maybe<'_, 'py>,
    )
    [index, axis, value, name=None]
    "(x, index, axis, value, name=None)"
    "($self, index, axis, value, name=None)"
    => index_add_at
}

fn index_add_at<'py>(
    place: Place,
    py: Python<'py>,
    object: Object<'_, 'py>,
    index: Object<'_, 'py>,
    axis: Object<'_, 'py>,
    value: Object<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, "index_add");
    call.name(name)?;
    let axis = call.integer("axis", axis)?;
    let x = place.bring_in(&mut call, "x", object)?;
    let index = call.index("index", index)?;
    let value = call.values("value", value, x.dtype())?;
    place.write(
        call,
        object,
        &x,
        |x| x.index_add(&index, axis, &value),
        |x| x.index_add_(&index, axis, &value).map(drop),
    )
}

twins! {
    /// Write `value` to ``x[indices[0], indices[1], ...]``, or add it with `accumulate`.
    ///
    /// The indices are integer tensors for the first axes, which broadcast together, or a single bool
    /// mask. The value broadcasts to the shape of what is written. Duplicates are processed in order.
    ///
    /// >>> import inlay, numpy as np
    /// >>> inlay.index_put(np.zeros((2, 2), int), ([0, 1, 1], [1, 0, 0]), [5, 6, 7])
    /// array([[0, 5],
    ///        [7, 0]])
    index_put index_put_(
        x,
        indices: Object<'_, 'py>,
        value: Object<'_, 'py>,
        accumulate: Maybe<'_, 'py>,
        name: Maybe<'_, 'py>,
    )
    [indices, value, accumulate=None, name=None]
    "(x, indices, value, accumulate=False, name=None)"
    "($self, indices, value, accumulate=False, name=None)"
    => index_put_at
}

fn index_put_at<'py>(
    place: Place,
    py: Python<'py>,
    object: Object<'_, 'py>,
    indices: Object<'_, 'py>,
    value: Object<'_, 'py>,
    accumulate: Maybe<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, "index_put");
    call.name(name)?;
    let accumulate = call.flag_or("accumulate", accumulate, false)?;
    let x = place.bring_in(&mut call, "x", object)?;
    if !Call::is_list(indices) {
        return Err(call.expected("indices", indices, "a tuple or list of tensors"));
    }
    let indices = Call::items(indices)?;
    let indices = indices.iter().map(|index| call.index("indices", index).map(Arg::into_owned));
    let indices = indices.collect::<PyResult<Vec<Tensor>>>()?;
    let value = call.values("value", value, x.dtype())?;
    let all = || indices.iter().collect::<Vec<&Tensor>>();
    place.write(
        call,
        object,
        &x,
        |x| x.index_put(&all(), &value, accumulate),
        |x| x.index_put_(&all(), &value, accumulate).map(drop),
    )
}

operation! {
    /// Add ``updates[i]`` to ``x[index[i]]`` for every row of `index`, whose last axis names a place on
    /// the first axes of x.
    ///
    /// >>> import inlay, numpy as np
    /// >>> inlay.scatter_nd_add(np.zeros((2, 2), int), [[0, 1], [0, 1]], [5, 6])
    /// array([[ 0, 11],
    ///        [ 0,  0]])
    scatter_nd_add(x, index: Object<'_, 'py>, updates: Object<'_, 'py>, name: Maybe<'_, 'py>)
    [index, updates, name=None]
    "(x, index, updates, name=None)"
    "($self, index, updates, name=None)"
    => (|py, x, index, updates, name| {
        let mut call = Call::new(py, "scatter_nd_add");
        call.name(name)?;
        let x = call.array("x", x)?;
        let index = call.index("index", index)?;
        let updates = call.values("updates", updates, x.dtype())?;
        let result = call.run(x.numel(), || x.scatter_nd_add(&index, &updates))?;
        call.give(result)
    })
}

/// Zeros of `shape` to which ``scatter_nd_add`` has added.
///
/// >>> import inlay
/// >>> inlay.scatter_nd([[1], [1]], [5, 6], [3])
/// array([ 0, 11,  0])
#[pyfunction]
#[pyo3(signature = (index, updates, shape, name=None))]
pub(super) fn scatter_nd<'py>(
    py: Python<'py>,
    index: Object<'_, 'py>,
    updates: Object<'_, 'py>,
    shape: Object<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, "scatter_nd");
    call.name(name)?;
    let shape = call.sizes("shape", shape)?;
    let index = call.index("index", index)?;
    let updates = call.array("updates", updates)?;
    let result = call.run(usize::MAX, || Tensor::scatter_nd(&index, &updates, &shape))?;
    call.give(result)
}

/// The tensors one after the other along `axis`.
///
/// >>> import inlay
/// >>> inlay.concat([[[1, 2]], [[3, 4]]])
/// array([[1, 2],
///        [3, 4]])
#[pyfunction]
#[pyo3(signature = (x, axis=None, name=None), text_signature = "(x, axis=0, name=None)")]
pub(super) fn concat<'py>(
    py: Python<'py>,
    x: Object<'_, 'py>,
    axis: Maybe<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    join(py, "concat", Tensor::concat, [Some(x), axis, name])
}

/// The tensors along a new axis.
///
/// >>> import inlay
/// >>> inlay.stack([[1, 2], [3, 4]], axis=1)
/// array([[1, 3],
///        [2, 4]])
#[pyfunction]
#[pyo3(signature = (x, axis=None, name=None), text_signature = "(x, axis=0, name=None)")]
pub(super) fn stack<'py>(
    py: Python<'py>,
    x: Object<'_, 'py>,
    axis: Maybe<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    join(py, "stack", Tensor::stack, [Some(x), axis, name])
}

fn join<'py>(
    py: Python<'py>,
    op: &'static str,
    make: fn(&[&Tensor], i64) -> inlay::Result<Tensor>,
    [x, axis, name]: [Maybe<'_, 'py>; 3],
) -> Given<'py> {
    let mut call = Call::new(py, op);
    call.name(name)?;
    let axis = call.integer_or("axis", axis, 0)?;
    let items = match x {
        Some(x) if Call::is_list(x) => Call::items(x)?,
        Some(x) => return Err(call.expected("x", x, "a list or tuple of tensors")),
        None => vec![],
    };
    let tensors = items.iter().map(|item| call.array("x", item)).collect::<PyResult<Vec<_>>>()?;
    let size = tensors.iter().map(|tensor| tensor.numel()).sum();
    let result =
        call.run(size, || make(&tensors.iter().map(|tensor| &**tensor).collect::<Vec<_>>(), axis))?;
    call.give(result)
}
