//! `zeros_like`, `ones_like`, `full_like`: tensors of one value, with the shape of another tensor.

use inlay_core::{DType, Result};

use crate::declare::declare;
use crate::site::within;
use crate::{Scalar, Tensor};

declare! {
    /// Zeros with the shape of `x`, and with its dtype unless another is given.
    ///
    /// >>> import inlay
    /// >>> inlay.zeros_like([[1, 2]])
    /// array([[0, 0]])
    ZEROS_LIKE = "zeros_like"(x: Tensor, dtype: MaybeType = None, name: Label = None)
        batch Elements
        => x.everywhere(ZEROS_LIKE.name, Scalar::Bool(false), dtype.unwrap_or(x.dtype()));

    /// Ones with the shape of `x`, and with its dtype unless another is given.
    ///
    /// >>> import inlay
    /// >>> inlay.ones_like([[1, 2]], dtype='float32')
    /// array([[1., 1.]], dtype=float32)
    ONES_LIKE = "ones_like"(x: Tensor, dtype: MaybeType = None, name: Label = None)
        batch Elements
        => x.everywhere(ONES_LIKE.name, Scalar::Bool(true), dtype.unwrap_or(x.dtype()));

    /// One value everywhere, with the shape of `x`, and with its dtype unless another is given.
    ///
    /// >>> import inlay
    /// >>> inlay.full_like([1., 2.], 7)
    /// array([7., 7.])
    FULL_LIKE = "full_like"(
        x: Tensor, fill_value: Number, dtype: MaybeType = None, name: Label = None
    )
        batch Elements
        => x.everywhere(FULL_LIKE.name, fill_value, dtype.unwrap_or(x.dtype()));
}

impl Tensor {
    /// Returns zeros with the shape and dtype of this tensor, on its device.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 2, 3]);
    /// assert_eq!(x.zeros_like()?.to_vec::<i32>()?, [0, 0, 0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape that does not fit in memory.
    #[track_caller]
    pub fn zeros_like(&self) -> Result<Tensor> {
        self.everywhere(ZEROS_LIKE.name, Scalar::Bool(false), self.dtype())
    }

    /// Returns ones with the shape and dtype of this tensor, on its device.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 2, 3]);
    /// assert_eq!(x.ones_like()?.to_vec::<i32>()?, [1, 1, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape that does not fit in memory.
    #[track_caller]
    pub fn ones_like(&self) -> Result<Tensor> {
        self.everywhere(ONES_LIKE.name, Scalar::Bool(true), self.dtype())
    }

    /// Returns a tensor that has `value` everywhere, with the shape and dtype of this tensor, on its
    /// device.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 2, 3]);
    /// assert_eq!(x.full_like(7)?.to_vec::<i32>()?, [7, 7, 7]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A value that the dtype does not take, a shape that does not fit in memory.
    #[track_caller]
    pub fn full_like(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        self.everywhere(FULL_LIKE.name, value.into(), self.dtype())
    }

    fn everywhere(&self, op: &'static str, value: Scalar, dtype: DType) -> Result<Tensor> {
        // Checked here, so that errors name this operation.
        value.to_tensor(op, "fill_value", dtype)?;
        if !self.is_symbolic() {
            inlay_core::Layout::contiguous(op, self.shape(), dtype.size())?;
        }
        within(op, || self.filled(&self.dims(), value, dtype))
    }
}
