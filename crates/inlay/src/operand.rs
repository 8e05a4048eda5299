//! Arguments that are a tensor or a plain number.

use std::borrow::Borrow;

use inlay_core::{Error, Result};

use crate::{Scalar, Tensor};

/// A tensor or a plain number, as an operand of a method or an operator. A number takes the dtype
/// of the tensor that it is used with.
///
/// ```
/// use inlay::Tensor;
///
/// let x = Tensor::from([1.0f32, -2.0]);
/// assert_eq!(x.greater_than(0)?.to_vec::<bool>()?, [true, false]);
/// assert_eq!(x.multiply(&x)?.to_vec::<f32>()?, [1.0, 4.0]);
/// # Ok::<(), inlay::Error>(())
/// ```
///
/// The result of another call is an operand too, so the right side of an operator needs no `?`.
pub trait Operand {
    /// The operand as a tensor.
    #[doc(hidden)]
    type Held: Borrow<Tensor>;

    /// Returns the operand as a tensor. Errors name `op` and `arg`.
    #[doc(hidden)]
    fn held(self, op: &'static str, arg: &'static str, like: &Tensor) -> Result<Self::Held>;
}

impl<'a> Operand for &'a Tensor {
    type Held = &'a Tensor;

    #[inline]
    fn held(self, _op: &'static str, _arg: &'static str, _like: &Tensor) -> Result<&'a Tensor> {
        Ok(self)
    }
}

impl Operand for Tensor {
    type Held = Tensor;

    fn held(self, _op: &'static str, _arg: &'static str, _like: &Tensor) -> Result<Tensor> {
        Ok(self)
    }
}

impl Operand for Result<Tensor, Error> {
    type Held = Tensor;

    fn held(self, _op: &'static str, _arg: &'static str, _like: &Tensor) -> Result<Tensor> {
        self
    }
}

impl<S: Into<Scalar>> Operand for S {
    type Held = Tensor;

    fn held(self, op: &'static str, arg: &'static str, like: &Tensor) -> Result<Tensor> {
        self.into().to_tensor(op, arg, like.dtype())
    }
}
