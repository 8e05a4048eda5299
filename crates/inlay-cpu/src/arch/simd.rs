//! Loops that are compiled once per level, and what they may ask of the level.

use half::f16;

/// Proof that the machine has a level, and the operations of that level. Only the entry points of this
/// directory make a token, so its methods are safe.
pub trait Simd: Copy {
    /// Bytes of accumulators that fit into half of the vector registers.
    const ACCUMULATORS: usize;

    /// Converts 16-bit floats, in vectors where the level can.
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

/// A loop that the compiler turns into vectors, compiled once per token.
pub(crate) trait Loop {
    /// What it gives.
    type Output;

    /// Runs the loop. Implementations and what they call are `#[inline(always)]`: only code that is
    /// inlined into the entry point of a level is compiled for that level.
    ///
    /// # Safety
    /// What the type that implements it asks for.
    unsafe fn run<S: Simd>(self, simd: S) -> Self::Output;
}
