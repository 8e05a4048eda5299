//! `index_select`: reads the rows along an axis at the positions of a 1-D index.

use inlay_core::{Error, Integer, Meta, Reduce, Result, axis_of, resized};
use serde::{Deserialize, Serialize};

use super::names::Caller;
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule, Saves};
use crate::{Scatter, Tensor, device};

declare! {
    /// The rows along `axis` at the positions of a 1-D index, in its order.
    ///
    /// >>> import inlay
    /// >>> inlay.index_select([[1, 2], [3, 4]], [1, 1, -2])
    /// array([[3, 4],
    ///        [3, 4],
    ///        [1, 2]])
    INDEX_SELECT = "index_select"(x: Tensor, index: Index, axis: Int = 0, name: Label = None)
        gradients [x]
        batch Rows
        => x.index_select(index, axis);
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct IndexSelect {
    /// The operation that the user called.
    pub(super) name: Caller,
    pub(super) axis: i64,
}

/// Fails unless `index` is a 1-D tensor of integers.
pub(super) fn expect_vector_index(op: &'static str, index: &Meta) -> Result<()> {
    index.expect_index(op, "index")?;
    match index.rank() {
        1 => Ok(()),
        got => Err(Error::Rank { op, arg: "index", got, expected: "1" }),
    }
}

impl Op for IndexSelect {
    type Inputs = Inputs<2>;
    type Found = usize;

    fn operation(&self) -> &'static Operation {
        self.name.0
    }

    fn infer(&self, [x, index]: &[Meta; 2]) -> Result<Inferred<usize>> {
        x.expect_rank_at_least(self.name(), "x", 1)?;
        let axis = axis_of(self.name(), "axis", self.axis, x.rank())?;
        expect_vector_index(self.name(), index)?;
        let mut shape = x.dims();
        shape[axis] = index.shape[0];
        Inferred::new(x.with_shape(shape), axis)
    }

    fn run(
        &self,
        [x, index]: &[&Array; 2],
        inferred: &Inferred<usize>,
        _out: Out,
    ) -> Result<Array> {
        let op = self.name();
        let axis = inferred.found;
        let to = x.beside(op, x.dtype, &resized(x.shape(), axis, index.layout.numel()))?;
        device::gather_rows(&to, x, axis, (op, "index", index))?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[1])
    }

    fn grad(&self, rule: &Rule<'_>, found: &usize) -> Result<Grads> {
        let how = Scatter::reduce(Reduce::Sum).axis(*found as i64);
        rule.each(|k| rule.zeros(k)?.scatter(&rule.input(1)?, rule.g(), how).map(Some))
    }
}

impl Tensor {
    /// Returns the rows along `axis` at the positions of a 1-D index, in its order.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.index_select(&Tensor::from([1i64, 1]), 0)?.to_vec::<i32>()?, [3, 4, 3, 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// An index that is not 1-D or not of integers, an axis or an index out of range.
    #[track_caller]
    pub fn index_select(&self, index: &Tensor, axis: impl Integer) -> Result<Tensor> {
        let select = IndexSelect { name: Caller(&INDEX_SELECT), axis: axis.to_i64() };
        apply(select, &[self, index])
    }
}
