//! `scatter` and `scatter_`.

use inlay::{Error, Reduce, Scatter};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

use super::{Given, Maybe, Object, Place, operation, twins};
use crate::convert::Call;
use crate::tensor::PyTensor;

twins! {
    /// Write rows of `updates` to the places along `axis` that `index` names.
    ///
    /// Along `axis`, for i in order: ``x[index[i]] (op)= updates[i]``.
    ///
    /// Args:
    ///     x: the tensor to start from, of at least one dimension.
    ///     index: integers, 1-D, or 0-D for a single row. Negative ones count from the end.
    ///     updates: of x's dtype, and of its shape but for `axis`, where it has at least one row for
    ///         each entry of the index; further rows are ignored. Without that axis for a 0-D index.
    ///     overwrite: True assigns, whatever `reduce` says: the last update of a place wins. False
    ///         makes of each place that the index names the reduction of its updates.
    ///     axis: the axis along which the index counts.
    ///     reduce: 'sum' (or 'add'), 'mul' (or 'multiply', 'prod'), 'mean', 'amax' (or 'max'), 'amin'
    ///         (or 'min').
    ///     name: the label of the node in a static graph.
    ///     include_self: whether the old value of a place takes part in its reduction.
    ///
    /// Returns:
    ///     A fresh tensor, or a NumPy array if no argument was a Tensor. Places that the index does
    ///     not name keep x.
    ///
    /// Float sums and products equal the plain loop in index order, with any number of threads.
    /// ``float16`` and ``bfloat16`` are reduced in ``float32`` and rounded once; integers wrap, and
    /// their mean rounds down.
    ///
    /// Raises:
    ///     IndexError: an index or the axis is out of range.
    ///     ValueError: a shape that does not fit, an unknown `reduce`.
    ///     TypeError: dtypes that differ, an index that is not of integers, 'mean' of bool, 'amax' and
    ///         'amin' of complex numbers.
    ///
    /// >>> import inlay, numpy as np
    /// >>> x = np.array([1., 1., 1.])
    /// >>> inlay.scatter(x, [0, 2, 0], [10., 20., 30.])
    /// array([30.,  1., 20.])
    /// >>> inlay.scatter(x, [0, 2, 0], [10., 20., 30.], overwrite=False)
    /// array([40.,  1., 20.])
    /// >>> inlay.scatter(x, [0, 2, 0], [10., 20., 30.], overwrite=False, reduce='mean',
    /// ...               include_self=True)
    /// array([13.66666667,  1.        , 10.5       ])
    scatter scatter_(
        x,
        index: Object<'_, 'py>,
        updates: Object<'_, 'py>,
        overwrite: Maybe<'_, 'py>,
        axis: Maybe<'_, 'py>,
        reduce: Maybe<'_, 'py>,
        name: Maybe<'_, 'py>,
        include_self: Maybe<'_, 'py>,
    )
    [
        index, updates, overwrite=None, axis=None, reduce=None, name=None, *, include_self=None
    ]
    "(x, index, updates, overwrite=True, axis=0, reduce='sum', name=None, *, include_self=False)"
    "($self, index, updates, overwrite=True, axis=0, reduce='sum', name=None, *, include_self=False)"
    => scatter_at
}

fn scatter_at<'py>(
    place: Place,
    py: Python<'py>,
    object: Object<'_, 'py>,
    index: Object<'_, 'py>,
    updates: Object<'_, 'py>,
    overwrite: Maybe<'_, 'py>,
    axis: Maybe<'_, 'py>,
    reduce: Maybe<'_, 'py>,
    name: Maybe<'_, 'py>,
    include_self: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, "scatter");
    call.name(name)?;
    if reduce.is_some() && overwrite.is_none() {
        let text =
            c"scatter: reduce has no effect while overwrite is True, which it is by default; \
            pass overwrite=False to reduce";
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)?;
    }
    let reduction = reduce_of(&call, reduce, "sum", &[])?;
    let how = match reduction {
        Some(reduce) if !call.flag_or("overwrite", overwrite, true)? => Scatter::reduce(reduce),
        _ => Scatter::overwrite(),
    };
    let how = how
        .include_self(call.flag_or("include_self", include_self, false)?)
        .axis(call.integer_or("axis", axis, 0)?);
    let x = place.bring_in(&mut call, "x", object)?;
    let index = call.index("index", index)?;
    let updates = call.values("updates", updates, x.dtype())?;
    place.write(
        call,
        object,
        &x,
        |x| x.scatter(&index, &updates, how),
        |x| x.scatter_(&index, &updates, how).map(drop),
    )
}

/// The reduction of a name, or `None` for one of `others`.
pub(super) fn reduce_of<'py>(
    call: &Call<'py>,
    object: Maybe<'_, 'py>,
    default: &str,
    others: &[&str],
) -> PyResult<Option<Reduce>> {
    let name = call.text_or("reduce", object, default)?;
    let found = Reduce::from_name(&name);
    if found.is_none() && !others.contains(&&*name) {
        let known: String = others.iter().map(|other| format!("{other}, ")).collect();
        let expected = format!("one of {known}{}", Reduce::NAMES);
        let (op, got) = (call.op(), format!("{:?}", &*name));
        return Err(call.raise(&Error::Argument { op, arg: "reduce", got, expected }));
    }
    Ok(found)
}
