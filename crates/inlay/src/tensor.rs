//! The tensor that users hold.

use std::sync::{Arc, Weak};

use inlay_core::{DType, Dim, Dims, Error, Layout, Meta, Result, ShapeText, collect};

use crate::array::Array;
use crate::symbolic::Symbolic;
use crate::tape::History;

/// A handle to elements of one dtype and a shape.
///
/// ```
/// use inlay::Tensor;
///
/// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
/// // A view shares the memory of its tensor.
/// x.i(0)?.multiply_(10)?;
/// assert_eq!((&x + 1)?.to_vec::<f32>()?, [11.0, 21.0, 4.0, 5.0]);
/// # Ok::<(), inlay::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

struct Inner {
    /// The elements. A symbolic tensor has only sizes here, without memory.
    array: Array,
    history: History,
    symbolic: Option<Box<Symbolic>>,
    /// Whether this is plain data; see [`Tensor::plain`].
    plain: bool,
}

/// A handle that does not keep its tensor alive.
#[derive(Clone)]
pub(crate) struct WeakTensor(Weak<Inner>);

impl WeakTensor {
    /// Whether it is a handle to that tensor.
    pub(crate) fn is(&self, tensor: &Tensor) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&tensor.0))
    }
}

impl Tensor {
    pub(crate) fn from_array(array: Array) -> Self {
        Tensor::with_history(array, History::default())
    }

    pub(crate) fn with_history(array: Array, history: History) -> Self {
        Tensor(Arc::new(Inner { array, history, symbolic: None, plain: false }))
    }

    /// Makes a tensor that stands for a value of a program.
    pub(crate) fn of_value(symbolic: Symbolic, history: History) -> Self {
        let array = symbolic.stand_in();
        Tensor(Arc::new(Inner { array, history, symbolic: Some(Box::new(symbolic)), plain: false }))
    }

    /// Marks the tensor as plain data, such as an array or a list of another language. Plain data
    /// can be used with tensors on any device, as numbers can.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let data = Tensor::new([1.0f32, 2.0])?.plain();
    /// # drop(data);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    #[must_use]
    pub fn plain(mut self) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.plain = true;
        }
        self
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.0.plain
    }

    /// Returns a tensor with the same elements or value, and another history.
    pub(crate) fn again(&self, history: History) -> Self {
        match self.symbolic() {
            Some(symbolic) => Tensor::of_value(symbolic.again(), history),
            None => Tensor::with_history(self.array().clone(), history),
        }
    }

    pub(crate) fn symbolic(&self) -> Option<&Symbolic> {
        self.0.symbolic.as_deref()
    }

    /// A number that is unique among the tensors that exist.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Whether this is the only handle.
    pub(crate) fn is_sole(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// The elements, and whether they are plain data, if this is the only handle to a tensor that has
    /// no gradient and is not symbolic.
    #[inline]
    pub(crate) fn sole_parts(&mut self) -> Option<(&mut Array, &mut bool)> {
        let inner = Arc::get_mut(&mut self.0)?;
        let is_simple = inner.symbolic.is_none() && inner.history.is_unused();
        is_simple.then_some((&mut inner.array, &mut inner.plain))
    }

    /// Returns a handle that does not keep the tensor alive.
    pub(crate) fn downgrade(&self) -> WeakTensor {
        WeakTensor(Arc::downgrade(&self.0))
    }

    /// Whether the memory of both overlaps.
    pub(crate) fn overlaps(&self, other: &Tensor) -> bool {
        !self.is_symbolic() && !other.is_symbolic() && self.array().overlaps(other.array())
    }

    pub(crate) fn array(&self) -> &Array {
        &self.0.array
    }

    pub(crate) fn history(&self) -> &History {
        &self.0.history
    }

    /// The dtype and shape.
    ///
    /// ```
    /// # use inlay::{DType, Dim, Tensor};
    /// let meta = Tensor::from([1, 2]).meta();
    /// assert_eq!((meta.dtype, meta.shape[0]), (DType::I32, Dim::Known(2)));
    /// ```
    pub fn meta(&self) -> Meta {
        match self.symbolic() {
            Some(symbolic) => symbolic.meta().clone(),
            None => self.array().meta(),
        }
    }

    /// Sets `to` to [`Tensor::meta`] without a move, which would stall.
    #[inline]
    pub(crate) fn meta_into(&self, to: &mut Meta) {
        match self.symbolic() {
            Some(symbolic) => *to = symbolic.meta().clone(),
            None => {
                to.dtype = self.dtype();
                let sizes = self.array().shape();
                to.shape = collect(sizes.len(), Dim::Known(0), |k| Dim::Known(sizes[k]));
            }
        }
    }

    /// The sizes. Those of a symbolic tensor may be symbols.
    pub(crate) fn dims(&self) -> Dims {
        self.meta().shape
    }

    /// Whether the tensor stands for a value of a [`Program`](crate::Program) and has no elements
    /// itself.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// assert!(Program::new().data("x", &[None], DType::F32)?.is_symbolic());
    /// assert!(!Tensor::from([1, 2]).is_symbolic());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn is_symbolic(&self) -> bool {
        self.symbolic().is_some()
    }

    /// Fails unless the tensor has elements. The error names `op`.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// Tensor::from([1, 2]).expect_elements("my_function")?;
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A symbolic tensor.
    pub fn expect_elements(&self, op: &'static str) -> Result<()> {
        if self.is_symbolic() { Err(Error::Symbolic { op }) } else { Ok(()) }
    }

    /// Fails unless operations may write into the tensor.
    pub(crate) fn expect_target(&self, op: &'static str, arg: &'static str) -> Result<()> {
        if self.is_symbolic() { Ok(()) } else { self.array().expect_target(op, arg) }
    }

    /// The element type.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// assert_eq!(Tensor::from([1u8, 2]).dtype(), DType::U8);
    /// ```
    pub fn dtype(&self) -> DType {
        self.array().dtype
    }

    /// The entry of [`Tensor::shape`] for a size that is not known yet, in a
    /// [`Program`](crate::Program) that is built by hand. Inside of [`jit`](crate::jit), a function
    /// sees the sizes of its arguments.
    pub const UNKNOWN: usize = usize::MAX;

    /// The sizes. A symbolic tensor of a program has [`Tensor::UNKNOWN`] for a size that is not
    /// known yet; [`Tensor::meta`] has its symbol.
    ///
    /// Inside of [`jit`](crate::jit), these are the sizes of the current call. A function that
    /// reads them is traced again for other sizes.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// assert_eq!(Tensor::from([[1, 2, 3], [4, 5, 6]]).shape(), [2, 3]);
    /// ```
    pub fn shape(&self) -> &[usize] {
        self.layout().shape()
    }

    /// The shape, the strides in bytes, and the offset of the first element in bytes.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1i32, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.transpose([1, 0])?.layout().strides(), [4, 12]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn layout(&self) -> &Layout {
        let read = self.symbolic().and_then(Symbolic::read_layout);
        read.unwrap_or(&self.array().layout)
    }

    /// The number of dimensions.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// assert_eq!(Tensor::from([[1, 2, 3], [4, 5, 6]]).rank(), 2);
    /// ```
    pub fn rank(&self) -> usize {
        self.array().layout.rank()
    }

    /// The number of elements. For a symbolic tensor, see [`Tensor::shape`].
    ///
    /// ```
    /// # use inlay::Tensor;
    /// assert_eq!(Tensor::from([[1, 2, 3], [4, 5, 6]]).numel(), 6);
    /// ```
    pub fn numel(&self) -> usize {
        self.layout().numel()
    }

    /// Whether the elements are contiguous in row-major order.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// assert!(x.is_contiguous() && !x.transpose([1, 0])?.is_contiguous());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn is_contiguous(&self) -> bool {
        self.array().is_contiguous()
    }

    /// Whether in-place operations may write the elements.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// assert!(Tensor::from([1, 2]).is_writable());
    /// ```
    pub fn is_writable(&self) -> bool {
        self.is_symbolic() || self.array().buffer.is_writable()
    }
}

impl Tensor {
    /// Returns the text of a symbolic tensor, which has no elements to show.
    pub(crate) fn symbolic_text(&self) -> Option<String> {
        let Meta { dtype, shape } = self.symbolic()?.meta();
        Some(format!("Tensor(symbolic, shape={}, dtype={dtype})", ShapeText::of(shape)))
    }
}
