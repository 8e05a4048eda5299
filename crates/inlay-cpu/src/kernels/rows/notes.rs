//! Notes about the places of a scatter: which of them have a value that takes part in the reduction, and
//! how many values each has.

use inlay_core::{Combine, Reduce};

/// The notes that are kept about the places of a range while they are written. They are needed
/// because without `include_self` the first update replaces the old value, and because a mean needs
/// the number of its values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Notes {
    Nothing,
    /// A bit for each place, which is set once an entry has named it. The last word is the number of
    /// words before it that are known to have all bits set.
    Named,
    /// The number of values in the sum of each place: a `u8`, with a list of overflows.
    Counted {
        include_self: bool,
    },
}

impl Notes {
    pub(super) fn of(combine: Combine) -> Self {
        match combine {
            Combine::Reduce { reduce: Reduce::Mean, include_self } => {
                Notes::Counted { include_self }
            }
            Combine::Reduce { include_self: false, .. } => Notes::Named,
            _ => Notes::Nothing,
        }
    }

    /// Returns how many words the notes of `places` take, if the index has `entries`.
    pub(super) fn words(self, places: usize, entries: usize) -> usize {
        match self {
            Notes::Nothing => 0,
            Notes::Named => places.div_ceil(u32::BITS as usize) + 1,
            Notes::Counted { .. } => words_of_counts(places, entries),
        }
    }

    /// Sets the words to their state before the first entry.
    pub(super) fn clear(self, words: &mut [u32]) {
        words.fill(match self {
            Notes::Counted { include_self: true } => u32::from_ne_bytes([1; 4]),
            _ => 0,
        });
        // The last word is the number of overflows.
        if let (Notes::Counted { .. }, Some(last)) = (self, words.last_mut()) {
            *last = 0;
        }
    }
}

/// Notes about places, which tell whether the current value of a place takes part in the reduction.
pub(super) trait Note {
    /// Whether the current value of a place always takes part, so that the choice is left out.
    const JOINS: bool = false;
    /// Whether every value is noted, and not only the first one of a place.
    const COUNTS: bool = false;
    /// Returns whether the current value of the place takes part, and notes that it does from now
    /// on.
    ///
    /// # Safety
    /// `words` are the notes of a range of places, and `place` is one of them.
    unsafe fn takes_part(words: &mut [u32], place: usize) -> bool;

    /// Returns whether all places of a range are noted and values need not be counted, so that from now
    /// on notes are not needed. (Sums of 10M values into 10k places without the old values: 8.9 ms
    /// instead of 13.6.)
    fn are_complete(_words: &mut [u32], _places: usize) -> bool {
        false
    }
}

/// There are no notes: every value takes part.
pub(super) struct Everything;
pub(super) struct Named;
/// Counts values. Old values take part if `SELF` is true.
pub(super) struct Counted<const SELF: bool>;

impl Note for Everything {
    const JOINS: bool = true;
    #[inline(always)]
    unsafe fn takes_part(_words: &mut [u32], _place: usize) -> bool {
        true
    }
}

impl Note for Named {
    #[inline(always)]
    unsafe fn takes_part(words: &mut [u32], place: usize) -> bool {
        // SAFETY: the caller's promise.
        let word = unsafe { words.get_unchecked_mut(place / 32) };
        let bit = 1 << (place % 32);
        let was = *word & bit != 0;
        *word |= bit;
        was
    }

    fn are_complete(words: &mut [u32], places: usize) -> bool {
        let Some((full, bits)) = words.split_last_mut() else { return false };
        let rest = &bits[*full as usize..places / 32];
        *full += rest.iter().take_while(|word| **word == u32::MAX).count() as u32;
        *full as usize == places / 32
            && (places.is_multiple_of(32) || bits[places / 32].count_ones() as usize == places % 32)
    }
}

impl<const SELF: bool> Note for Counted<SELF> {
    const JOINS: bool = SELF;
    const COUNTS: bool = true;
    #[inline(always)]
    unsafe fn takes_part(words: &mut [u32], place: usize) -> bool {
        // SAFETY: the caller's promise.
        let count = unsafe { &mut *words.as_mut_ptr().cast::<u8>().add(place) };
        let next = count.wrapping_add(1);
        *count = next;
        if next == u8::MAX {
            *count = 1;
            spill(words, place);
        }
        next > 1
    }
}

/// The number of entries that one overflow of a [`Counted`] byte stands for. The byte goes from 255
/// to 1, because 0 would mean that the place has no value yet.
pub(super) const SPILLED: usize = 254;

/// Returns how many words the counts of `places` take, if the index has `entries`. Counts are `u8`,
/// so four times as many fit into the cache as with `u32`. The last word is the number of
/// overflows, and the places that overflowed are listed before it, in reverse order. (10M values
/// into 1M: 0.85 of the time.)
fn words_of_counts(places: usize, entries: usize) -> usize {
    places.div_ceil(size_of::<u32>()) + entries / SPILLED + 1
}

#[cold]
#[inline(never)]
fn spill(words: &mut [u32], place: usize) {
    if let Some((spilled, before)) = words.split_last_mut() {
        *spilled += 1;
        let at = before.len() - *spilled as usize;
        before[at] = place as u32;
    }
}

/// Returns the `u8` count of each place, and the sorted list of the places that overflowed, once
/// for each overflow.
pub(super) fn counts(words: &mut [u32], places: usize) -> (&[u8], &[u32]) {
    let Some((spilled, before)) = words.split_last_mut() else { return (&[], &[]) };
    let (bytes, aside) = before.split_at_mut(before.len() - *spilled as usize);
    aside.sort_unstable();
    // SAFETY: each word is four initialized bytes.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<u8>(), 4 * bytes.len()) };
    (&bytes[..places], aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_complete_when_the_last_place_is_noted() {
        for places in [1, 31, 32, 33, 64, 100] {
            // The last place that is noted is the first, the last, or one in the middle.
            for last in [0, places / 2, places - 1] {
                let mut words = vec![0; Notes::Named.words(places, 0)];
                for place in (0..places).filter(|&place| place != last).chain([last]) {
                    assert!(!Named::are_complete(&mut words, places));
                    // SAFETY: these are the notes of `places`.
                    assert!(!unsafe { Named::takes_part(&mut words, place) });
                }
                assert!(Named::are_complete(&mut words, places));
                assert!((0..places).all(|place| {
                    // SAFETY: as above.
                    unsafe { Named::takes_part(&mut words, place) }
                }));
            }
        }
    }
}
