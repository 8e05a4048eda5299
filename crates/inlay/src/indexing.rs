//! Index expressions as tuples: `x.i((.., 1..3, &rows))`.

use std::borrow::Borrow;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use inlay_core::{Integer, Result, Slice};
use smallvec::{SmallVec, smallvec};

use crate::sizes::each_integer;
use crate::{Item, Operand, Tensor};

/// The items of an index expression.
type Items = SmallVec<[Item; 4]>;

/// An index expression: one item, or a tuple of up to eight.
///
/// | item | selects |
/// |---|---|
/// | an integer | one position; the axis is dropped |
/// | a range, or a [`Slice`] | a slice of an axis; `..` is the whole axis |
/// | a [`Tensor`], an array or a vector of integers | the positions that it lists |
/// | a bool [`Tensor`] | the places where it is true |
/// | [`Item::Ellipsis`] | as many whole axes as the other items leave |
/// | [`Item::NewAxis`] | a new axis of size 1 |
///
/// ```
/// use inlay::{Item, Slice, Tensor};
///
/// let x = Tensor::from([[0, 1, 2, 3], [4, 5, 6, 7]]);
/// assert_eq!(x.i((1, 2))?.item::<i32>()?, 6);
/// assert_eq!(x.i((.., -1))?.to_vec::<i32>()?, [3, 7]);
/// assert_eq!(x.i((0, Slice::from(..).step(2)))?.to_vec::<i32>()?, [0, 2]);
/// assert_eq!(x.i((.., [3, 0]))?.to_vec::<i32>()?, [3, 0, 7, 4]);
/// assert_eq!(x.i((Item::Ellipsis, Item::NewAxis))?.shape(), [2, 4, 1]);
/// # Ok::<(), inlay::Error>(())
/// ```
pub trait IntoItems {
    /// Returns the items.
    #[doc(hidden)]
    fn items(self) -> SmallVec<[Item; 4]>;
}

impl<T: Into<Item>> IntoItems for T {
    fn items(self) -> Items {
        smallvec![self.into()]
    }
}

impl IntoItems for () {
    fn items(self) -> Items {
        Items::new()
    }
}

impl IntoItems for &[Item] {
    fn items(self) -> Items {
        self.iter().cloned().collect()
    }
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => { $(
        impl<$($name: Into<Item>),*> IntoItems for ($($name,)*) {
            #[expect(non_snake_case, reason = "a value has the name of its type")]
            fn items(self) -> Items {
                let ($($name,)*) = self;
                smallvec![$($name.into()),*]
            }
        }
    )* };
}
tuples!((A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H));

macro_rules! positions {
    ($($type:ty)*) => { $(
        impl From<$type> for Item {
            fn from(position: $type) -> Self {
                Item::At(position.to_i64())
            }
        }
    )* };
}
each_integer!(positions);

impl From<Slice> for Item {
    fn from(slice: Slice) -> Self {
        Item::Slice(slice)
    }
}

impl From<RangeFull> for Item {
    fn from(range: RangeFull) -> Self {
        Item::Slice(range.into())
    }
}

macro_rules! ranges {
    ($($range:ident)*) => { $(
        impl<T: Integer> From<$range<T>> for Item {
            fn from(range: $range<T>) -> Self {
                Item::Slice(range.into())
            }
        }
    )* };
}
ranges!(Range RangeFrom RangeTo RangeInclusive RangeToInclusive);

impl From<Tensor> for Item {
    fn from(index: Tensor) -> Self {
        Item::Tensor(index)
    }
}

impl From<&Tensor> for Item {
    fn from(index: &Tensor) -> Self {
        Item::Tensor(index.clone())
    }
}

/// Positions on an axis.
impl<T: Integer> From<&[T]> for Item {
    fn from(positions: &[T]) -> Self {
        let positions: Vec<i64> = positions.iter().map(|position| position.to_i64()).collect();
        Item::Tensor(positions.into())
    }
}

impl<T: Integer> From<Vec<T>> for Item {
    fn from(positions: Vec<T>) -> Self {
        positions[..].into()
    }
}

impl<T: Integer> From<&Vec<T>> for Item {
    fn from(positions: &Vec<T>) -> Self {
        positions[..].into()
    }
}

impl<T: Integer, const N: usize> From<[T; N]> for Item {
    fn from(positions: [T; N]) -> Self {
        positions[..].into()
    }
}

impl<T: Integer, const N: usize> From<&[T; N]> for Item {
    fn from(positions: &[T; N]) -> Self {
        positions[..].into()
    }
}

impl Tensor {
    /// Returns the part of the tensor that an index expression selects, such as
    /// `x.i((.., 1..3, &rows))`: a view, unless an item is a tensor or a list. [`IntoItems`] lists
    /// the items.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.i(1)?.to_vec::<i32>()?, [4, 5, 6]);
    /// assert_eq!(x.i((.., 1..))?.to_vec::<i32>()?, [2, 3, 5, 6]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::index`].
    #[track_caller]
    pub fn i(&self, at: impl IntoItems) -> Result<Tensor> {
        self.index(&at.items())
    }

    /// Writes a tensor or a plain number to the part that an index expression selects. The value
    /// broadcasts to the shape of `self.i(at)`.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::zeros([2, 3], DType::F32)?;
    /// x.set((.., 0), 1)?.set((1, 1..), &Tensor::from([2.0f32, 3.0]))?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0, 2.0, 3.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::assign`].
    #[track_caller]
    pub fn set(&self, at: impl IntoItems, value: impl Operand) -> Result<&Self> {
        let value = value.held("setitem", "value", self)?;
        self.assign(&at.items(), value.borrow())?;
        Ok(self)
    }
}
