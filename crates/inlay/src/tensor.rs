//! The tensor that users hold.

use std::sync::Arc;

use inlay_core::{DType, Error, Layout, Meta, Result};
use inlay_cpu::Element;

use crate::array::Array;
use crate::autograd::History;
use crate::{Scalar, device};

/// A handle to elements of one dtype, in a shape.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

struct Inner {
    array: Array,
    history: History,
}

impl Tensor {
    pub(crate) fn from_array(array: Array) -> Self {
        Tensor::with_history(array, History::default())
    }

    pub(crate) fn with_history(array: Array, history: History) -> Self {
        Tensor(Arc::new(Inner { array, history }))
    }

    pub(crate) fn array(&self) -> &Array {
        &self.0.array
    }

    pub(crate) fn history(&self) -> &History {
        &self.0.history
    }

    /// A tensor of `values`, in row-major order, in a shape of just as many elements.
    ///
    /// # Errors
    /// A shape of another number of elements.
    pub fn from_slice<T: Element>(values: &[T], shape: &[usize]) -> Result<Self> {
        let op = "from_slice";
        let layout = Layout::contiguous(op, shape, T::DTYPE.size())?;
        if layout.numel() != values.len() {
            let (arg, got) = ("shape", format!("{shape:?}"));
            let expected = format!("one of {} elements", values.len());
            return Err(Error::Argument { op, arg, got, expected });
        }
        let array = Array::new(op, T::DTYPE, shape)?;
        device::store(&array, values)?;
        Ok(Tensor::from_array(array))
    }

    /// A 0-D tensor of a plain number. `op` and `arg` say in an error whose number it was.
    ///
    /// # Errors
    /// A number that the dtype does not take.
    pub fn scalar(
        op: &'static str,
        arg: &'static str,
        value: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<Self> {
        value.into().to_tensor(op, arg, dtype)
    }

    /// All elements in row-major order.
    ///
    /// # Errors
    /// A type other than that of the elements.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if self.dtype() != T::DTYPE {
            let (op, arg, expected) = ("to_vec", "self", T::DTYPE.name());
            return Err(Error::DType { op, arg, got: self.dtype(), expected });
        }
        device::load(self.array())
    }

    /// Dtype and shape.
    pub fn meta(&self) -> Meta {
        self.array().meta()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.array().dtype
    }

    /// The sizes.
    pub fn shape(&self) -> &[usize] {
        self.array().shape()
    }

    /// Where the elements lie: shape, byte strides, and the byte offset in their memory.
    pub fn layout(&self) -> &Layout {
        &self.array().layout
    }

    /// How many dimensions.
    pub fn rank(&self) -> usize {
        self.array().layout.rank()
    }

    /// How many elements.
    pub fn numel(&self) -> usize {
        self.array().layout.numel()
    }

    /// Whether the elements lie row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.array().is_contiguous()
    }

    /// Whether in-place operations may write the elements.
    pub fn is_writable(&self) -> bool {
        self.array().buffer.is_writable()
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::format::text(self))
    }
}
