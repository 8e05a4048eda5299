//! `index_copy`: writes rows to the places along an axis that an index names.

use inlay_core::{Integer, Result};

use super::scatter::Scatter;
use crate::Tensor;
use crate::declare::declare;

declare! {
    /// Write rows of `value` to the places along `axis` that a 1-D index names. The last row that
    /// names a place wins.
    ///
    /// >>> import inlay
    /// >>> inlay.index_copy([1, 1, 1], [0, 0, -1], 0, [10, 20, 30])
    /// array([20,  1, 30])
    INDEX_COPY = "index_copy"(
        x: Tensor, index: Index, axis: Int, value | source: Like, name: Label = None
    )
        gradients [x, value]
        batch Rows
        twin out => out.apply(how(axis), &[x, index, value]);
}

fn how(axis: impl Integer) -> Scatter {
    Scatter::overwrite().called(&INDEX_COPY).axis(axis)
}

impl Tensor {
    /// Returns a copy in which, along `axis` and for i in order, `x[index[i]] = values[i]`.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from_slice(&[1i32, 1, 1], &[3])?;
    /// let index = Tensor::from_slice(&[0i64, 0, -1], &[3])?;
    /// let values = Tensor::from_slice(&[10i32, 20, 30], &[3])?;
    /// assert_eq!(x.index_copy(&index, 0, &values)?.to_vec::<i32>()?, [20, 1, 30]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::scatter`].
    #[track_caller]
    pub fn index_copy(
        &self,
        index: &Tensor,
        axis: impl Integer,
        values: &Tensor,
    ) -> Result<Tensor> {
        self.scatter(index, values, how(axis))
    }

    /// The in-place version of [`Tensor::index_copy`].
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// x.index_copy_(&Tensor::from([0i64]), 1, &Tensor::from([[8], [9]]))?;
    /// assert_eq!(x.to_vec::<i32>()?, [8, 2, 9, 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::scatter_`].
    #[track_caller]
    pub fn index_copy_(
        &self,
        index: &Tensor,
        axis: impl Integer,
        values: &Tensor,
    ) -> Result<&Self> {
        self.scatter_(index, values, how(axis))
    }
}
