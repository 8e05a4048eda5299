//! `gather_nd`: reads the elements or rows at the places that the last axis of an index names.

use inlay_core::Result;

use super::index_put::flat;
use super::scatter_nd::split;
use crate::Tensor;
use crate::declare::declare;
use crate::site::within;

declare! {
    /// The elements or rows ``x[index[i]]`` for every row of `index`, whose last axis names a place
    /// on the first axes of x.
    ///
    /// >>> import inlay
    /// >>> inlay.gather_nd([[1, 2], [3, 4]], [[1, 0], [0, 1]])
    /// array([3, 2])
    /// >>> inlay.gather_nd([[1, 2], [3, 4]], [[1], [1]])
    /// array([[3, 4],
    ///        [3, 4]])
    GATHER_ND = "gather_nd"(x: Tensor, index: Index, name: Label = None)
        gradients [x]
        => x.gather_nd(index);
}

impl Tensor {
    /// Returns `x[index[i]]` for every row i of `index`, whose last axis names a place on the first
    /// axes of `x`.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from_slice(&[1i32, 2, 3, 4], &[2, 2])?;
    /// let index = Tensor::from_slice(&[1i64, 0, 0, 1], &[2, 2])?;
    /// assert_eq!(x.gather_nd(&index)?.to_vec::<i32>()?, [3, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// An index that is 0-D or not of integers, a last axis that is empty or longer than the rank,
    /// indices out of range.
    #[track_caller]
    pub fn gather_nd(&self, index: &Tensor) -> Result<Tensor> {
        within(GATHER_ND.name, || {
            let parts = split(&GATHER_ND, self, index)?;
            let parts: Vec<&Tensor> = parts.iter().collect();
            flat(&GATHER_ND, self, &parts, true)?.read(&GATHER_ND, self)
        })
    }
}
