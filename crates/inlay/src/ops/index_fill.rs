//! `index_fill`: one value to the rows along an axis that an index names.

use inlay_core::{Combine, Meta, Result, axis_of};

use super::broadcast::{expect_single, stretch};
use super::index_select::expect_vector_index;
use super::masked_fill::Fill;
use crate::array::Array;
use crate::funnel::{Op, Out, apply, apply_in_place};
use crate::{Tensor, device};

#[derive(Debug)]
struct IndexFill {
    axis: i64,
}

impl Op for IndexFill {
    fn name(&self) -> &'static str {
        "index_fill"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x, index, value] = inputs else { unreachable!("three inputs") };
        x.expect_rank_at_least(self.name(), "x", 1)?;
        axis_of(self.name(), "axis", self.axis, x.rank())?;
        expect_vector_index(self.name(), index)?;
        value.expect_dtype_of(self.name(), "value", x, "x")?;
        expect_single(self.name(), value)?;
        Ok(x.clone())
    }

    fn run(&self, inputs: &[&Array], out: Out) -> Result<Array> {
        let [x, index, value] = inputs else { unreachable!("three inputs") };
        let op = self.name();
        let axis = axis_of(op, "axis", self.axis, x.shape().len())?;
        let positions = device::positions(op, "index", index, axis, x.shape()[axis])?;
        let mut shape = x.shape().to_vec();
        shape[axis] = positions.values().len();
        let rows = stretch(op, "value", value, &shape)?;
        let (to, base) = out.of(op, x)?;
        device::scatter_rows(&to, base, axis, &positions, &rows, Combine::Assign)?;
        Ok(to)
    }
}

impl Tensor {
    /// A copy whose rows along `axis` at the positions of a 1-D index are `value`, a plain number
    /// or a 0-D tensor.
    ///
    /// # Errors
    /// An index that is not 1-D or not of integers, an axis or an index out of range, a value of
    /// another kind or shape.
    pub fn index_fill(&self, index: &Tensor, axis: i64, value: impl Into<Fill>) -> Result<Tensor> {
        let value = value.into().tensor("index_fill", self)?;
        apply(&IndexFill { axis }, &[self, index, &value])
    }

    /// [`Tensor::index_fill`] in place.
    ///
    /// # Errors
    /// As there; also when the memory is read-only or overlaps itself. Then nothing was written.
    pub fn index_fill_(&self, index: &Tensor, axis: i64, value: impl Into<Fill>) -> Result<&Self> {
        let value = value.into().tensor("index_fill", self)?;
        apply_in_place(&IndexFill { axis }, self, &[index, &value]).map(|()| self)
    }
}
