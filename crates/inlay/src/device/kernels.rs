//! The list of kernels. Each function calls the kernel of the device that holds its arrays.

use inlay_core::{Arithmetic, Comparison, Fold, Result, Triangle, Unary};

use super::cpu;
#[cfg(feature = "gpu")]
use super::gpu;
use crate::array::Array;
use crate::memory::Buffer;

/// An index whose entries were checked and counted from the front.
pub(crate) enum Positions {
    Cpu(cpu::Positions),
    #[cfg(feature = "gpu")]
    Gpu(gpu::Positions),
}

/// A mask that was packed and counted.
pub(crate) enum Bits {
    Cpu(cpu::Bits),
    #[cfg(feature = "gpu")]
    Gpu(gpu::Bits),
}

/// The return value of a kernel: nothing, or a result.
trait Done {
    fn done(self) -> Result<()>;
}

impl Done for () {
    fn done(self) -> Result<()> {
        Ok(())
    }
}

impl Done for Result<()> {
    fn done(self) -> Result<()> {
        self
    }
}

/// Declares the kernels. Both device crates have a function of each name.
///
/// The brackets list the arrays: the target, a base if there is one, and the sources. The
/// parentheses list the other arguments. After `=` is the order in which the kernels take all of
/// them. On the CPU the arrays are locked and become views; on a GPU they become views of its
/// buffers. A kernel runs on the device of its target, or on the device of the argument after `by`.
macro_rules! kernels {
    ($(
        $(#[$doc:meta])*
        $name:ident[$to:ident $(, base $base:ident)?; $($source:ident),*]
        ($($arg:ident: $type:ty),*) $(by $by:ident: $kind:ident)? = ($($order:ident),*);
    )*) => { $(
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name(
            $to: &Array,
            $($base: Option<&Array>,)?
            $($source: &Array,)*
            $($arg: $type,)*
        ) -> Result<()> {
            kernels!(@where [$($by $kind)?] $to {
                cpu::write($to, kernels!(@base $($base)?), [$($source),*], |$to, base, [$($source),*]| {
                    $(let $base = base;)?
                    let _ = base;
                    inlay_cpu::kernels::$name($($order),*).done()
                })?
            } {
                let $to = gpu::view($to);
                $(let $base = $base.map(gpu::view);)?
                $(let $source = gpu::view($source);)*
                inlay_gpu::kernels::$name($($order),*)
            })
        }
    )* };
    (@base) => { None };
    (@base $base:ident) => { $base };
    (@where [] $to:ident { $($cpu:tt)* } { $($gpu:tt)* }) => {
        match &$to.buffer {
            Buffer::Cpu(_) => { $($cpu)* }
            #[cfg(feature = "gpu")]
            Buffer::Gpu(_) => { $($gpu)* }
        }
    };
    (@where [$by:ident $kind:ident] $to:ident { $($cpu:tt)* } { $($gpu:tt)* }) => {
        match $by {
            $kind::Cpu($by) => { $($cpu)* }
            #[cfg(feature = "gpu")]
            $kind::Gpu($by) => { $($gpu)* }
        }
    };
}

kernels! {
    /// `to = from`.
    copy[to; from]() = (to, from);

    /// `to = from`, in the dtype of `to`.
    cast[to; from]() = (to, from);

    /// `to = a (op) b`, or `to (op)= b` without `a`.
    arithmetic[to, base a; b](op: Arithmetic) = (op, to, a, b);

    /// `to = op(a)`.
    unary[to; a](op: Unary) = (op, to, a);

    /// `to = a (op) b`, as bool.
    compare[to; a, b](op: Comparison) = (op, to, a, b);

    /// `to = if condition { a } else { b }`; without `b`, `to` keeps what it has.
    blend[to, base b; condition, a]() = (to, condition, a, b);

    /// Reduces `from` over the axes for which `over` is true.
    fold[to; from](how: Fold, over: &[bool]) = (how, to, from, over);

    /// Copies a triangle of `from`. The rest of `to` is 0.
    keep_triangle[to; from](triangle: Triangle, offset: i64) = (to, from, triangle, offset);

    /// `to = base`, except that the k-th true place takes the k-th element of the contiguous
    /// `source`.
    expand[to, base base; source](bits: &Bits) by bits: Bits = (to, base, bits, source);

    /// Copies the elements of `from` at the true places, in order.
    compress[to; from](bits: &Bits) by bits: Bits = (to, from, bits);

    /// Sets `to` to whether each entry is the last one along `axis` that names its place, as bool.
    /// There are `places` places.
    winning_elements[to;](index: &Positions, axis: usize, places: usize) by index: Positions
        = (to, index, axis, places);

    /// `to[i] = a[i] + c[i] * to[from[i]]` along `axis`.
    scan_rows[to; a, c](axis: usize, from: &Positions, backwards: bool) by from: Positions
        = (to, a, c, axis, from, backwards);

    /// `to[i]` is the gradient `g` at the place of row `i`, times the conjugate of the product of
    /// all factors of that place except `x[i]`: the other rows of `x`, and `first`.
    products_of_others[to, base first; g, x](axis: usize, index: &Positions) by index: Positions
        = (to, g, x, first, axis, index);

    /// `to` is the gradient `g`, times the conjugate of the product of all rows of `x` that name
    /// its place.
    products_of_all[to; g, x](axis: usize, index: &Positions) by index: Positions
        = (to, g, x, axis, index);
}
