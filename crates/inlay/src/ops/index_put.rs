//! `index_get` and `index_put`: read and write the elements or rows that several indices and masks
//! name.

use inlay_core::{DType, Error, Result, expect_shape};

use super::flat::{Flat, assign_or_add};
use super::index::covers;
use crate::declare::{Operation, declare};
use crate::op::Out;
use crate::site::within;
use crate::{Item, Tensor};

declare! {
    /// Read ``x[indices[0], indices[1], ...]``: the elements or rows at which ``index_put`` writes.
    ///
    /// The indices are integer tensors, one for each of the first axes, and bool masks, each over
    /// as many axes as it has. They broadcast together, a mask as the list of its true places.
    ///
    /// >>> import inlay, numpy as np
    /// >>> x = np.arange(9).reshape(3, 3)
    /// >>> inlay.index_get(x, inlay.tril_indices(3)).tolist()
    /// [0, 3, 4, 6, 7, 8]
    /// >>> inlay.index_get(x, ([2, 0], [[0], [1]]))
    /// array([[6, 0],
    ///        [7, 1]])
    INDEX_GET = "index_get"(x: Tensor, indices: Indices, name: Label = None)
        gradients [x]
        => x.index_get(&indices);

    /// Write `value` to ``x[indices[0], indices[1], ...]``, or add it with `accumulate`.
    ///
    /// The indices are integer tensors, one for each of the first axes, and bool masks, each over
    /// as many axes as it has. They broadcast together, a mask as the list of its true places. The
    /// value broadcasts to the shape of the written part. Duplicates are processed in order.
    ///
    /// >>> import inlay, numpy as np
    /// >>> inlay.index_put(np.zeros((2, 2), int), ([0, 1, 1], [1, 0, 0]), [5, 6, 7])
    /// array([[0, 5],
    ///        [7, 0]])
    INDEX_PUT = "index_put"(
        x: Tensor, indices: Indices, value | values: Like, accumulate: Flag = false, name: Label = None
    )
        gradients [x, value]
        twin out => match out {
            Out::Fresh => x.index_put(&indices, value, accumulate),
            Out::InPlace => x.index_put_(&indices, value, accumulate).cloned(),
        };
}

impl Tensor {
    /// Returns `x[indices[0], indices[1], …]`.
    ///
    /// The indices are integer tensors, one for each of the first axes, and bool masks, each over
    /// as many axes as it has. They broadcast together, a mask as the list of its true places.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from_slice(&[1i32, 2, 3, 4], &[2, 2])?;
    /// let rows = Tensor::from_slice(&[1i64, 0], &[2])?;
    /// let columns = Tensor::from_slice(&[0i64, 1], &[2])?;
    /// assert_eq!(x.index_get(&[&rows, &columns])?.to_vec::<i32>()?, [3, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Indices that are out of range or don't broadcast together, masks of another shape.
    #[track_caller]
    pub fn index_get(&self, indices: &[&Tensor]) -> Result<Tensor> {
        within(INDEX_GET.name, || flat(&INDEX_GET, self, indices, true)?.read(&INDEX_GET, self))
    }

    /// Returns a copy in which `x[indices[0], indices[1], …] = values`, or `+=` if `accumulate` is
    /// true.
    ///
    /// The indices are integer tensors, one for each of the first axes, and bool masks, each over
    /// as many axes as it has. They broadcast together, a mask as the list of its true places. The
    /// values broadcast to the shape of the written part.
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
            let values = self.values_to_put(values)?;
            let flat = flat(&INDEX_PUT, self, indices, false)?;
            flat.put(&INDEX_PUT, self, &values, assign_or_add(accumulate))
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
            let values = self.values_to_put(values)?;
            let flat = flat(&INDEX_PUT, self, indices, !self.records_with(&values))?;
            flat.write(&INDEX_PUT, self, &values, assign_or_add(accumulate))?;
            Ok(self)
        })
    }

    fn values_to_put(&self, values: &Tensor) -> Result<Tensor> {
        let op = INDEX_PUT.name;
        values.meta().expect_dtype_of(op, "value", &self.meta(), "x")?;
        values.beside(op, "value", self, "x")
    }
}

/// Combines indices and masks for the first axes of `x`.
pub(super) fn flat(
    operation: &'static Operation,
    x: &Tensor,
    indices: &[&Tensor],
    reorder: bool,
) -> Result<Flat> {
    let op = operation.name;
    let dims = x.dims();
    let (mut taken, mut fits) = (0, !indices.is_empty());
    for index in indices {
        let after = taken + covers(index);
        if index.dtype() == DType::Bool && after > x.rank() {
            let left = dims.get(taken..).unwrap_or_default();
            expect_shape(op, "mask", &index.dims(), left)?;
        }
        (taken, fits) = (after, fits && after <= x.rank());
    }
    if !fits {
        let (arg, got) = ("the number of indices", indices.len().to_string());
        let expected = format!("1 to {}, the rank of x", x.rank());
        return Err(Error::Argument { op, arg, got, expected });
    }
    let items: Vec<Item> = indices.iter().map(|&index| Item::Tensor(index.clone())).collect();
    Flat::new(operation, x, &items, reorder)
}
