//! `slice_scatter` and `slice_scatter_`.

use inlay::{Error, Slice, SliceScatter};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::{Given, Maybe, Object, Place, operation, twins};
use crate::convert::Call;
use crate::tensor::PyTensor;

twins! {
    /// Write `y` into a slice of `x`.
    ///
    /// Args:
    ///     x: the tensor to start from, of at least one dimension.
    ///     y: of x's dtype, and of the shape of ``x[..., start:stop:step, ...]``.
    ///     axis, start, stop, step: the slice, by Python's rules: clamped, negatives from the end,
    ///         any step but 0. Or equally long lists of them, for several axes at once.
    ///     name: the label of the node in a static graph.
    ///
    /// Returns:
    ///     A fresh tensor, or a NumPy array if no argument was a Tensor.
    ///
    /// Raises:
    ///     ValueError: a shape that does not fit, a step of 0, an axis named twice, lists of different
    ///         lengths.
    ///     IndexError: an axis out of range.
    ///     TypeError: dtypes that differ, bounds that are no integers.
    ///
    /// >>> import inlay, numpy as np
    /// >>> x = np.zeros((2, 4), dtype=int)
    /// >>> inlay.slice_scatter(x, [[1, 2], [3, 4]], axis=1, start=1, step=2)
    /// array([[0, 1, 0, 2],
    ///        [0, 3, 0, 4]])
    /// >>> inlay.slice_scatter(x, [[7, 8]], axis=[0, 1], start=[1, -2], stop=[2, 4], step=[1, 1])
    /// array([[0, 0, 0, 0],
    ///        [0, 0, 7, 8]])
    slice_scatter slice_scatter_(
        x,
        y: Object<'_, 'py>,
        axis: Maybe<'_, 'py>,
        start: Maybe<'_, 'py>,
        stop: Maybe<'_, 'py>,
        step: Maybe<'_, 'py>,
        name: Maybe<'_, 'py>,
    )
    [y, axis=None, start=None, stop=None, step=None, name=None]
    "(x, y, axis=0, start=None, stop=None, step=1, name=None)"
    "($self, y, axis=0, start=None, stop=None, step=1, name=None)"
    => slice_scatter_at
}

fn slice_scatter_at<'py>(
    place: Place,
    py: Python<'py>,
    object: Object<'_, 'py>,
    y: Object<'_, 'py>,
    axis: Maybe<'_, 'py>,
    start: Maybe<'_, 'py>,
    stop: Maybe<'_, 'py>,
    step: Maybe<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, "slice_scatter");
    call.name(name)?;
    let at = slices(&call, axis, start, stop, step)?;
    let x = place.bring_in(&mut call, "x", object)?;
    let y = call.values("y", y, x.dtype())?;
    place.write(
        call,
        object,
        &x,
        |x| x.slice_scatter(&y, &at),
        |x| x.slice_scatter_(&y, &at).map(drop),
    )
}

fn slices<'py>(
    call: &Call<'py>,
    axis: Maybe<'_, 'py>,
    start: Maybe<'_, 'py>,
    stop: Maybe<'_, 'py>,
    step: Maybe<'_, 'py>,
) -> PyResult<SliceScatter> {
    let one_of = |arg: &'static str, object: Maybe<'_, 'py>| {
        Call::some(object).map(|object| call.bound(arg, object)).transpose()
    };
    if axis.is_none_or(|axis| axis.is_exact_instance_of::<PyInt>())
        && ![start, stop, step].into_iter().flatten().any(Call::is_list)
    {
        let axis = call.integer_or("axis", axis, 0)?;
        let (start, stop) = (one_of("start", start)?, one_of("stop", stop)?);
        let step = one_of("step", step)?.unwrap_or(1);
        return Ok(SliceScatter::new(axis, Slice { start, stop, step }));
    }
    let axes = match axis {
        Some(axis) => call.integers("axis", axis)?,
        None => vec![0],
    };
    let several = axis.is_some_and(Call::is_list);
    // A bound that is left out is left out for all axes.
    let bounds = |arg: &'static str, object: Maybe<'_, 'py>, default: Option<i64>| {
        let Some(object) = Call::some(object) else { return Ok(vec![default; axes.len()]) };
        let items = Call::items(object)?;
        if Call::is_list(object) != several || items.len() != axes.len() {
            let got = if Call::is_list(object) { items.len().to_string() } else { "one".into() };
            let got = format!("{got} for {}", if several { "a list of axes" } else { "one axis" });
            let expected = format!("as many as axes, {}", axes.len());
            return Err(call.raise(&Error::Argument { op: call.op(), arg, got, expected }));
        }
        let bound = |item: &Bound<'py, PyAny>| match item.is_none() {
            true => Ok(default),
            false => call.bound(arg, item).map(Some),
        };
        items.iter().map(bound).collect::<PyResult<Vec<_>>>()
    };
    let (start, stop) = (bounds("start", start, None)?, bounds("stop", stop, None)?);
    let step = bounds("step", step, Some(1))?;
    let parts = axes.iter().enumerate();
    Ok(parts.fold(SliceScatter::default(), |at, (k, &axis)| {
        at.and(axis, Slice { start: start[k], stop: stop[k], step: step[k].unwrap_or(1) })
    }))
}
