//! Shapes and axes as users write them: lists of any integer type.

use inlay_core::{Error, Integer, Result, Shape};
use smallvec::{Array, SmallVec};

/// Sizes or axes as they were written.
pub(crate) type Numbers = SmallVec<[i128; 6]>;

/// A shape: an array, a slice or a vector of integers, one integer for a single dimension, or `()`
/// for none.
///
/// ```
/// use inlay::{DType, Tensor};
///
/// let x = Tensor::zeros([2, 3], DType::F32)?;
/// let y = Tensor::ones(x.shape(), x.dtype())?;
/// let z = Tensor::full(vec![2usize, 3], 0.5, DType::F32)?;
/// assert!(x.shape() == y.shape() && y.shape() == z.shape());
///
/// let number = Tensor::zeros((), DType::F32)?;
/// assert_eq!(number.rank(), 0);
/// assert_eq!(x.reshape([3, -1])?.shape(), [3, 2]);
/// # Ok::<(), inlay::Error>(())
/// ```
///
/// Sizes are at least 0. [`Tensor::reshape`](crate::Tensor::reshape) takes one -1.
pub trait IntoShape {
    /// Returns the sizes as they were written.
    #[doc(hidden)]
    fn numbers(&self) -> SmallVec<[i128; 6]>;
}

impl<T: Integer> IntoShape for [T] {
    fn numbers(&self) -> Numbers {
        self.iter().map(|size| size.to_i128()).collect()
    }
}

impl<T: Integer, const N: usize> IntoShape for [T; N] {
    fn numbers(&self) -> Numbers {
        self[..].numbers()
    }
}

impl<T: Integer> IntoShape for Vec<T> {
    fn numbers(&self) -> Numbers {
        self[..].numbers()
    }
}

impl<A: Array<Item: Integer>> IntoShape for SmallVec<A> {
    fn numbers(&self) -> Numbers {
        self[..].numbers()
    }
}

impl<S: IntoShape + ?Sized> IntoShape for &S {
    fn numbers(&self) -> Numbers {
        (**self).numbers()
    }
}

impl IntoShape for () {
    fn numbers(&self) -> Numbers {
        Numbers::new()
    }
}

/// Returns sizes of at least 0. Errors name `op`.
pub(crate) fn sizes_of(op: &'static str, shape: &Numbers) -> Result<Shape> {
    let sizes = shape.iter().map(|&size| usize::try_from(size).ok());
    sizes.collect::<Option<Shape>>().ok_or_else(|| {
        let (got, expected) = (format!("{:?}", &shape[..]), "sizes of at least 0".into());
        Error::Argument { op, arg: "shape", got, expected }
    })
}

/// Axes to reduce over: one axis, a list of axes, or `None` for all.
///
/// ```
/// use inlay::Tensor;
///
/// let x = Tensor::from([[1, 2], [3, 4]]);
/// assert_eq!(x.sum(None, false)?.item::<i64>()?, 10);
/// assert_eq!(x.sum(0, false)?.to_vec::<i64>()?, [4, 6]);
/// assert_eq!(x.sum([0, -1], true)?.shape(), [1, 1]);
/// # Ok::<(), inlay::Error>(())
/// ```
pub trait IntoAxes {
    /// Returns the axes as they were written.
    #[doc(hidden)]
    fn axes(&self) -> Option<Vec<i64>>;
}

impl<T: Integer> IntoAxes for [T] {
    fn axes(&self) -> Option<Vec<i64>> {
        Some(self.iter().map(|axis| axis.to_i64()).collect())
    }
}

impl<T: Integer, const N: usize> IntoAxes for [T; N] {
    fn axes(&self) -> Option<Vec<i64>> {
        self[..].axes()
    }
}

impl<T: Integer> IntoAxes for Vec<T> {
    fn axes(&self) -> Option<Vec<i64>> {
        self[..].axes()
    }
}

impl<A: IntoAxes + ?Sized> IntoAxes for &A {
    fn axes(&self) -> Option<Vec<i64>> {
        (**self).axes()
    }
}

/// Calls a macro with all integer types. A trait that arrays implement too can't be implemented for
/// all of [`Integer`] at once, because that trait is of another crate.
macro_rules! each_integer {
    ($of:ident) => {
        $of!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
    };
}
pub(crate) use each_integer;

macro_rules! single {
    ($($type:ty)*) => { $(
        impl IntoShape for $type {
            fn numbers(&self) -> Numbers {
                [*self].numbers()
            }
        }

        impl IntoAxes for $type {
            fn axes(&self) -> Option<Vec<i64>> {
                [*self].axes()
            }
        }
    )* };
}
each_integer!(single);

// The only implementation for an `Option`, so that the type of a plain `None` is known.
impl IntoAxes for Option<&[i64]> {
    fn axes(&self) -> Option<Vec<i64>> {
        self.map(<[i64]>::to_vec)
    }
}
