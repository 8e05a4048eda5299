//! `index_put`: writes values to the elements or rows that several indices, or a mask, name.

use inlay_core::Result;

use super::flat::{Flat, how};
use crate::declare::declare;
use crate::op::Out;
use crate::site::within;
use crate::tape::is_grad_enabled;
use crate::{Item, Scatter, Tensor};

declare! {
    /// Write `value` to ``x[indices[0], indices[1], ...]``, or add it with `accumulate`.
    ///
    /// The indices are integer tensors, one for each of the first axes, that broadcast together; or
    /// a single bool mask. The value broadcasts to the shape of the written part. Duplicates are
    /// processed in order.
    ///
    /// >>> import inlay, numpy as np
    /// >>> inlay.index_put(np.zeros((2, 2), int), ([0, 1, 1], [1, 0, 0]), [5, 6, 7])
    /// array([[0, 5],
    ///        [7, 0]])
    INDEX_PUT = "index_put"(
        x: Tensor, indices: Indices, value: Like, accumulate: Flag = false, name: Label = None
    )
        gradients [x, value]
        twin out => match out {
            Out::Fresh => x.index_put(&indices, value, accumulate),
            Out::InPlace => x.index_put_(&indices, value, accumulate).cloned(),
        };
}

impl Tensor {
    /// Returns a copy in which `x[indices[0][i], indices[1][i], …] = values[i]`, or `+=` if
    /// `accumulate` is true.
    ///
    /// The indices are integer tensors, one for each of the first axes, that broadcast together; or
    /// a single bool mask. The values broadcast to the shape of the written part.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::zeros([2, 2], DType::I32)?;
    /// let (rows, columns) = (Tensor::from([0i64, 1]), Tensor::from([1i64, 1]));
    /// let y = x.index_put(&[&rows, &columns], &Tensor::from([5, 6]), false)?;
    /// assert_eq!(y.to_vec::<i32>()?, [0, 5, 0, 6]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes and dtypes that don't fit, indices out of range.
    #[track_caller]
    pub fn index_put(
        &self,
        indices: &[&Tensor],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<Tensor> {
        within(INDEX_PUT.name, || {
            let (flat, updates) = self.rows_to_put(indices, values)?;
            let how = how(&INDEX_PUT, accumulate);
            flat.rows(self)?.scatter(&flat.index, &updates, how)?.shaped(&self.dims())
        })
    }

    /// The in-place version of [`Tensor::index_put`].
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 1]);
    /// x.index_put_(&[&Tensor::from([0i64, 0])], &Tensor::from([5, 6]), true)?;
    /// assert_eq!(x.to_vec::<i32>()?, [12, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::index_put`]; also memory that is read-only or overlaps itself. After
    /// an error, nothing was written.
    #[track_caller]
    pub fn index_put_(
        &self,
        indices: &[&Tensor],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<&Self> {
        self.expect_target(INDEX_PUT.name, "x")?;
        within(INDEX_PUT.name, || {
            let (flat, updates) = self.rows_to_put(indices, values)?;
            self.write_rows(&flat, &updates, how(&INDEX_PUT, accumulate))
        })
    }

    fn rows_to_put(&self, indices: &[&Tensor], values: &Tensor) -> Result<(Flat, Tensor)> {
        let flat = Flat::of_indices(&INDEX_PUT, self, indices)?;
        let updates = flat.updates(&INDEX_PUT, "value", self, values)?;
        Ok((flat, updates))
    }

    /// Writes rows in place, with the covered axes merged into one. Writes through a view if
    /// merging gives a view and no gradient is recorded. Otherwise scatters to a copy and assigns
    /// that.
    fn write_rows(&self, flat: &Flat, updates: &Tensor, how: Scatter) -> Result<&Self> {
        let rows = flat.rows(self)?;
        let shared = !self.is_symbolic() && rows.array().buffer.same_as(&self.array().buffer);
        let tracked = !self.stop_gradient() || !updates.stop_gradient();
        if shared && !(tracked && is_grad_enabled()) {
            rows.scatter_(&flat.index, updates, how)?;
            return Ok(self);
        }
        let written = rows.scatter(&flat.index, updates, how)?.shaped(&self.dims())?;
        self.assign(&[Item::Ellipsis], &written)?;
        Ok(self)
    }
}
