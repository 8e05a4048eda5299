//! Errors for arguments that can't be converted. They name the operation and the argument.

use inlay::{DType, Kind};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::Call;
use crate::error::{Class, type_name, wrap};
use crate::numpy::{Unfit, has_mask};

impl<'py> Call<'py> {
    /// Fails for a NumPy masked array, because its data must not be used without the mask.
    pub(super) fn expect_no_mask(
        &self,
        arg: &'static str,
        array: &Bound<'py, PyUntypedArray>,
    ) -> PyResult<()> {
        if has_mask(array).map_err(|cause| self.wrap(arg, cause))? {
            let text = "is a masked array: take its data, or fill it, first";
            return Err(Class::Type.error(self.py, format!("{}: {arg} {text}", self.op)));
        }
        Ok(())
    }

    /// The error for an object that is neither an array nor a Python number or list.
    pub(super) fn not_an_array(
        &self,
        arg: &'static str,
        object: &Bound<'py, PyAny>,
        expected: &str,
    ) -> PyErr {
        let text = format!("{}: {arg} is a {}, expected {expected}", self.op, type_name(object));
        Class::Type.error(self.py, text)
    }

    /// The error for a NumPy scalar of dtype `from`, whose kind is wider than that of `like`.
    pub(super) fn too_wide(
        &self,
        arg: &'static str,
        object: &Bound<'py, PyAny>,
        from: DType,
        like: DType,
    ) -> PyErr {
        let number = match like.kind() {
            Kind::Bool => format!("bool({arg})"),
            Kind::Integer => format!("int({arg})"),
            // Only complex scalars are wider.
            Kind::Float | Kind::Complex => format!("{arg}.real"),
        };
        let text = format!(
            "{}: {arg} is a {}, which a {like} tensor does not take without a cast: pass {number}, \
             or cast the tensor with cast('{from}')",
            self.op,
            type_name(object)
        );
        Class::Type.error(self.py, text)
    }

    /// The error for an array whose memory can't be used as a tensor.
    pub(super) fn unfit(
        &self,
        arg: &'static str,
        array: &Bound<'py, PyUntypedArray>,
        unfit: &Unfit,
    ) -> PyErr {
        let dtype = array.dtype();
        let (class, what) = match unfit {
            Unfit::DType => (Class::Type, format!("has NumPy dtype {dtype}, which has no tensor")),
            Unfit::ByteOrder => (
                Class::Value,
                format!("has dtype {dtype}, not of this machine's byte order, and can't be shared"),
            ),
            Unfit::Extent => (Class::Value, "has strides that leave the address space".to_owned()),
        };
        class.error(self.py, format!("{}: {arg} {what}", self.op))
    }

    /// Converts an exception that was raised while an argument was read to an `InlayError`.
    pub(super) fn wrap(&self, arg: &'static str, cause: PyErr) -> PyErr {
        wrap(self.py, &format!("{}: {arg}", self.op), cause)
    }
}
