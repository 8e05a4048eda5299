//! `sum`, `mean`, `prod`, `amax`, `amin`: over all axes or some.

use inlay_core::{DType, Dim, Dims, Error, Fold, Kind, Meta, Result, ShapeText, axis_of};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::products::factors_gradient;
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule, Saves};
use crate::{IntoAxes, Tensor, device};

declare! {
    /// The sum over axes.
    ///
    /// Integers and bools are summed in 64 bits and wrap. 16-bit floats are summed in 32 bits and
    /// rounded once.
    ///
    /// `axis` is an axis, a list of axes, or None for all axes. `keepdim` keeps the reduced axes
    /// with size 1. The order of the steps depends only on the shape, so the result does not depend
    /// on the number of threads.
    ///
    /// >>> import inlay
    /// >>> inlay.sum([[1, 2], [3, 4]], axis=0)
    /// array([4, 6])
    SUM = "sum"(x: Tensor, axis: Axes = None, keepdim: Flag = false, name: Label = None)
        gradients [x]
        batch Axes
        => x.sum(axis, keepdim);

    /// The mean over axes. The mean of integers does not overflow and is rounded down.
    ///
    /// `axis` is an axis, a list of axes, or None for all axes. `keepdim` keeps the reduced axes
    /// with size 1. The order of the steps depends only on the shape, so the result does not depend
    /// on the number of threads.
    ///
    /// >>> import inlay
    /// >>> inlay.mean([[1., 2.], [3., 4.]], axis=1)
    /// array([1.5, 3.5])
    MEAN = "mean"(x: Tensor, axis: Axes = None, keepdim: Flag = false, name: Label = None)
        gradients [x]
        batch Axes
        => x.mean(axis, keepdim);

    /// The product over axes.
    ///
    /// Integers and bools are multiplied in 64 bits and wrap. 16-bit floats are multiplied in 32
    /// bits and rounded once.
    ///
    /// `axis` is an axis, a list of axes, or None for all axes. `keepdim` keeps the reduced axes
    /// with size 1. The order of the steps depends only on the shape, so the result does not depend
    /// on the number of threads.
    ///
    /// >>> import inlay
    /// >>> inlay.prod([[1, 2], [3, 4]], axis=0)
    /// array([3, 8])
    PROD = "prod"(x: Tensor, axis: Axes = None, keepdim: Flag = false, name: Label = None)
        gradients [x]
        batch Axes
        => x.prod(axis, keepdim);

    /// The largest element over axes, or NaN if one of the elements is NaN. All elements that equal
    /// the result share its gradient equally.
    ///
    /// `axis` is an axis, a list of axes, or None for all axes. `keepdim` keeps the reduced axes
    /// with size 1. The order of the steps depends only on the shape, so the result does not depend
    /// on the number of threads.
    ///
    /// >>> import inlay
    /// >>> inlay.amax([[1, 5], [3, 4]], axis=0)
    /// array([3, 5])
    AMAX = "amax"(x: Tensor, axis: Axes = None, keepdim: Flag = false, name: Label = None)
        gradients [x]
        batch Axes
        => x.amax(axis, keepdim);

    /// The smallest element over axes, or NaN if one of the elements is NaN. All elements that
    /// equal the result share its gradient equally.
    ///
    /// `axis` is an axis, a list of axes, or None for all axes. `keepdim` keeps the reduced axes
    /// with size 1. The order of the steps depends only on the shape, so the result does not depend
    /// on the number of threads.
    ///
    /// >>> import inlay
    /// >>> inlay.amin([[1, 5], [3, 4]], axis=0)
    /// array([1, 4])
    AMIN = "amin"(x: Tensor, axis: Axes = None, keepdim: Flag = false, name: Label = None)
        gradients [x]
        batch Axes
        => x.amin(axis, keepdim);
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Reduction {
    how: Fold,
    /// `None` means all axes.
    axes: Option<Vec<i64>>,
    keepdim: bool,
}

/// For each axis, whether it is reduced over.
type Over = SmallVec<[bool; 6]>;

impl Reduction {
    /// Resolves the axes for a tensor of rank `rank`.
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

/// Returns the dtype of the result. Sums and products of integers and bools have 64 bits.
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
        // The mean of no elements is NaN, which an integer can't represent.
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
        // The kernel expects a target without the reduced axes. With `keepdim` the result has them
        // with size 1.
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
                // `count` returns at least 1: with no elements, 0 / 0 would appear in second-order
                // gradients.
                let count = g.count(&summed, wide.dtype())?;
                wide.divide(&count)?.narrowed(g.dtype())?.stretched_to(shape)?
            }
            Fold::Prod => product_gradient(&g, &rule.input(0)?, over)?,
            Fold::Amax | Fold::Amin => {
                let same = rule.input(0)?.same_as(&rule.output()?.shaped(&kept)?)?;
                let wide = g.widened()?;
                let axes: Vec<i64> =
                    (0..shape.len()).filter(|&axis| over[axis]).map(|axis| axis as i64).collect();
                let count = same.cast(wide.dtype())?.sum(&axes, true)?;
                let share = wide.divide(&count)?.narrowed(g.dtype())?;
                same.where_(&share, &Tensor::number(self.name(), "x", false, g.dtype())?)?
            }
        };
        rule.each(|_| Ok(Some(grad.clone())))
    }
}

/// Returns, for each element, the gradient `g` of its product times the conjugate of the product of
/// all other factors.
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
    ($($name:ident, $how:ident, $result:literal, $($doc:literal),+;)*) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Reduces over `axes`, or over all axes for `None`. `keepdim` keeps the reduced axes
            /// with size 1. The order of the steps depends only on the shape.
            ///
            /// ```
            /// # use inlay::Tensor;
            /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
            #[doc = concat!("let result = x.", stringify!($name), "(0, false)?;")]
            #[doc = concat!("assert_eq!(result.to_vec::<f32>()?, ", $result, ");")]
            #[doc = concat!("assert_eq!(x.", stringify!($name), "(None, true)?.shape(), [1, 1]);")]
            /// # Ok::<(), inlay::Error>(())
            /// ```
            ///
            /// # Errors
            /// An axis that is out of range or named twice, a dtype for which the reduction is not
            /// defined, no elements for a reduction that needs at least one.
            #[track_caller]
            pub fn $name(&self, axes: impl IntoAxes, keepdim: bool) -> Result<Tensor> {
                let axes = axes.axes();
                apply(Reduction { how: Fold::$how, axes, keepdim }, &[self])
            }
        )* }
    };
}
reductions!(
    sum, Sum, "[4.0, 6.0]",
        "The sum. Integers and bools are summed in 64 bits and wrap. 16-bit floats are",
        "summed in 32 bits and rounded once.";
    mean, Mean, "[2.0, 3.0]",
        "The mean. The mean of integers does not overflow and is rounded down.";
    prod, Prod, "[3.0, 8.0]",
        "The product, in the dtypes of [`Tensor::sum`].";
    amax, Amax, "[3.0, 4.0]",
        "The largest element, or NaN if one is NaN. All elements that equal it share its",
        "gradient equally.";
    amin, Amin, "[1.0, 2.0]",
        "The smallest element, or NaN if one is NaN. All elements that equal it share its",
        "gradient equally.";
);
