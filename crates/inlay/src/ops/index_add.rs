//! `index_add`: adds rows to the places along an axis that an index names.

use inlay_core::{Integer, Reduce, Result};

use super::scatter::Scatter;
use crate::Tensor;
use crate::declare::declare;

declare! {
    /// Add rows of `value` to the places along `axis` that a 1-D index names. If several rows name
    /// a place, all are added.
    ///
    /// >>> import inlay
    /// >>> inlay.index_add([1, 1, 1], [0, 0, -1], 0, [10, 20, 30])
    /// array([31,  1, 31])
    INDEX_ADD = "index_add"(
        x: Tensor, index: Index, axis: Int, value | source: Like, name: Label = None
    )
        gradients [x, value]
        batch Rows
        twin out => out.apply(how(axis), &[x, index, value]);
}

fn how(axis: impl Integer) -> Scatter {
    Scatter::reduce(Reduce::Sum).include_self(true).called(&INDEX_ADD).axis(axis)
}

impl Tensor {
    /// Returns a copy in which, along `axis` and for i in order, `x[index[i]] += values[i]`.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 1, 1]);
    /// let index = Tensor::from([2i64, 0, 2]);
    /// let y = x.index_add(&index, 0, &Tensor::from([10, 20, 30]))?;
    /// assert_eq!(y.to_vec::<i32>()?, [21, 1, 41]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::scatter`].
    #[track_caller]
    pub fn index_add(&self, index: &Tensor, axis: impl Integer, values: &Tensor) -> Result<Tensor> {
        self.scatter(index, values, how(axis))
    }

    /// The in-place version of [`Tensor::index_add`].
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 1]);
    /// x.index_add_(&Tensor::from([0i64, 0]), 0, &Tensor::from([10, 20]))?;
    /// assert_eq!(x.to_vec::<i32>()?, [31, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::scatter_`].
    #[track_caller]
    pub fn index_add_(&self, index: &Tensor, axis: impl Integer, values: &Tensor) -> Result<&Self> {
        self.scatter_(index, values, how(axis))
    }
}
