//! Conversion of arguments that are not tensors: flags, names, axes, shapes.

use std::borrow::Cow;

use inlay::Error;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};

use super::{Maybe, Object};
use crate::convert::Call;
use crate::error::{Class, described};

impl<'py> Call<'py> {
    /// Returns the argument if it is given and is not `None`.
    pub(super) fn some<'a>(object: Maybe<'a, 'py>) -> Maybe<'a, 'py> {
        object.filter(|object| !object.is_none())
    }

    /// Converts a flag.
    pub(super) fn flag(&self, arg: &'static str, object: Object<'_, 'py>) -> PyResult<bool> {
        let number = object.cast::<PyBool>().map(|flag| flag.is_true());
        // NumPy's bool and the integers 0 and 1 are accepted, too.
        number.or_else(|_| match object.extract::<i64>() {
            Ok(value @ 0..=1) => Ok(value == 1),
            _ => match object.extract::<bool>() {
                Ok(value) => Ok(value),
                Err(_) => Err(self.expected(arg, object, "True or False")),
            },
        })
    }

    /// Converts a string.
    pub(super) fn text<'a>(
        &self,
        arg: &'static str,
        object: Object<'a, 'py>,
    ) -> PyResult<Cow<'a, str>> {
        match object.cast::<PyString>() {
            Ok(text) => Ok(text.to_string_lossy()),
            Err(_) => Err(self.expected(arg, object, "a string")),
        }
    }

    /// Sets the name of the nodes that the call adds to a program. An eager call ignores it.
    pub(super) fn name(&mut self, object: Object<'_, 'py>) -> PyResult<()> {
        let name = self.text("name", object)?.into_owned();
        self.set_label(name);
        Ok(())
    }

    /// Whether an object is a list or a tuple.
    pub(super) fn is_list(object: Object<'_, 'py>) -> bool {
        object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()
    }

    /// Returns the items of a list or tuple. Any other object is a single item.
    pub(super) fn items(object: Object<'_, 'py>) -> SmallVec<[Bound<'py, PyAny>; 4]> {
        if let Ok(list) = object.cast::<PyList>() {
            list.iter().collect()
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            tuple.iter().collect()
        } else {
            smallvec![object.clone()]
        }
    }

    /// Converts an integer, or a list, tuple, array or other iterable of integers.
    pub(super) fn integers(
        &self,
        arg: &'static str,
        object: Object<'_, 'py>,
    ) -> PyResult<Vec<i64>> {
        // The most common case needs no list of items.
        if object.is_exact_instance_of::<PyInt>() {
            return Ok(vec![self.integer(arg, object)?]);
        }
        // An object that is an integer is not iterated, even if it could be, like a 0-D array.
        let items = if Self::is_list(object) || object.extract::<i64>().is_ok() {
            Self::items(object)
        } else {
            match object.try_iter().and_then(Iterator::collect) {
                Ok(items) => items,
                Err(_) => return Err(self.expected(arg, object, "an integer or a list of them")),
            }
        };
        items.iter().map(|item| self.integer(arg, item)).collect()
    }

    /// Converts a shape, whose sizes must be 0 or more.
    pub(super) fn sizes(&self, arg: &'static str, object: Object<'_, 'py>) -> PyResult<Vec<i64>> {
        let sizes = self.integers(arg, object)?;
        if sizes.iter().any(|&size| size < 0) {
            let (got, expected) = (format!("{sizes:?}"), "sizes of 0 or more".into());
            return Err(self.raise(&Error::Argument { op: self.op(), arg, got, expected }));
        }
        Ok(sizes)
    }

    /// The `TypeError` for an argument of the wrong type.
    pub(super) fn expected(&self, arg: &str, object: Object<'_, 'py>, what: &str) -> PyErr {
        let text = format!("{}: {arg} is {}, expected {what}", self.op(), described(object));
        Class::Type.error(self.py(), text)
    }
}
