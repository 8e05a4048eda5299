//! Packs bools into a bitmap.

use super::WORD;
use crate::Bool8;
use crate::arch::pack;

/// Packs the `len` bools at `from`, which are `stride` bytes apart, into the bits of `words` that
/// begin at `bit`. These bits must be 0 before.
///
/// # Safety
/// All of the bools can be read.
pub(super) unsafe fn run(
    words: &mut [u64],
    bit: usize,
    from: *const u8,
    stride: isize,
    len: usize,
) {
    // SAFETY: the caller's promise.
    let at = |k: usize| unsafe { from.offset(k as isize * stride).cast::<Bool8>().read().get() };
    match stride {
        // One bool is broadcast over the run.
        0 => {
            if len > 0 && at(0) {
                set(words, bit, len);
            }
        }
        1 => {
            let head = bit.next_multiple_of(WORD).min(bit + len) - bit;
            each(words, bit, 0..head, at);
            let whole = (len - head) / WORD;
            for k in 0..whole {
                let start = head + k * WORD;
                // SAFETY: the caller's promise; the 64 bools at `start` are inside of the run.
                words[(bit + start) / WORD] = unsafe { pack(from.add(start)) };
            }
            each(words, bit, head + whole * WORD..len, at);
        }
        _ => each(words, bit, 0..len, at),
    }
}

fn each(words: &mut [u64], bit: usize, range: std::ops::Range<usize>, at: impl Fn(usize) -> bool) {
    for k in range {
        words[(bit + k) / WORD] |= u64::from(at(k)) << ((bit + k) % WORD);
    }
}

/// Sets the `len` bits that begin at `bit`.
pub(super) fn set(words: &mut [u64], bit: usize, len: usize) {
    let end = bit + len;
    let head = bit.next_multiple_of(WORD).min(end);
    if head > bit {
        words[bit / WORD] |= super::first(head - bit) << (bit % WORD);
    }
    if end > head {
        words[head / WORD..end / WORD].fill(u64::MAX);
        if !end.is_multiple_of(WORD) {
            words[end / WORD] |= super::first(end % WORD);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::portable;

    #[test]
    fn packs_what_a_loop_packs() {
        let mut seed = 5u64;
        let mut random = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed >> 33
        };
        let bytes: Vec<u8> = (0..2000)
            .map(|k| match (k / 300) % 3 {
                0 => (random() % 2) as u8,
                // Every byte other than 0 is true.
                1 => (random() % 4 * 0x40) as u8,
                _ => u8::from(k % 7 == 0) * 0x80,
            })
            .collect();
        for start in (0..1900).step_by(17) {
            let window = &bytes[start..start + 64];
            let expected = (0..64).fold(0, |bits, k| bits | u64::from(window[k] != 0) << k);
            // SAFETY: the window has 64 bytes.
            let got = unsafe { (pack(window.as_ptr()), portable::pack(window.as_ptr())) };
            assert_eq!(got, (expected, expected));
        }
        for stride in [0, 1, 2, 3] {
            for bit in [0, 1, 63, 64, 70] {
                for len in [0, 1, 58, 64, 130, 400] {
                    let mut words = [0u64; 16];
                    // SAFETY: at most 3 * 400 bytes are read, which lie inside of the vector.
                    unsafe { run(&mut words, bit, bytes.as_ptr(), stride as isize, len) };
                    for k in 0..1024 {
                        let inside = k >= bit && k < bit + len;
                        let expected = inside && bytes[(k - bit.min(k)) * stride] != 0;
                        assert_eq!(words[k / 64] >> (k % 64) & 1 == 1, expected);
                    }
                }
            }
        }
    }
}
