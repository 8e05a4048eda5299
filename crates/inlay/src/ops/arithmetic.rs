//! `+ - * /`, element by element.

use std::borrow::{Borrow, Cow};

use inlay_core::{Arithmetic, DType, Error, Kind, Meta, Result};
use serde::{Deserialize, Serialize};

use super::broadcast::{common, expect_stretch, stretch};
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::{apply, apply_in_place};
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule, Saves};
use crate::{Operand, Tensor, device};

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
        batch Elements
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
        batch Elements
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
        batch Elements
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
        batch Elements
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

    fn run(&self, [a, b]: &[&Array; 2], inferred: &Inferred<()>, out: Out) -> Result<Array> {
        let op = self.name();
        let dtype = inferred.meta.dtype;
        let b = of_dtype(op, b, dtype)?;
        if out == Out::InPlace {
            // `Tensor::arithmetic_` has checked that the result fits in `a`.
            device::arithmetic(a, None, &*stretch(op, "y", &b, a.shape())?, self.0)?;
            return Ok((*a).clone());
        }
        let to = a.fresh(op, &inferred.meta)?;
        let a = of_dtype(op, a, dtype)?;
        let stretched = |array| stretch(op, "x", array, to.shape());
        device::arithmetic(&to, Some(&*stretched(&a)?), &*stretched(&b)?, self.0)?;
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

macro_rules! arithmetic {
    ($($name:ident, $in_place:ident, $op:ident, $x:literal, $y:literal, $result:literal, $($doc:literal),+;)*) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// ```
            /// # use inlay::Tensor;
            #[doc = concat!("let x = Tensor::from(", $x, ");")]
            #[doc = concat!("let y = x.", stringify!($name), "(", $y, ")?;")]
            #[doc = concat!("assert_eq!(y.to_vec::<f32>()?, ", $result, ");")]
            /// # Ok::<(), inlay::Error>(())
            /// ```
            ///
            /// # Errors
            /// Dtypes that differ or for which the operation is not defined, a number that the
            /// dtype does not take, shapes that don't broadcast together.
            #[track_caller]
            pub fn $name(&self, other: impl Operand) -> Result<Tensor> {
                let op = Arith(Arithmetic::$op);
                let other = other.held(op.name(), "y", self)?;
                apply(op, &[self, other.borrow()])
            }

            #[doc = concat!("The in-place version of [`Tensor::", stringify!($name), "`]. The")]
            /// result must have the shape and dtype of this tensor.
            ///
            /// ```
            /// # use inlay::Tensor;
            #[doc = concat!("let x = Tensor::from(", $x, ");")]
            #[doc = concat!("x.", stringify!($in_place), "(", $y, ")?;")]
            #[doc = concat!("assert_eq!(x.to_vec::<f32>()?, ", $result, ");")]
            /// # Ok::<(), inlay::Error>(())
            /// ```
            ///
            /// # Errors
            #[doc = concat!("The errors of [`Tensor::", stringify!($name), "`]; also an operand")]
            /// that does not broadcast to the shape of this tensor, a result of another dtype, and
            /// memory that is read-only or overlaps itself. After an error, nothing was written.
            #[track_caller]
            pub fn $in_place(&self, other: impl Operand) -> Result<&Self> {
                let op = Arith(Arithmetic::$op);
                let other = other.held(op.name(), "y", self)?;
                self.arithmetic_(op, other.borrow())?;
                Ok(self)
            }
        )* }
    };
}
arithmetic!(
    add, add_, Add, "[1.0f32, 2.0]", "1", "[2.0, 3.0]",
        "Returns the sum with a tensor or a number, element by element. Integers wrap, bools are",
        "or-ed.";
    subtract, subtract_, Subtract, "[1.0f32, 2.0]", "1", "[0.0, 1.0]",
        "Returns the difference with a tensor or a number, element by element. Integers wrap.";
    multiply, multiply_, Multiply, "[1.0f32, 2.0]", "3", "[3.0, 6.0]",
        "Returns the product with a tensor or a number, element by element. Integers wrap, bools",
        "are and-ed.";
    divide, divide_, Divide, "[1.0f32, 2.0]", "4", "[0.25, 0.5]",
        "Returns the quotient with a tensor or a number, element by element. Integers and bools",
        "are divided as `f64`.";
);

impl Tensor {
    #[track_caller]
    fn arithmetic_(&self, op: Arith, other: &Tensor) -> Result<Tensor> {
        let (name, x, y) = (op.name(), self.meta(), other.meta());
        let result = op.infer(&[x.clone(), y.clone()])?.meta;
        result.expect_dtype_of(name, "the result", &x, "x")?;
        expect_stretch(name, "y", &y, &x)?;
        if result.shape == x.shape {
            return apply_in_place(op, &[self, other]);
        }
        // In a program whether `other` broadcasts to this shape may be known only later. The view
        // is a node that checks it.
        let other = other.stretched_for(op.operation(), "y", &x.shape)?;
        apply_in_place(op, &[self, &other])
    }
}
