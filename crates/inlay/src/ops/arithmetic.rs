//! `+ - * /`, element by element.

use std::borrow::Cow;

use inlay_core::{Arithmetic, DType, Error, Kind, Meta, Result};
use serde::{Deserialize, Serialize};

use super::broadcast::{common, sizes, stretch};
use crate::array::Array;
use crate::autograd::{Grads, Rule, Saves};
use crate::funnel::{Op, Out, apply};
use crate::{Item, Tensor, device, is_grad_enabled};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Arith(Arithmetic);

impl Op for Arith {
    fn name(&self) -> &'static str {
        match self.0 {
            Arithmetic::Add => "add",
            Arithmetic::Subtract => "subtract",
            Arithmetic::Multiply => "multiply",
            Arithmetic::Divide => "divide",
        }
    }

    fn arg(&self, k: usize) -> String {
        ["x", "y"][k].into()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [a, b] = inputs else { unreachable!("two inputs") };
        let mut meta = common(self.name(), a, b)?;
        match (self.0, meta.dtype.kind()) {
            (Arithmetic::Subtract, Kind::Bool) => {
                let what = "a difference".into();
                Err(Error::Undefined { op: self.name(), what, dtype: meta.dtype })
            }
            // The quotient of integers is no integer.
            (Arithmetic::Divide, Kind::Bool | Kind::Integer) => {
                meta.dtype = DType::F64;
                Ok(meta)
            }
            _ => Ok(meta),
        }
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [a, b] = inputs else { unreachable!("two inputs") };
        let op = self.name();
        let meta = self.infer(&[a.meta(), b.meta()])?;
        let to = a.beside(op, meta.dtype, &sizes(&meta.shape))?;
        let (a, b) = (of_dtype(op, a, to.dtype)?, of_dtype(op, b, to.dtype)?);
        let stretched = |array| stretch(op, "x", array, to.shape());
        device::arithmetic(self.0, &to, &*stretched(&a)?, &*stretched(&b)?)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        match self.0 {
            Arithmetic::Add | Arithmetic::Subtract => Saves::NOTHING,
            Arithmetic::Multiply | Arithmetic::Divide => Saves::inputs(&[0, 1]),
        }
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        let g = rule.g();
        rule.each(|k| {
            let grad = match (self.0, k) {
                (Arithmetic::Add, _) | (Arithmetic::Subtract, 0) => g.clone(),
                (Arithmetic::Subtract, _) => g.negative()?,
                (Arithmetic::Multiply, _) => g.multiply(&rule.input(1 - k)?.conjugate()?)?,
                (Arithmetic::Divide, 0) => g.divide(&rule.input(1)?.conjugate()?)?,
                (Arithmetic::Divide, _) => {
                    let (x, y) = (rule.input(0)?.conjugate()?, rule.input(1)?.conjugate()?);
                    g.multiply(&x.divide(&y)?)?.divide(&y)?.negative()?
                }
            };
            grad.shrink_to(rule.shape(k)).map(Some)
        })
    }
}

/// `array` in a dtype: itself if it has that.
fn of_dtype<'a>(op: &'static str, array: &'a Array, dtype: DType) -> Result<Cow<'a, Array>> {
    if array.dtype == dtype {
        return Ok(Cow::Borrowed(array));
    }
    device::to_dtype(op, array, dtype).map(Cow::Owned)
}

impl Tensor {
    /// The sum, element by element; integers wrap, bools are or-ed.
    ///
    /// # Errors
    /// Dtypes that differ, shapes that don't broadcast together.
    #[track_caller]
    pub fn add(&self, other: &Tensor) -> Result<Tensor> {
        apply(Arith(Arithmetic::Add), &[self, other])
    }

    /// The difference, element by element; integers wrap.
    ///
    /// # Errors
    /// Dtypes that differ or are bool, shapes that don't broadcast together.
    #[track_caller]
    pub fn subtract(&self, other: &Tensor) -> Result<Tensor> {
        apply(Arith(Arithmetic::Subtract), &[self, other])
    }

    /// The product, element by element; integers wrap, bools are and-ed.
    ///
    /// # Errors
    /// Dtypes that differ, shapes that don't broadcast together.
    #[track_caller]
    pub fn multiply(&self, other: &Tensor) -> Result<Tensor> {
        apply(Arith(Arithmetic::Multiply), &[self, other])
    }

    /// The quotient, element by element; that of integers and bools is `f64`.
    ///
    /// # Errors
    /// Dtypes that differ, shapes that don't broadcast together.
    #[track_caller]
    pub fn divide(&self, other: &Tensor) -> Result<Tensor> {
        apply(Arith(Arithmetic::Divide), &[self, other])
    }
}

macro_rules! in_place {
    ($($name:ident, $of:literal, $op:ident;)*) => {
        impl Tensor { $(
            #[doc = concat!("[`Tensor::", $of, "`] in place: the result has this shape and dtype.")]
            ///
            /// # Errors
            /// As there; also when the memory is read-only or overlaps itself. Then nothing was written.
            #[track_caller]
            pub fn $name(&self, other: &Tensor) -> Result<&Self> {
                self.arithmetic_(Arith(Arithmetic::$op), other)
            }
        )* }
    };
}
in_place!(
    add_, "add", Add;
    subtract_, "subtract", Subtract;
    multiply_, "multiply", Multiply;
    divide_, "divide", Divide;
);

impl Tensor {
    fn arithmetic_(&self, op: Arith, other: &Tensor) -> Result<&Self> {
        // What the rule reads must stay, so of what is written it gets a copy.
        let reads = op.saves() != Saves::NOTHING;
        let record = is_grad_enabled() && !(self.stop_gradient() && other.stop_gradient());
        let operand = |tensor: &Tensor| match reads && record && self.overlaps(tensor) {
            true => tensor.copy(),
            false => Ok(tensor.clone()),
        };
        let result = apply(op, &[&operand(self)?, &operand(other)?])?;
        self.assign(&[Item::Ellipsis], &result)?;
        Ok(self)
    }
}
