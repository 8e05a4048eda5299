//! `sum`: over all axes or some.

use inlay_core::{DType, Dim, Error, Kind, Meta, Result, axis_of};
use smallvec::SmallVec;

use crate::array::Array;
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

#[derive(Debug)]
struct Sum {
    /// `None` is all.
    axes: Option<Vec<i64>>,
    keepdim: bool,
}

impl Sum {
    /// For each axis, whether it is summed over.
    fn over(&self, rank: usize) -> Result<SmallVec<[bool; 6]>> {
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

/// In which dtype the sum of a dtype is: integers and bools in 64 bits.
fn sum_dtype(dtype: DType) -> DType {
    match dtype.kind() {
        Kind::Float | Kind::Complex => dtype,
        _ if dtype.is_unsigned() => DType::U64,
        _ => DType::I64,
    }
}

impl Op for Sum {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        let over = self.over(x.rank())?;
        let dims = x.shape.iter().zip(over).filter_map(|(&dim, summed)| match summed {
            false => Some(dim),
            true => self.keepdim.then_some(Dim::Known(1)),
        });
        Ok(Meta { dtype: sum_dtype(x.dtype), shape: dims.collect() })
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x] = inputs else { unreachable!("one input") };
        let over = self.over(x.shape().len())?;
        let meta = self.infer(&[x.meta()])?;
        let to = Array::new(self.name(), meta.dtype, &super::broadcast::sizes(&meta))?;
        // The kernel wants the summed axes gone; with `keepdim` they are there with size 1.
        let mut layout = to.layout.clone();
        if self.keepdim {
            for axis in (0..over.len()).rev().filter(|&axis| over[axis]) {
                layout = layout.without_axis(axis);
            }
        }
        device::sum(&to.with_layout(layout), x, &over)?;
        Ok(to)
    }
}

impl Tensor {
    /// The sum over `axes`, or over all of them for `None`; `keepdim` leaves them with size 1.
    ///
    /// Integers and bools are summed in 64 bits and wrap, 16-bit floats in 32 and rounded once. The
    /// order of additions depends on the shape alone.
    ///
    /// # Errors
    /// An axis that is out of range or named twice.
    pub fn sum(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        apply(&Sum { axes: axes.map(<[i64]>::to_vec), keepdim }, &[self])
    }
}
