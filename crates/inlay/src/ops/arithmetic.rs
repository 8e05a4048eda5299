//! `+ - * /`, element by element.

use std::borrow::Cow;

use inlay_core::{Arithmetic, DType, Error, Kind, Meta, Result};
use serde::{Deserialize, Serialize};

use super::broadcast::{common, stretch};
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::is_grad_enabled;
use crate::tape::{Grads, Rule, Saves};
use crate::{Item, Tensor, device};

declare! {
    /// ``x + y``, element by element; integers wrap, bools are or-ed.
    ///
    /// Shapes broadcast as in NumPy. Both operands have the same dtype; a plain number or a list
    /// takes that of the other.
    ///
    /// >>> import inlay
    /// >>> inlay.add([1, 2], [[10], [20]])
    /// array([[11, 12],
    ///        [21, 22]])
    ADD = "add"(x: Operand, y: Operand, name: Label = None)
        gradients [x, y]
        => x.add(y);

    /// ``x - y``, element by element; integers wrap; not for bools.
    ///
    /// Shapes broadcast as in NumPy. Both operands have the same dtype; a plain number or a list
    /// takes that of the other.
    ///
    /// >>> import inlay
    /// >>> inlay.subtract([1, 2], 3)
    /// array([-2, -1])
    SUBTRACT = "subtract"(x: Operand, y: Operand, name: Label = None)
        gradients [x, y]
        => x.subtract(y);

    /// ``x * y``, element by element; integers wrap, bools are and-ed.
    ///
    /// Shapes broadcast as in NumPy. Both operands have the same dtype; a plain number or a list
    /// takes that of the other.
    ///
    /// >>> import inlay
    /// >>> inlay.multiply([1, 2], [3, 4])
    /// array([3, 8])
    MULTIPLY = "multiply"(x: Operand, y: Operand, name: Label = None)
        gradients [x, y]
        => x.multiply(y);

    /// ``x / y``, element by element; the quotient of integers and bools is float64.
    ///
    /// Shapes broadcast as in NumPy. Both operands have the same dtype; a plain number or a list
    /// takes that of the other.
    ///
    /// >>> import inlay
    /// >>> inlay.divide([1, 2], 4)
    /// array([0.25, 0.5 ])
    DIVIDE = "divide"(x: Operand, y: Operand, name: Label = None)
        gradients [x, y]
        => x.divide(y);
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Arith(Arithmetic);

impl Op for Arith {
    type Inputs = Inputs<2>;
    type Found = ();

    fn operation(&self) -> &'static Operation {
        match self.0 {
            Arithmetic::Add => &ADD,
            Arithmetic::Subtract => &SUBTRACT,
            Arithmetic::Multiply => &MULTIPLY,
            Arithmetic::Divide => &DIVIDE,
        }
    }

    fn infer(&self, [a, b]: &[Meta; 2]) -> Result<Inferred<()>> {
        let mut meta = common(self.name(), a, b)?;
        match (self.0, meta.dtype.kind()) {
            (Arithmetic::Subtract, Kind::Bool) => {
                let what = "a difference".into();
                return Err(Error::Undefined { op: self.name(), what, dtype: meta.dtype });
            }
            // Integers and bools are divided as `f64`.
            (Arithmetic::Divide, Kind::Bool | Kind::Integer) => meta.dtype = DType::F64,
            _ => {}
        }
        Inferred::only(meta)
    }

    fn run(&self, [a, b]: &[&Array; 2], inferred: &Inferred<()>, _out: Out) -> Result<Array> {
        let op = self.name();
        let to = a.fresh(op, &inferred.meta)?;
        let (a, b) = (of_dtype(op, a, to.dtype)?, of_dtype(op, b, to.dtype)?);
        let stretched = |array| stretch(op, "x", array, to.shape());
        device::arithmetic(&to, &*stretched(&a)?, &*stretched(&b)?, self.0)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        match self.0 {
            Arithmetic::Add | Arithmetic::Subtract => Saves::NOTHING,
            Arithmetic::Multiply | Arithmetic::Divide => Saves::inputs(&[0, 1]),
        }
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
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

/// Returns `array` in `dtype`: itself if it has that dtype, otherwise a copy.
fn of_dtype<'a>(op: &'static str, array: &'a Array, dtype: DType) -> Result<Cow<'a, Array>> {
    if array.dtype == dtype {
        return Ok(Cow::Borrowed(array));
    }
    device::to_dtype(op, array, dtype).map(Cow::Owned)
}

impl Tensor {
    /// Returns the sum, element by element. Integers wrap, bools are or-ed.
    ///
    /// # Errors
    /// Dtypes that differ, shapes that don't broadcast together.
    #[track_caller]
    pub fn add(&self, other: &Tensor) -> Result<Tensor> {
        apply(Arith(Arithmetic::Add), &[self, other])
    }

    /// Returns the difference, element by element. Integers wrap.
    ///
    /// # Errors
    /// Dtypes that differ or are bool, shapes that don't broadcast together.
    #[track_caller]
    pub fn subtract(&self, other: &Tensor) -> Result<Tensor> {
        apply(Arith(Arithmetic::Subtract), &[self, other])
    }

    /// Returns the product, element by element. Integers wrap, bools are and-ed.
    ///
    /// # Errors
    /// Dtypes that differ, shapes that don't broadcast together.
    #[track_caller]
    pub fn multiply(&self, other: &Tensor) -> Result<Tensor> {
        apply(Arith(Arithmetic::Multiply), &[self, other])
    }

    /// Returns the quotient, element by element. Integers and bools are divided as `f64`.
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
            #[doc = concat!("The in-place version of [`Tensor::", $of, "`]. The result must have")]
            #[doc = "the shape and dtype of this tensor."]
            ///
            /// # Errors
            #[doc = concat!("The errors of [`Tensor::", $of, "`]; also memory that is read-only")]
            #[doc = "or overlaps itself. After an error, nothing was written."]
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
        // The gradient rule reads the old values, so it gets a copy of an operand that is
        // overwritten.
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
