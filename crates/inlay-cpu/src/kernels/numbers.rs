//! Lists of numbers that take 32 bits each if their bound allows it, otherwise 64.

use inlay_core::Result;

use crate::memory::Scratch;

/// A list of numbers below a bound, which is given when the list is made.
pub(super) enum Numbers {
    Narrow(Scratch<u32>),
    Wide(Scratch<u64>),
}

impl Numbers {
    /// Makes a list of `len` unspecified numbers. Numbers that are set later must be less than
    /// `bound`.
    pub(super) fn new(len: usize, bound: usize) -> Result<Self> {
        Ok(match u32::try_from(bound) {
            Ok(_) => Numbers::Narrow(Scratch::new(len)?),
            Err(_) => Numbers::Wide(Scratch::new(len)?),
        })
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Numbers::Narrow(values) => values.len(),
            Numbers::Wide(values) => values.len(),
        }
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> usize {
        match self {
            Numbers::Narrow(values) => values[at] as usize,
            Numbers::Wide(values) => values[at] as usize,
        }
    }

    #[inline]
    pub(super) fn set(&mut self, at: usize, number: usize) {
        match self {
            Numbers::Narrow(values) => values[at] = number as u32,
            Numbers::Wide(values) => values[at] = number as u64,
        }
    }

    pub(super) fn shared(&mut self) -> SharedNumbers {
        match self {
            Numbers::Narrow(values) => SharedNumbers::Narrow(values.as_mut_ptr()),
            Numbers::Wide(values) => SharedNumbers::Wide(values.as_mut_ptr()),
        }
    }
}

/// A pointer to a list of numbers. Several threads may use it, each for its own elements.
#[derive(Clone, Copy)]
pub(super) enum SharedNumbers {
    Narrow(*mut u32),
    Wide(*mut u64),
}

// SAFETY: it is only an address. Code that accesses memory through it is `unsafe` and says why no
// other thread accesses the same element.
unsafe impl Send for SharedNumbers {}
// SAFETY: as above.
unsafe impl Sync for SharedNumbers {}

impl SharedNumbers {
    /// Sets an element.
    ///
    /// # Safety
    /// The list exists and is longer than `at`, and no other thread accesses this element at the
    /// same time.
    #[inline]
    pub(super) unsafe fn set(self, at: usize, number: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                SharedNumbers::Narrow(values) => values.add(at).write(number as u32),
                SharedNumbers::Wide(values) => values.add(at).write(number as u64),
            }
        }
    }

    /// Replaces a number and returns the old one.
    ///
    /// # Safety
    /// As for [`SharedNumbers::set`].
    #[inline]
    pub(super) unsafe fn update(self, at: usize, change: impl FnOnce(usize) -> usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe {
            let old = match self {
                SharedNumbers::Narrow(values) => values.add(at).read() as usize,
                SharedNumbers::Wide(values) => values.add(at).read() as usize,
            };
            self.set(at, change(old));
            old
        }
    }
}
