//! The operators `+ - * /` and the sign.
//!
//! An operator can't return an error on the side, so its result is a `Result<Tensor>`. To write
//! longer expressions with few `?`, a tensor on one side may meet the result of another operator on
//! the other. Rust permits no operator on two results, nor on a result and a number: these need a
//! `?` in between.
//!
//! There is no `+=`, which could not report an error: [`Tensor::add_`] and its kin write in place.

use std::borrow::Borrow;
use std::ops::{Add, Div, Mul, Neg, Sub};

use inlay_core::{Error, Result};

use crate::{Complex32, Complex64, Operand, Scalar, Tensor, bf16, f16};

/// Implements an operator by a method: for tensors with any operand, and for a result or a number
/// with a tensor.
macro_rules! operator {
    ($($trait:ident $operator:ident $symbol:literal = $method:ident;)*) => { $(
        operator!(@tensor $trait $operator $symbol $method: Tensor, &Tensor);
        operator!(@other $trait $operator $method: Tensor, &Tensor);
        operator!(@number $trait $operator $method:
            bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize f16 bf16 f32 f64 Complex32 Complex64);
    )* };
    (@tensor $trait:ident $operator:ident $symbol:literal $method:ident: $($left:ty),*) => { $(
        #[doc = concat!("`x ", $symbol, " y`, by [`Tensor::", stringify!($method), "`].")]
        impl<Y: Operand> $trait<Y> for $left {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $operator(self, y: Y) -> Result<Tensor> {
                Tensor::$method(self.borrow(), y)
            }
        }
    )* };
    (@other $trait:ident $operator:ident $method:ident: $($right:ty),*) => { $(
        impl $trait<$right> for Result<Tensor, Error> {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $operator(self, y: $right) -> Result<Tensor> {
                Tensor::$method(&self?, y)
            }
        }
    )* };
    (@number $trait:ident $operator:ident $method:ident: $($number:ty)*) => { $(
        impl $trait<&Tensor> for $number {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $operator(self, y: &Tensor) -> Result<Tensor> {
                let x = Scalar::from(self).to_tensor(stringify!($method), "x", y.dtype())?;
                Tensor::$method(&x, y)
            }
        }

        impl $trait<Tensor> for $number {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $operator(self, y: Tensor) -> Result<Tensor> {
                self.$operator(&y)
            }
        }
    )* };
}
operator! {
    Add add "+" = add;
    Sub sub "-" = subtract;
    Mul mul "*" = multiply;
    Div div "/" = divide;
}

/// `-x`, by [`Tensor::negative`].
impl Neg for &Tensor {
    type Output = Result<Tensor>;

    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        self.negative()
    }
}

/// `-x`, by [`Tensor::negative`].
impl Neg for Tensor {
    type Output = Result<Tensor>;

    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        self.negative()
    }
}
