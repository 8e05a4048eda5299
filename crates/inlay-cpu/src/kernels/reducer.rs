//! The five reductions as types, so that each loop is compiled for its own.

use crate::memory::Plain;
use crate::number::{Number, Ordered};

/// A reduction of numbers `T`: the first, one more, and the end.
pub(super) trait Reducer<T> {
    type Acc: Plain;
    fn first(value: T) -> Self::Acc;
    fn step(acc: Self::Acc, value: T) -> Self::Acc;
    fn finish(acc: Self::Acc, count: usize) -> T;
}

pub(super) struct Sum;
pub(super) struct Mul;
pub(super) struct Mean;
pub(super) struct Amax;
pub(super) struct Amin;

impl<T: Number> Reducer<T> for Sum {
    type Acc = T::Acc;
    fn first(value: T) -> T::Acc {
        value.widen()
    }
    fn step(acc: T::Acc, value: T) -> T::Acc {
        T::acc_add(acc, value.widen())
    }
    fn finish(acc: T::Acc, _count: usize) -> T {
        T::narrow(acc)
    }
}

impl<T: Number> Reducer<T> for Mul {
    type Acc = T::Acc;
    fn first(value: T) -> T::Acc {
        value.widen()
    }
    fn step(acc: T::Acc, value: T) -> T::Acc {
        T::acc_mul(acc, value.widen())
    }
    fn finish(acc: T::Acc, _count: usize) -> T {
        T::narrow(acc)
    }
}

impl<T: Number> Reducer<T> for Mean {
    type Acc = T::MeanAcc;
    fn first(value: T) -> T::MeanAcc {
        value.mean_widen()
    }
    fn step(acc: T::MeanAcc, value: T) -> T::MeanAcc {
        T::mean_add(acc, value.mean_widen())
    }
    fn finish(acc: T::MeanAcc, count: usize) -> T {
        T::mean_of(acc, count)
    }
}

// The larger or smaller of numbers is one of them, so no wider accumulator is needed.
impl<T: Ordered> Reducer<T> for Amax {
    type Acc = T::Acc;
    fn first(value: T) -> T::Acc {
        value.widen()
    }
    fn step(acc: T::Acc, value: T) -> T::Acc {
        T::max(T::narrow(acc), value).widen()
    }
    fn finish(acc: T::Acc, _count: usize) -> T {
        T::narrow(acc)
    }
}

impl<T: Ordered> Reducer<T> for Amin {
    type Acc = T::Acc;
    fn first(value: T) -> T::Acc {
        value.widen()
    }
    fn step(acc: T::Acc, value: T) -> T::Acc {
        T::min(T::narrow(acc), value).widen()
    }
    fn finish(acc: T::Acc, _count: usize) -> T {
        T::narrow(acc)
    }
}

/// Runs `$body` with `$T` and `$R` as the types of a dtype and a reduction that is defined for it.
macro_rules! dispatch_reduce {
    ($reduce:expr, $dtype:expr, ($T:ident, $R:ident) => $body:expr) => {{
        use inlay_core::Reduce;
        use $crate::kernels::reducer::{Amax, Amin, Mean, Mul, Sum};
        use $crate::number::dispatch;
        assert!($reduce.is_defined_for($dtype), "inference refuses {} of {}", $reduce, $dtype);
        match $reduce {
            Reduce::Sum => dispatch!($dtype, $T => { type $R = Sum; $body }),
            Reduce::Mul => dispatch!($dtype, $T => { type $R = Mul; $body }),
            Reduce::Mean => dispatch!($dtype, $T => { type $R = Mean; $body }),
            Reduce::Amax => dispatch!(ordered $dtype, $T => { type $R = Amax; $body }, else {}),
            Reduce::Amin => dispatch!(ordered $dtype, $T => { type $R = Amin; $body }, else {}),
        }
    }};
}
pub(super) use dispatch_reduce;

/// What [`reduce_run`] reads: rows of equally spaced elements at equal distances.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) origin: *const u8,
    /// From one row to the next.
    pub(super) row_stride: isize,
    /// From one element of a row to the next.
    pub(super) stride: isize,
}

/// How many accumulators are kept at a time: enough for whole vectors, few enough for the first
/// cache.
const LANES: usize = 64;

/// Reduces the rows that `members` lists, in that order, element by element into `to`; with
/// `include_self`, what is at `own` comes first.
///
/// # Safety
/// `len` elements at `to`, at `own` if there is one, and in each listed row can be written and
/// read; `to` overlaps nothing but `own`. There is something to reduce.
#[inline]
pub(super) unsafe fn reduce_run<T: Copy, R: Reducer<T>>(
    (to, to_stride): (*mut u8, isize),
    own: Option<(*const u8, isize)>,
    rows: Rows,
    members: &[usize],
    len: usize,
) {
    let count = members.len() + usize::from(own.is_some());
    let (head, tail) = match own {
        Some(own) => (own, members),
        None => match members.split_first() {
            // SAFETY: the caller's promise that listed rows can be read.
            Some((&first, tail)) => (unsafe { rows.at(first, 0) }, tail),
            None => return,
        },
    };
    let mut acc = [std::mem::MaybeUninit::<R::Acc>::uninit(); LANES];
    let mut start = 0;
    while start < len {
        let n = (len - start).min(LANES);
        // SAFETY: the caller's promise; the first n accumulators are written before they are read.
        unsafe {
            each::<T>(n, (head.0.offset(start as isize * head.1), head.1), |k, value| {
                acc[k].write(R::first(value));
            });
            for &member in tail {
                each::<T>(n, rows.at(member, start), |k, value| {
                    acc[k].write(R::step(acc[k].assume_init(), value));
                });
            }
            let to = to.offset(start as isize * to_stride);
            for (k, acc) in acc.iter().take(n).enumerate() {
                let value = R::finish(acc.assume_init(), count);
                to.offset(k as isize * to_stride).cast::<T>().write_unaligned(value);
            }
        }
        start += n;
    }
}

impl Rows {
    /// # Safety
    /// The row and the element exist.
    unsafe fn at(&self, row: usize, element: usize) -> (*const u8, isize) {
        let by = row as isize * self.row_stride + element as isize * self.stride;
        // SAFETY: the caller's promise.
        (unsafe { self.origin.offset(by) }, self.stride)
    }
}

/// Calls `visit` with `n` equally spaced values; those without gaps get a loop of their own, which
/// the compiler turns into vectors.
///
/// # Safety
/// All of them can be read.
#[inline(always)]
unsafe fn each<T: Copy>(
    n: usize,
    (from, stride): (*const u8, isize),
    mut visit: impl FnMut(usize, T),
) {
    // SAFETY: the caller's promise.
    unsafe {
        if stride == size_of::<T>() as isize {
            for k in 0..n {
                visit(k, from.cast::<T>().add(k).read_unaligned());
            }
        } else {
            for k in 0..n {
                visit(k, from.offset(k as isize * stride).cast::<T>().read_unaligned());
            }
        }
    }
}
