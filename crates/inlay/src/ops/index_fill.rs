//! `index_fill`: one value to the rows along an axis that an index names.

use inlay_core::{Combine, DType, Dim, Dims, Meta, Result, axis_of, resized};
use serde::{Deserialize, Serialize};

use super::broadcast::{expect_single, stretch};
use super::index_select::expect_vector_index;
use super::masked_fill::Fill;
use crate::array::Array;
use crate::autograd::{Grads, Rule, Saves};
use crate::funnel::{Op, Out, apply, apply_in_place};
use crate::{Tensor, device};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct IndexFill {
    axis: i64,
}

impl Op for IndexFill {
    fn name(&self) -> &'static str {
        "index_fill"
    }

    fn arg(&self, k: usize) -> String {
        ["x", "index", "value"][k].into()
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
        let shape = resized(x.shape(), axis, index.layout.numel());
        let rows = stretch(op, "value", value, &shape)?;
        let (to, base) = out.of(op, x)?;
        device::scatter_rows(&to, base, axis, (op, "index", index), &rows, Combine::Assign)?;
        Ok(to)
    }

    fn writes(&self) -> bool {
        true
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[1])
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        let (g, index) = (rule.g(), rule.input(1)?);
        rule.each(|k| match k {
            0 => g.index_fill(&index, self.axis, 0).map(Some),
            _ => {
                // Every place that is named counts once, however often it is named.
                let named = named_places(g, &index, self.axis)?;
                g.masked_select(&named)?.sum(None, false).map(Some)
            }
        })
    }
}

/// Which positions of an axis of `x` an index names, as a mask that stretches to `x`.
pub(super) fn named_places(x: &Tensor, index: &Tensor, axis: i64) -> Result<Tensor> {
    let axis = axis_of("index_fill", "axis", axis, x.rank())?;
    let mut shape = Dims::from_elem(Dim::Known(1), x.rank());
    shape[axis] = x.dims()[axis];
    x.filled(&shape, false, DType::Bool)?.index_fill(index, axis as i64, true)
}

impl Tensor {
    /// A copy whose rows along `axis` at the positions of a 1-D index are `value`, a plain number
    /// or a 0-D tensor.
    ///
    /// # Errors
    /// An index that is not 1-D or not of integers, an axis or an index out of range, a value of
    /// another kind or shape.
    #[track_caller]
    pub fn index_fill<'a>(
        &self,
        index: &Tensor,
        axis: i64,
        value: impl Into<Fill<'a>>,
    ) -> Result<Tensor> {
        let value = value.into().tensor("index_fill", self)?;
        apply(IndexFill { axis }, &[self, index, &value])
    }

    /// [`Tensor::index_fill`] in place.
    ///
    /// # Errors
    /// As there; also when the memory is read-only or overlaps itself. Then nothing was written.
    #[track_caller]
    pub fn index_fill_<'a>(
        &self,
        index: &Tensor,
        axis: i64,
        value: impl Into<Fill<'a>>,
    ) -> Result<&Self> {
        let value = value.into().tensor("index_fill", self)?;
        apply_in_place(IndexFill { axis }, self, &[index, &value]).map(|()| self)
    }
}
