//! `sum`, `mean`, `prod`, `amax`, `amin`: over all axes or some.

use inlay_core::{DType, Dim, Dims, Error, Fold, Kind, Meta, Result, ShapeText, axis_of};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::products::factors_gradient;
use crate::declare::{Operation, declare};
use crate::array::Array;
use crate::tape::{Grads, Rule, Saves};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::{Tensor, device};

declare! {
    /// The sum over axes.
    ///
    /// Integers and bools are summed in 64 bits and wrap, 16-bit floats in 32 and rounded once.
    ///
    /// `axis` is one, a list of them, or None for all; `keepdim` leaves them with size 1. The order of
    /// steps depends on the shape alone, so the result does not depend on the number of threads.
    ///
    /// >>> import inlay
    /// >>> inlay.sum([[1, 2], [3, 4]], axis=0)
    /// array([4, 6])
    SUM = "sum"(x: Tensor, axis: Axes = None, keepdim: Flag = false, name: Label = None)
        gradients [x]
        => x.sum(axis, keepdim);

    /// The mean over axes; that of integers is taken without overflow and rounded down.
    ///
    /// `axis` is one, a list of them, or None for all; `keepdim` leaves them with size 1. The order of
    /// steps depends on the shape alone, so the result does not depend on the number of threads.
    ///
    /// >>> import inlay
    /// >>> inlay.mean([[1., 2.], [3., 4.]], axis=1)
    /// array([1.5, 3.5])
    MEAN = "mean"(x: Tensor, axis: Axes = None, keepdim: Flag = false, name: Label = None)
        gradients [x]
        => x.mean(axis, keepdim);

    /// The product over axes.
    ///
    /// Integers and bools are multiplied in 64 bits and wrap, 16-bit floats in 32 and rounded once.
    ///
    /// `axis` is one, a list of them, or None for all; `keepdim` leaves them with size 1. The order of
    /// steps depends on the shape alone, so the result does not depend on the number of threads.
    ///
    /// >>> import inlay
    /// >>> inlay.prod([[1, 2], [3, 4]], axis=0)
    /// array([3, 8])
    PROD = "prod"(x: Tensor, axis: Axes = None, keepdim: Flag = false, name: Label = None)
        gradients [x]
        => x.prod(axis, keepdim);

    /// The largest over axes; NaN if one is. Its gradient is shared by all that equal it.
    ///
    /// `axis` is one, a list of them, or None for all; `keepdim` leaves them with size 1. The order of
    /// steps depends on the shape alone, so the result does not depend on the number of threads.
    ///
    /// >>> import inlay
    /// >>> inlay.amax([[1, 5], [3, 4]], axis=0)
    /// array([3, 5])
    AMAX = "amax"(x: Tensor, axis: Axes = None, keepdim: Flag = false, name: Label = None)
        gradients [x]
        => x.amax(axis, keepdim);

    /// The smallest over axes; NaN if one is. Its gradient is shared by all that equal it.
    ///
    /// `axis` is one, a list of them, or None for all; `keepdim` leaves them with size 1. The order of
    /// steps depends on the shape alone, so the result does not depend on the number of threads.
    ///
    /// >>> import inlay
    /// >>> inlay.amin([[1, 5], [3, 4]], axis=0)
    /// array([1, 4])
    AMIN = "amin"(x: Tensor, axis: Axes = None, keepdim: Flag = false, name: Label = None)
        gradients [x]
        => x.amin(axis, keepdim);
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Reduction {
    how: Fold,
    /// `None` is all.
    axes: Option<Vec<i64>>,
    keepdim: bool,
}

/// For each axis, whether it is reduced over.
type Over = SmallVec<[bool; 6]>;

impl Reduction {
    /// The axes counted from the front.
    fn over(&self, rank: usize) -> Result<Over> {
        let op = self.name();
        let Some(axes) = &self.axes else { return Ok(SmallVec::from_elem(true, rank)) };
        let mut over = SmallVec::from_elem(false, rank);
        for &axis in axes {
            let at = axis_of(op, "axis", axis, rank)?;
            if std::mem::replace(&mut over[at], true) {
                let (got, expected) = (axis.to_string(), "each axis once".into());
                return Err(Error::Argument { op, arg: "axis", got, expected });
            }
        }
        Ok(over)
    }
}

/// In which dtype the result is: sums and products of integers and bools in 64 bits.
fn result_dtype(how: Fold, dtype: DType) -> DType {
    match (how, dtype.kind()) {
        (Fold::Mean | Fold::Amax | Fold::Amin, _) | (_, Kind::Float | Kind::Complex) => dtype,
        _ if dtype.is_unsigned() => DType::U64,
        _ => DType::I64,
    }
}

impl Op for Reduction {
    type Inputs = Inputs<1>;
    type Found = Over;

    fn operation(&self) -> &'static Operation {
        match self.how {
            Fold::Sum => &SUM,
            Fold::Mean => &MEAN,
            Fold::Prod => &PROD,
            Fold::Amax => &AMAX,
            Fold::Amin => &AMIN,
        }
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<Over>> {
        let over = self.over(x.rank())?;
        let undefined = match self.how {
            Fold::Mean => x.dtype == DType::Bool,
            Fold::Amax | Fold::Amin => x.dtype.kind() == Kind::Complex,
            Fold::Sum | Fold::Prod => false,
        };
        if undefined {
            let what = self.name().into();
            return Err(Error::Undefined { op: self.name(), what, dtype: x.dtype });
        }
        let none = x.shape.iter().zip(&over).any(|(dim, &over)| over && *dim == Dim::Known(0));
        // Only a float can say that the mean of nothing is not a number.
        let needs_some = match self.how {
            Fold::Amax | Fold::Amin => true,
            Fold::Mean => x.dtype.is_integer(),
            Fold::Sum | Fold::Prod => false,
        };
        if none && needs_some {
            let expected = "at least one element to reduce".into();
            let got = format!("of shape {}", ShapeText::of(&x.shape));
            return Err(Error::Argument { op: self.name(), arg: "x", got, expected });
        }
        let dims = x.shape.iter().zip(&over).filter_map(|(&dim, &summed)| match summed {
            false => Some(dim),
            true => self.keepdim.then_some(Dim::Known(1)),
        });
        let shape = dims.collect();
        Inferred::new(Meta { dtype: result_dtype(self.how, x.dtype), shape }, over)
    }

    fn run(&self, [x]: &[&Array; 1], inferred: &Inferred<Over>, _out: Out) -> Result<Array> {
        let over = &inferred.found;
        let to = x.fresh(self.name(), &inferred.meta)?;
        // The kernel wants the summed axes gone; with `keepdim` they are there with size 1.
        let mut layout = to.layout.clone();
        if self.keepdim {
            for axis in (0..over.len()).rev().filter(|&axis| over[axis]) {
                layout = layout.without_axis(axis);
            }
        }
        device::fold(&to.with_layout(layout), x, self.how, over)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        match self.how {
            Fold::Sum | Fold::Mean => Saves::NOTHING,
            Fold::Prod => Saves::inputs(&[0]),
            Fold::Amax | Fold::Amin => Saves::inputs(&[0]).and_output(),
        }
    }

    fn grad(&self, rule: &Rule<'_>, over: &Over) -> Result<Grads> {
        let shape = rule.shape(0);
        let kept: Dims = shape
            .iter()
            .zip(over)
            .map(|(&size, &over)| if over { Dim::Known(1) } else { size })
            .collect();
        let g = rule.g().shaped(&kept)?;
        let grad = match self.how {
            Fold::Sum => g.stretched_to(shape)?,
            Fold::Mean => {
                let summed = shape.iter().zip(over).filter(|(_, over)| **over);
                let summed: Dims = summed.map(|(size, _)| *size).collect();
                let wide = g.widened()?;
                // Of nothing there is nobody to share with, but 0 / 0 would be seen at second order.
                let count = g.count(&summed, wide.dtype())?;
                wide.divide(&count)?.narrowed(g.dtype())?.stretched_to(shape)?
            }
            Fold::Prod => product_gradient(&g, &rule.input(0)?, over)?,
            Fold::Amax | Fold::Amin => {
                let same = rule.input(0)?.same_as(&rule.output()?.shaped(&kept)?)?;
                let wide = g.widened()?;
                let axes: Vec<i64> =
                    (0..shape.len()).filter(|&axis| over[axis]).map(|axis| axis as i64).collect();
                let count = same.cast(wide.dtype())?.sum(Some(&axes), true)?;
                let share = wide.divide(&count)?.narrowed(g.dtype())?;
                same.where_(&share, &Tensor::scalar(self.name(), "x", false, g.dtype())?)?
            }
        };
        rule.each(|_| Ok(Some(grad.clone())))
    }
}

/// For each element the gradient `g` of its product, times all others that are multiplied with it.
fn product_gradient(g: &Tensor, x: &Tensor, over: &[bool]) -> Result<Tensor> {
    let rank = over.len();
    let kept = (0..rank).filter(|&axis| !over[axis]);
    let perm: Vec<i64> =
        kept.chain((0..rank).filter(|&axis| over[axis])).map(|axis| axis as i64).collect();
    let moved = x.transpose(&perm)?;
    let lanes = over.iter().filter(|over| !**over).count();
    let flat_of = |x: &Tensor| x.merged(lanes, rank - lanes)?.merged(0, lanes);
    let flat = flat_of(&moved)?;
    let index = x.filled(&flat.dims()[1..], false, DType::I64)?;
    let g = flat_of(&g.transpose(&perm)?)?;
    let grad = factors_gradient(&g, &flat, &index, 1, None)?;
    let mut back = vec![0; rank];
    for (to, &from) in perm.iter().enumerate() {
        back[from as usize] = to as i64;
    }
    grad.shaped(&moved.dims())?.transpose(&back)
}

macro_rules! reductions {
    ($($name:ident, $how:ident, $($doc:literal),+;)*) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Over `axes`, or over all of them for `None`; `keepdim` leaves them with size 1. The order
            /// of steps depends on the shape alone.
            ///
            /// # Errors
            /// An axis that is out of range or named twice; a dtype or an emptiness that the reduction
            /// does not have.
            #[track_caller]
            pub fn $name(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
                let axes = axes.map(<[i64]>::to_vec);
                apply(Reduction { how: Fold::$how, axes, keepdim }, &[self])
            }
        )* }
    };
}
reductions!(
    sum, Sum, "The sum. Integers and bools are summed in 64 bits and wrap, 16-bit floats in 32 and",
        "rounded once.";
    mean, Mean, "The mean. That of integers is taken without overflow and rounded down.";
    prod, Prod, "The product, in the dtypes of [`Tensor::sum`].";
    amax, Amax, "The largest; NaN if one is. Its gradient is shared by all that equal it.";
    amin, Amin, "The smallest; NaN if one is. Its gradient is shared by all that equal it.";
);
