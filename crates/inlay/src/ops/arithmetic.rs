//! `+ - * /`, element by element.

use inlay_core::{Arithmetic, DType, Error, Kind, Meta, Result};

use super::broadcast::{common, sizes, stretch};
use crate::array::Array;
use crate::autograd::{Grads, Rule, Saves};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

#[derive(Debug)]
struct Arith(Arithmetic);

impl Op for Arith {
    fn name(&self) -> &'static str {
        match self.0 {
            Arithmetic::Add => "add",
            Arithmetic::Subtract => "subtract",
            Arithmetic::Multiply => "multiply",
            Arithmetic::Divide => "divide",
        }
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
        let to = Array::new(op, meta.dtype, &sizes(&meta))?;
        let operand = |array: &Array| {
            let stretched = |array: &Array| stretch(op, "x", array, to.shape());
            if array.dtype == to.dtype {
                stretched(array)
            } else {
                stretched(&device::to_dtype(op, array, to.dtype)?)
            }
        };
        device::arithmetic(self.0, &to, &operand(a)?, &operand(b)?)?;
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
            grad.shrink_to(&rule.shape(k)).map(Some)
        })
    }
}

impl Tensor {
    /// The sum, element by element; integers wrap, bools are or-ed.
    ///
    /// # Errors
    /// Dtypes that differ, shapes that don't broadcast together.
    pub fn add(&self, other: &Tensor) -> Result<Tensor> {
        apply(Arith(Arithmetic::Add), &[self, other])
    }

    /// The difference, element by element; integers wrap.
    ///
    /// # Errors
    /// Dtypes that differ or are bool, shapes that don't broadcast together.
    pub fn subtract(&self, other: &Tensor) -> Result<Tensor> {
        apply(Arith(Arithmetic::Subtract), &[self, other])
    }

    /// The product, element by element; integers wrap, bools are and-ed.
    ///
    /// # Errors
    /// Dtypes that differ, shapes that don't broadcast together.
    pub fn multiply(&self, other: &Tensor) -> Result<Tensor> {
        apply(Arith(Arithmetic::Multiply), &[self, other])
    }

    /// The quotient, element by element; that of integers and bools is `f64`.
    ///
    /// # Errors
    /// Dtypes that differ, shapes that don't broadcast together.
    pub fn divide(&self, other: &Tensor) -> Result<Tensor> {
        apply(Arith(Arithmetic::Divide), &[self, other])
    }
}
