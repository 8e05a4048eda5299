//! `index_fill`: writes one value to the rows along an axis that an index names.

use std::borrow::Borrow;

use inlay_core::{Combine, DType, Dim, Dims, Integer, Meta, Result, axis_of, resized};
use serde::{Deserialize, Serialize};

use super::broadcast::{expect_single, stretch};
use super::index_select::expect_vector_index;
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::{apply, apply_in_place};
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule, Saves};
use crate::{Operand, Tensor, device};

declare! {
    /// Write one value to the rows along `axis` that a 1-D index names.
    ///
    /// `value` is a number that x's dtype takes, or a 0-D tensor of that dtype.
    ///
    /// >>> import inlay
    /// >>> inlay.index_fill([[1, 2], [3, 4]], [0], 1, 9)
    /// array([[9, 2],
    ///        [9, 4]])
    INDEX_FILL = "index_fill"(
        x: Tensor, index: Index, axis: Int, value: Like, name: Label = None
    )
        gradients [x, value]
        batch Rows
        twin out => out.apply(IndexFill { axis }, &[x, index, value]);
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct IndexFill {
    axis: i64,
}

impl Op for IndexFill {
    type Inputs = Inputs<3>;
    type Found = usize;
    const WRITES: bool = true;

    fn operation(&self) -> &'static Operation {
        &INDEX_FILL
    }

    fn infer(&self, [x, index, value]: &[Meta; 3]) -> Result<Inferred<usize>> {
        x.expect_rank_at_least(self.name(), "x", 1)?;
        let axis = axis_of(self.name(), "axis", self.axis, x.rank())?;
        expect_vector_index(self.name(), index)?;
        value.expect_dtype_of(self.name(), "value", x, "x")?;
        expect_single(self.name(), value)?;
        Inferred::new(x.clone(), axis)
    }

    fn run(
        &self,
        [x, index, value]: &[&Array; 3],
        inferred: &Inferred<usize>,
        out: Out,
    ) -> Result<Array> {
        let op = self.name();
        let axis = inferred.found;
        let shape = resized(x.shape(), axis, index.layout.numel());
        let rows = stretch(op, "value", value, &shape)?;
        let (to, base) = out.of(op, x)?;
        device::scatter_rows(&to, base, axis, (op, "index", index), &rows, Combine::Assign)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[1])
    }

    fn grad(&self, rule: &Rule<'_>, found: &usize) -> Result<Grads> {
        let (g, index, axis) = (rule.g(), rule.input(1)?, *found as i64);
        rule.each(|k| match k {
            0 => g.index_fill(&index, axis, 0).map(Some),
            _ => {
                // A place counts once, even if several entries name it.
                let named = named_places(g, &index, axis)?;
                g.masked_select(&named)?.sum(None, false).map(Some)
            }
        })
    }
}

/// Returns a mask of the positions of `axis` that an index names. It broadcasts to `x`.
fn named_places(x: &Tensor, index: &Tensor, axis: i64) -> Result<Tensor> {
    let mut shape = Dims::from_elem(Dim::Known(1), x.rank());
    shape[axis as usize] = x.dims()[axis as usize];
    x.filled(&shape, false, DType::Bool)?.index_fill(index, axis, true)
}

impl Tensor {
    /// Returns a copy in which the rows along `axis` at the positions of a 1-D index are `value`, a
    /// plain number or a 0-D tensor.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// let y = x.index_fill(&Tensor::from([0i64]), 1, 9)?;
    /// assert_eq!(y.to_vec::<i32>()?, [9, 2, 9, 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// An index that is not 1-D or not of integers, an axis or an index out of range, a value of
    /// another kind or shape.
    #[track_caller]
    pub fn index_fill(
        &self,
        index: &Tensor,
        axis: impl Integer,
        value: impl Operand,
    ) -> Result<Tensor> {
        let value = value.held(INDEX_FILL.name, "value", self)?;
        apply(IndexFill { axis: axis.to_i64() }, &[self, index, value.borrow()])
    }

    /// The in-place version of [`Tensor::index_fill`].
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 2, 3]);
    /// x.index_fill_(&Tensor::from([0i64, -1]), 0, 0)?;
    /// assert_eq!(x.to_vec::<i32>()?, [0, 2, 0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::index_fill`]; also memory that is read-only or overlaps itself.
    /// After an error, nothing was written.
    #[track_caller]
    pub fn index_fill_(
        &self,
        index: &Tensor,
        axis: impl Integer,
        value: impl Operand,
    ) -> Result<&Self> {
        let value = value.held(INDEX_FILL.name, "value", self)?;
        apply_in_place(IndexFill { axis: axis.to_i64() }, &[self, index, value.borrow()])
            .map(|_| self)
    }
}
