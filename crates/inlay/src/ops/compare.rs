//! Comparisons, element by element.

use std::borrow::Borrow;

use inlay_core::{Comparison, DType, Error, Kind, Meta, Result};
use serde::{Deserialize, Serialize};

use super::broadcast::{common, stretch};
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::{Operand, Tensor, device};

declare! {
    /// ``x == y``, element by element, as bool.
    ///
    /// Shapes broadcast as in NumPy. Both operands have the same dtype; a plain number or a list
    /// takes that of the other.
    ///
    /// >>> import inlay
    /// >>> inlay.equal([1, 2, 3], 2)
    /// array([False,  True, False])
    EQUAL = "equal"(x: Operand, y: Operand, name: Label = None)
        batch Elements
        => x.equal(y);

    /// ``x != y``, element by element, as bool.
    ///
    /// Shapes broadcast as in NumPy. Both operands have the same dtype; a plain number or a list
    /// takes that of the other.
    ///
    /// >>> import inlay
    /// >>> inlay.not_equal([1, 2, 3], 2)
    /// array([ True, False,  True])
    NOT_EQUAL = "not_equal"(x: Operand, y: Operand, name: Label = None)
        batch Elements
        => x.not_equal(y);

    /// ``x < y``, element by element, as bool; not for complex numbers.
    ///
    /// Shapes broadcast as in NumPy. Both operands have the same dtype; a plain number or a list
    /// takes that of the other.
    ///
    /// >>> import inlay
    /// >>> inlay.less_than([1, 2, 3], 2)
    /// array([ True, False, False])
    LESS_THAN = "less_than"(x: Operand, y: Operand, name: Label = None)
        batch Elements
        => x.less_than(y);

    /// ``x <= y``, element by element, as bool; not for complex numbers.
    ///
    /// Shapes broadcast as in NumPy. Both operands have the same dtype; a plain number or a list
    /// takes that of the other.
    ///
    /// >>> import inlay
    /// >>> inlay.less_equal([1, 2, 3], 2)
    /// array([ True,  True, False])
    LESS_EQUAL = "less_equal"(x: Operand, y: Operand, name: Label = None)
        batch Elements
        => x.less_equal(y);

    /// ``x > y``, element by element, as bool; not for complex numbers.
    ///
    /// Shapes broadcast as in NumPy. Both operands have the same dtype; a plain number or a list
    /// takes that of the other.
    ///
    /// >>> import inlay
    /// >>> inlay.greater_than([1, 2, 3], 2)
    /// array([False, False,  True])
    GREATER_THAN = "greater_than"(x: Operand, y: Operand, name: Label = None)
        batch Elements
        => x.greater_than(y);

    /// ``x >= y``, element by element, as bool; not for complex numbers.
    ///
    /// Shapes broadcast as in NumPy. Both operands have the same dtype; a plain number or a list
    /// takes that of the other.
    ///
    /// >>> import inlay
    /// >>> inlay.greater_equal([1, 2, 3], 2)
    /// array([False,  True,  True])
    GREATER_EQUAL = "greater_equal"(x: Operand, y: Operand, name: Label = None)
        batch Elements
        => x.greater_equal(y);

    SAME = "same"(x: Operand, y: Operand);
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Compare(Comparison);

impl Op for Compare {
    type Inputs = Inputs<2>;
    type Found = ();
    const HAS_GRADIENT: bool = false;

    fn operation(&self) -> &'static Operation {
        match self.0 {
            Comparison::Equal => &EQUAL,
            Comparison::NotEqual => &NOT_EQUAL,
            Comparison::Less => &LESS_THAN,
            Comparison::LessEqual => &LESS_EQUAL,
            Comparison::Greater => &GREATER_THAN,
            Comparison::GreaterEqual => &GREATER_EQUAL,
            Comparison::Same => &SAME,
        }
    }

    fn infer(&self, [a, b]: &[Meta; 2]) -> Result<Inferred<()>> {
        let meta = common(self.name(), a, b)?;
        if self.0.is_order() && meta.dtype.kind() == Kind::Complex {
            let what = "an order".into();
            return Err(Error::Undefined { op: self.name(), what, dtype: meta.dtype });
        }
        Inferred::only(Meta { dtype: DType::Bool, ..meta })
    }

    fn run(&self, [a, b]: &[&Array; 2], inferred: &Inferred<()>, _out: Out) -> Result<Array> {
        let op = self.name();
        let to = a.fresh(op, &inferred.meta)?;
        let (a, b) = (stretch(op, "x", a, to.shape())?, stretch(op, "y", b, to.shape())?);
        device::compare(&to, &a, &b, self.0)?;
        Ok(to)
    }
}

impl Tensor {
    /// Whether elements are equal. Two NaNs count as equal.
    pub(super) fn same_as(&self, other: &Tensor) -> Result<Tensor> {
        apply(Compare(Comparison::Same), &[self, other])
    }
}

macro_rules! comparison {
    ($($name:ident, $variant:ident, $text:literal);* $(;)?) => {
        impl Tensor { $(
            #[doc = concat!("Whether `x ", $text, " y`, element by element, as bool. `y` is a tensor")]
            /// or a number.
            ///
            /// ```
            /// # use inlay::Tensor;
            #[doc = concat!("let found = Tensor::from([1, 2, 3]).", stringify!($name), "(2)?;")]
            #[doc = concat!("assert_eq!(found.to_vec::<bool>()?, [1 ", $text, " 2, 2 ", $text, " 2, 3 ", $text, " 2]);")]
            /// # Ok::<(), inlay::Error>(())
            /// ```
            ///
            /// # Errors
            /// Dtypes that differ, shapes that don't broadcast together, complex numbers for a
            /// comparison that needs an order.
            #[track_caller]
            pub fn $name(&self, other: impl Operand) -> Result<Tensor> {
                let op = Compare(Comparison::$variant);
                let other = other.held(op.name(), "y", self)?;
                apply(op, &[self, other.borrow()])
            }
        )* }
    };
}
comparison!(
    equal, Equal, "==";
    not_equal, NotEqual, "!=";
    less_than, Less, "<";
    less_equal, LessEqual, "<=";
    greater_than, Greater, ">";
    greater_equal, GreaterEqual, ">=";
);
