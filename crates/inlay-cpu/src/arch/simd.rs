//! Loops that are compiled once per level, and the operations of a level that they can use.

use half::f16;

/// A token of a level: a proof that the machine has the level, and the operations of the level.
/// Only the entry points of this directory make a token, after they have checked the level. So its
/// methods are safe.
pub trait Simd: Copy {
    /// The bytes of half of the vector registers, which loops use for accumulators.
    const ACCUMULATORS: usize;

    /// Converts 16-bit floats to 32 bits, by vector instructions if the level has them.
    fn widen_halves<const N: usize>(self, values: [f16; N]) -> [f32; N];
}

/// The token of the portable level.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Simd for Portable {
    // Eight registers of 16 bytes.
    const ACCUMULATORS: usize = 128;

    #[inline(always)]
    fn widen_halves<const N: usize>(self, values: [f16; N]) -> [f32; N] {
        values.map(f16::to_f32)
    }
}

/// A loop that the compiler vectorizes. It is compiled once per token.
pub(crate) trait Loop {
    /// The result of the loop.
    type Output;

    /// Runs the loop. Implementations and what they call are `#[inline(always)]`: only code that is
    /// inlined into the entry point of a level is compiled for that level.
    ///
    /// # Safety
    /// The requirements of the implementing type.
    unsafe fn run<S: Simd>(self, simd: S) -> Self::Output;
}
