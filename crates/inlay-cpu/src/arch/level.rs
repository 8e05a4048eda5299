//! The instruction set levels, their detection, and a function that forces a level in tests.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A set of vector instructions that kernels are compiled for. Each level includes the ones before
/// it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// The instructions that every processor of the architecture has. On x86-64 these are SSE2.
    Portable,
    /// AVX2 with F16C, which converts 16-bit floats.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ and VL: masks of lanes, compression of 32-bit lanes.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX-512 VBMI2: expansion and compression of 8-bit and 16-bit lanes.
    #[cfg(target_arch = "x86_64")]
    Avx512Vbmi2,
}

impl Level {
    /// All levels of the architecture, in order.
    #[cfg(target_arch = "x86_64")]
    const LEVELS: &[Level] = &[Level::Portable, Level::Avx2, Level::Avx512, Level::Avx512Vbmi2];
    /// All levels of the architecture, in order.
    #[cfg(not(target_arch = "x86_64"))]
    const LEVELS: &[Level] = &[Level::Portable];

    /// Returns the levels that this machine has, in order.
    pub fn all() -> impl Iterator<Item = Level> {
        let best = super::native::detect();
        Level::LEVELS.iter().copied().filter(move |&level| level <= best)
    }

    #[inline]
    fn of_code(code: u8) -> Option<Level> {
        Level::LEVELS.get(usize::from(code)).copied()
    }
}

/// The value of [`LEVEL`] while no level was detected yet.
const UNKNOWN: u8 = u8::MAX;

/// The level that kernels use, as the number of its variant.
static LEVEL: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Returns the level that kernels use: the highest that the machine has, unless a test forces
/// another. The level is detected once; after that, this function is a relaxed load.
#[inline]
pub(crate) fn level() -> Level {
    Level::of_code(LEVEL.load(Relaxed)).unwrap_or_else(detected)
}

#[cold]
fn detected() -> Level {
    let level = super::native::detect();
    // If a test has forced a level since, that level stays.
    let _ = LEVEL.compare_exchange(UNKNOWN, level as u8, Relaxed, Relaxed);
    level
}

/// A guard: a level is forced until it is dropped. Only one thread at a time can force a level.
/// Other threads may run kernels at the same time, because results are the same at every level.
#[must_use = "the level is forced until this is dropped"]
#[derive(Debug)]
pub struct Forced {
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Forced {
    fn drop(&mut self) {
        LEVEL.store(UNKNOWN, Relaxed);
    }
}

/// Makes all kernels use `level`, or the highest level of the machine if that is lower.
pub fn force(level: Level) -> Forced {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    LEVEL.store(level.min(super::native::detect()) as u8, Relaxed);
    Forced { _alone: alone }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forced_level_holds_until_it_is_dropped() {
        for wanted in Level::all() {
            let forced = force(wanted);
            assert_eq!(level(), wanted);
            drop(forced);
        }
        let codes = Level::LEVELS.iter().map(|&level| Level::of_code(level as u8));
        assert!(codes.eq(Level::LEVELS.iter().map(|&level| Some(level))));
        assert_eq!(Level::of_code(UNKNOWN), None);
    }
}
