//! Conversions from and to the arrays of the crate `ndarray`, with the feature `ndarray`.

use ::ndarray::{Array, ArrayBase, ArrayD, ArrayView, Data, Dimension, IxDyn};
use inlay_core::{Error, Layout, Result};
use inlay_cpu::Element;

use crate::Tensor;

/// Takes the memory of the array without a copy, whatever its strides. If the current device is a
/// GPU, the elements are copied there.
///
/// ```
/// # use inlay::Tensor;
/// let rows = ndarray::array![[1.0f32, 2.0], [3.0, 4.0]];
/// let x = Tensor::try_from(rows)?;
/// let back = ndarray::Array2::<f32>::try_from(&x)?;
/// assert_eq!(back, ndarray::array![[1.0, 2.0], [3.0, 4.0]]);
/// # Ok::<(), inlay::Error>(())
/// ```
impl<T: Element, D: Dimension> TryFrom<Array<T, D>> for Tensor {
    type Error = Error;

    fn try_from(array: Array<T, D>) -> Result<Self> {
        let size = size_of::<T>();
        let shape = array.shape().to_vec();
        let strides: Vec<isize> = array.strides().iter().map(|by| by * size as isize).collect();
        let (values, offset) = array.into_raw_vec_and_offset();
        let layout = Layout::over(&shape, &strides, offset.unwrap_or(0) * size);
        Tensor::from_vec_at("from_ndarray", values, layout)
    }
}

/// Copies the elements of any array.
impl<T: Element, S: Data<Elem = T>, D: Dimension> TryFrom<&ArrayBase<S, D>> for Tensor {
    type Error = Error;

    fn try_from(array: &ArrayBase<S, D>) -> Result<Self> {
        match array.as_slice() {
            Some(values) => Tensor::from_slice(values, array.shape()),
            None => Tensor::from_vec(array.iter().copied().collect(), array.shape()),
        }
    }
}

/// Copies the elements of a view.
impl<T: Element, D: Dimension> TryFrom<ArrayView<'_, T, D>> for Tensor {
    type Error = Error;

    fn try_from(view: ArrayView<'_, T, D>) -> Result<Self> {
        Tensor::try_from(&view)
    }
}

/// Copies the elements to an array in row-major order. The dtype must be that of `T`, and the rank
/// that of `D`.
impl<T: Element, D: Dimension> TryFrom<&Tensor> for Array<T, D> {
    type Error = Error;

    fn try_from(tensor: &Tensor) -> Result<Self> {
        let op = "to_ndarray";
        tensor.expect_dtype(op, T::DTYPE)?;
        let rank = tensor.rank();
        if let Some(expected) = D::NDIM.filter(|expected| *expected != rank) {
            let (got, expected) = (format!("of rank {rank}"), format!("rank {expected}"));
            return Err(Error::Argument { op, arg: "self", got, expected });
        }
        let array = ArrayD::from_shape_vec(IxDyn(tensor.shape()), tensor.to_vec()?);
        // An array without elements may have sizes whose product `ndarray` does not take.
        let too_large = |_| Error::TooLarge { op, shape: tensor.shape().to_vec() };
        array.and_then(|array| array.into_dimensionality()).map_err(too_large)
    }
}

/// As the conversion of `&Tensor`.
impl<T: Element, D: Dimension> TryFrom<Tensor> for Array<T, D> {
    type Error = Error;

    fn try_from(tensor: Tensor) -> Result<Self> {
        Array::try_from(&tensor)
    }
}
