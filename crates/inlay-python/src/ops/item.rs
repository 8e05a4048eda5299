//! `x[...]`, `x[...] = v`, and iteration.

use inlay::{Item, Slice, Tensor};
use numpy::PyUntypedArray;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyInt, PyList, PyRange, PySlice, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};

use super::{Given, Object};
use crate::convert::Call;
use crate::error::Class;
use crate::graph::expect_sizes;
use crate::tensor::PyTensor;

#[pymethods]
impl PyTensor {
    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: Object<'_, 'py>) -> Given<'py> {
        let mut call = Call::new(slf.py(), "getitem");
        let items = items_of(&mut call, key)?;
        let x = call.array("x", slf.as_any())?;
        // Without a tensor among the items the result is a view, so no elements are processed.
        let size = if has_tensor(&items) { x.numel() } else { 0 };
        let part = call.run(size, || x.index(&items))?;
        call.give(part)
    }

    fn __setitem__<'py>(
        slf: &Bound<'py, Self>,
        key: Object<'_, 'py>,
        value: Object<'_, 'py>,
    ) -> PyResult<()> {
        let mut call = Call::new(slf.py(), "setitem");
        let items = items_of(&mut call, key)?;
        let x = call.target("x", slf.as_any())?;
        let value = call.values("value", value, x.dtype())?;
        call.run(x.numel(), || x.assign(&items, &value))
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<RowIterator> {
        let tensor = slf.get().inner();
        if tensor.rank() == 0 {
            return Err(Class::Type.error(slf.py(), "iter: a 0-D tensor has no rows"));
        }
        if tensor.is_symbolic() && tensor.shape()[0] == Tensor::UNKNOWN {
            expect_sizes(tensor.shape())?;
            let text = "iter: the size of a symbolic tensor is not known yet";
            return Err(Class::Type.error(slf.py(), text));
        }
        Ok(RowIterator { tensor: tensor.clone(), next: 0 })
    }
}

/// The iterator over the rows of a tensor.
#[pyclass(module = "inlay")]
pub(crate) struct RowIterator {
    tensor: Tensor,
    next: usize,
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<PyTensor>> {
        if self.next >= self.tensor.shape().first().copied().unwrap_or(0) {
            return Ok(None);
        }
        let call = Call::new(py, "iter");
        let row = call.run(0, || self.tensor.index(&[Item::At(self.next as i64)]))?;
        self.next += 1;
        Ok(Some(PyTensor::new(row)))
    }
}

fn has_tensor(items: &[Item]) -> bool {
    items.iter().any(|item| matches!(item, Item::Tensor(_)))
}

fn items_of<'py>(call: &mut Call<'py>, key: Object<'_, 'py>) -> PyResult<SmallVec<[Item; 2]>> {
    match key.is_instance_of::<PyTuple>() {
        true => Call::items(key).iter().map(|part| item_of(call, part)).collect(),
        false => Ok(smallvec![item_of(call, key)?]),
    }
}

fn item_of<'py>(call: &mut Call<'py>, part: Object<'_, 'py>) -> PyResult<Item> {
    // Integers come first: the question for `__dlpack__` below would make and drop an exception.
    if part.is_exact_instance_of::<PyInt>() {
        return call.bound("index", part).map(Item::At);
    }
    if part.is_none() {
        return Ok(Item::NewAxis);
    }
    if part.is_instance_of::<PyEllipsis>() {
        return Ok(Item::Ellipsis);
    }
    if let Ok(slice) = part.cast::<PySlice>() {
        // Interned, because making three strings takes longer than slicing.
        let py = part.py();
        let bound = |name: &'static str, interned: &Bound<'py, PyString>| {
            let value = slice.getattr(interned)?;
            if value.is_none() { Ok(None) } else { call.bound(name, &value).map(Some) }
        };
        let start = bound("start", intern!(py, "start"))?;
        let stop = bound("stop", intern!(py, "stop"))?;
        let step = bound("step", intern!(py, "step"))?.unwrap_or(1);
        return Ok(Item::Slice(Slice { start, stop, step }));
    }
    let is_array = part.is_instance_of::<PyTensor>()
        || part.is_instance_of::<PyUntypedArray>()
        || part.is_instance_of::<PyList>()
        || part.is_instance_of::<PyTuple>()
        || part.is_instance_of::<PyRange>()
        || part.is_instance_of::<pyo3::types::PyBool>()
        // `call.index` refuses arrays of other libraries with a message that names their type. The
        // conversion to an integer below would lose their shape.
        || part.hasattr(intern!(part.py(), "__dlpack__"))?;
    if is_array {
        return call.index("index", part).map(|index| Item::Tensor(index.into_owned()));
    }
    call.bound("index", part).map(Item::At)
}
