//! Integers of any of Rust's types, where an axis, a size or a position is meant.

mod sealed {
    pub trait Sealed {}
}

/// An integer type in which axes, sizes, positions and ends of slices can be given.
///
/// ```
/// use inlay_core::Integer;
///
/// assert_eq!((-1).to_i64(), -1);
/// assert_eq!(usize::MAX.to_i64(), i64::MAX);
/// ```
pub trait Integer: Copy + sealed::Sealed {
    /// Returns the exact value.
    fn to_i128(self) -> i128;

    /// Returns the value, or the end of the range of `i64` that is nearest to it. No axis has a
    /// position beyond that range, so whatever is out of range stays out of range.
    fn to_i64(self) -> i64 {
        self.to_i128().clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

macro_rules! integers {
    ($($type:ty)*) => { $(
        impl sealed::Sealed for $type {}

        impl Integer for $type {
            #[inline]
            fn to_i128(self) -> i128 {
                self as i128
            }
        }
    )* };
}
integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
