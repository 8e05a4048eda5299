//! Tensors as text, as NumPy writes them.

use crate::Tensor;

/// The text of a tensor.
pub(crate) fn text(tensor: &Tensor) -> String {
    format!("Tensor(shape={:?}, dtype={})", tensor.shape(), tensor.dtype())
}
