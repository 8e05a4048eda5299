//! The dtype and shape of a tensor, and the rules that inference shares.

use smallvec::SmallVec;

use crate::layout::{INLINE, collect, copied, diagonal_len};
use crate::{DType, Dim, Error, Result, ShapeText};

/// A shape whose sizes may be symbols.
pub type Dims = SmallVec<[Dim; INLINE]>;

/// The dtype and shape of a tensor.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Meta {
    /// The element type.
    pub dtype: DType,
    /// The shape. Its sizes may be unknown.
    pub shape: Dims,
}

impl Clone for Meta {
    #[inline]
    fn clone(&self) -> Self {
        Meta { dtype: self.dtype, shape: self.dims() }
    }
}

impl Meta {
    /// Returns a meta with known sizes.
    #[inline]
    pub fn known(dtype: DType, shape: &[usize]) -> Self {
        let shape = collect(shape.len(), Dim::Known(0), |k| Dim::Known(shape[k]));
        Meta { dtype, shape }
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns a copy of the shape. It is faster than a clone of it, which goes through an iterator.
    #[inline]
    pub fn dims(&self) -> Dims {
        copied(&self.shape, Dim::Known(0))
    }

    /// The number of elements, if every size is known.
    pub fn numel(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |n, dim| Some(n.saturating_mul(dim.known()?)))
    }

    /// Returns the same dtype with another shape.
    pub fn with_shape(&self, shape: Dims) -> Self {
        Meta { dtype: self.dtype, shape }
    }

    /// Fails unless both have the same dtype.
    pub fn expect_dtype_of(
        &self,
        op: &'static str,
        arg: &'static str,
        other: &Meta,
        other_arg: &'static str,
    ) -> Result<()> {
        if self.dtype == other.dtype {
            return Ok(());
        }
        Err(Error::DTypeMismatch { op, arg, got: self.dtype, other: other_arg, want: other.dtype })
    }

    /// Fails unless the dtype is an integer.
    pub fn expect_index(&self, op: &'static str, arg: &'static str) -> Result<()> {
        if self.dtype.is_integer() {
            return Ok(());
        }
        Err(Error::DType { op, arg, got: self.dtype, expected: "an integer dtype" })
    }

    /// Fails unless the dtype is bool.
    pub fn expect_mask(&self, op: &'static str, arg: &'static str) -> Result<()> {
        if self.dtype == DType::Bool {
            return Ok(());
        }
        Err(Error::DType { op, arg, got: self.dtype, expected: "bool" })
    }

    /// Fails unless the rank is `rank`.
    pub fn expect_rank(&self, op: &'static str, arg: &'static str, rank: usize) -> Result<()> {
        if self.rank() == rank {
            return Ok(());
        }
        let expected = format!("one of {rank} dimensions");
        let got = format!("of shape {}", ShapeText::of(&self.shape));
        Err(Error::Argument { op, arg, got, expected })
    }

    /// Fails unless the rank is at least `rank`.
    pub fn expect_rank_at_least(
        &self,
        op: &'static str,
        arg: &'static str,
        rank: usize,
    ) -> Result<()> {
        if self.rank() >= rank {
            return Ok(());
        }
        let expected = match rank {
            1 => "at least 1 dimension",
            _ => "at least 2 dimensions",
        };
        Err(Error::Rank { op, arg, got: self.rank(), expected })
    }

    /// Fails unless `axis` is less than the rank.
    pub fn expect_axis(&self, op: &'static str, axis: usize) -> Result<()> {
        if axis < self.rank() {
            return Ok(());
        }
        let axis = i64::try_from(axis).unwrap_or(i64::MAX);
        Err(Error::Axis { op, arg: "axis", axis, rank: self.rank() })
    }

    /// Returns the shape of the diagonal of two different axes.
    pub fn diagonal(&self, offset: i64, axis1: usize, axis2: usize) -> Dims {
        let len = match (self.shape[axis1], self.shape[axis2]) {
            (Dim::Known(rows), Dim::Known(cols)) => Dim::Known(diagonal_len(rows, cols, offset)),
            _ => Dim::unknown(),
        };
        let kept = self.shape.iter().enumerate();
        let kept = kept.filter(|(axis, _)| ![axis1, axis2].contains(axis)).map(|(_, dim)| *dim);
        kept.chain([len]).collect()
    }
}

/// Returns the axis counted from the front. Fails unless `-rank <= axis < rank`.
pub fn axis_of(op: &'static str, arg: &'static str, axis: i64, rank: usize) -> Result<usize> {
    let position = if axis < 0 { axis.checked_add_unsigned(rank as u64) } else { Some(axis) };
    match position.and_then(|position| usize::try_from(position).ok()) {
        Some(position) if position < rank => Ok(position),
        _ => Err(Error::Axis { op, arg, axis, rank }),
    }
}

/// Whether two shapes can be equal. Returns false only if they certainly differ.
pub fn may_equal(a: &[Dim], b: &[Dim]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.may_equal(*b))
}

/// Fails if `got` certainly differs from `expected`.
pub fn expect_shape(
    op: &'static str,
    arg: &'static str,
    got: &[Dim],
    expected: &[Dim],
) -> Result<()> {
    if may_equal(got, expected) {
        return Ok(());
    }
    Err(Error::Shape { op, arg, got: ShapeText::of(got), expected: ShapeText::of(expected) })
}

/// Returns the shape to which all of `shapes` broadcast by NumPy's rules, or `None`.
///
/// A symbol that meets a size other than 1 takes that size. Whether it really has it is checked
/// when it is known.
pub fn broadcast_dims(shapes: &[&[Dim]]) -> Option<Dims> {
    if let [first, others @ ..] = shapes
        && others.iter().all(|other| other == first)
    {
        return Some(copied(first, Dim::Known(0)));
    }
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut out: Dims = SmallVec::from_elem(Dim::Known(1), rank);
    for shape in shapes {
        let tail = &mut out[rank - shape.len()..];
        for (out, dim) in tail.iter_mut().zip(*shape) {
            *out = match (*out, *dim) {
                (a, b) if a == b => a,
                (Dim::Known(1), b) => b,
                (a, Dim::Known(1)) => a,
                (Dim::Known(_), Dim::Known(_)) => return None,
                (Dim::Known(a), Dim::Symbol(_)) | (Dim::Symbol(_), Dim::Known(a)) => Dim::Known(a),
                (Dim::Symbol(_), Dim::Symbol(_)) => Dim::unknown(),
            };
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_count_from_both_ends() {
        assert_eq!(axis_of("op", "axis", -1, 3), Ok(2));
        assert_eq!(axis_of("op", "axis", 0, 3), Ok(0));
        for bad in [3, -4, i64::MAX, i64::MIN] {
            let error = axis_of("op", "axis", bad, 3).expect_err("out of range");
            assert_eq!(error.to_string(), format!("op: axis {bad} is out of range for rank 3"));
        }
    }

    #[test]
    fn broadcasting_follows_numpy() {
        let dims = |shape: &[usize]| Meta::known(DType::F32, shape).shape;
        let both = |a: &[usize], b: &[usize]| broadcast_dims(&[&dims(a), &dims(b)]);
        assert_eq!(both(&[2, 1], &[3]), Some(dims(&[2, 3])));
        assert_eq!(both(&[], &[0]), Some(dims(&[0])));
        assert_eq!(both(&[2], &[3]), None);
        assert_eq!(both(&[0], &[2]), None);
    }

    #[test]
    fn unknown_sizes_are_believed_until_they_come() {
        let (n, known) = (Dim::unknown(), Dim::Known(4));
        assert!(expect_shape("op", "y", &[n], &[known]).is_ok());
        assert!(expect_shape("op", "y", &[n, n], &[known]).is_err());
        assert_eq!(broadcast_dims(&[&[n], &[known]]), Some(Dims::from_slice(&[known])));
        assert_eq!(broadcast_dims(&[&[n], &[n]]), Some(Dims::from_slice(&[n])));
    }
}
