//! Maximum and minimum of 16-bit floats, computed on their bits.
//!
//! Every processor compares 16-bit integers in vectors. Widening, comparing and narrowing each
//! number takes 25 times as long, because the conversion checks for F16C at every number.

/// A format of 16-bit floats: the bits of its infinity, and the bit that makes a NaN quiet.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    infinity: i16,
    quiet: u16,
}

pub(crate) const F16: Format = Format { infinity: 0x7c00, quiet: 0x0200 };
pub(crate) const BF16: Format = Format { infinity: 0x7f80, quiet: 0x0040 };

/// Returns the larger of two numbers, or `a` if they are equal. If one of them is NaN, it returns
/// the NaN, and `b` if both are NaN. A signaling NaN becomes quiet, as it does when it is widened.
#[inline(always)]
pub(crate) fn larger(format: Format, a: u16, b: u16) -> u16 {
    choose(format, a, b, rank(b) > rank(a))
}

/// Returns the smaller of two numbers. Equal numbers and NaN are treated as in [`larger`].
#[inline(always)]
pub(crate) fn smaller(format: Format, a: u16, b: u16) -> u16 {
    choose(format, a, b, rank(b) < rank(a))
}

#[inline(always)]
fn choose(format: Format, a: u16, b: u16, prefers_b: bool) -> u16 {
    let is_nan = |bits: u16| magnitude(bits) > format.infinity;
    let chosen = if is_nan(b) | (!is_nan(a) & prefers_b) { b } else { a };
    if is_nan(chosen) { chosen | format.quiet } else { chosen }
}

#[inline(always)]
fn magnitude(bits: u16) -> i16 {
    (bits & 0x7fff) as i16
}

/// Returns an integer with the order of the numbers, except for NaN. Both zeros give 0.
#[inline(always)]
fn rank(bits: u16) -> i16 {
    let sign = bits as i16 >> 15;
    (magnitude(bits) ^ sign) - sign
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use crate::number::Ordered;

    #[test]
    fn bits_are_chosen_as_wide_numbers_are() {
        fn check<T: Ordered>(from: fn(u16) -> T, to: fn(T) -> u16) {
            // All values of the upper 9 bits, each with the edge values of the lower 7.
            let numbers = (0..=u16::MAX).filter(|bits| {
                let low = bits % 128;
                [0, 1, 0x3f, 0x40, 0x41, 0x7f].contains(&low)
            });
            let numbers: Vec<u16> = numbers.collect();
            for (k, &a) in numbers.iter().enumerate() {
                for &b in numbers.iter().skip(k % 7).step_by(7) {
                    let wide = |join: fn(T::Acc, T::Acc) -> T::Acc| {
                        to(T::narrow(join(from(a).widen(), from(b).widen())))
                    };
                    assert_eq!(to(T::merge_max(from(a), from(b))), wide(T::acc_max), "{a:x} {b:x}");
                    assert_eq!(to(T::merge_min(from(a), from(b))), wide(T::acc_min), "{a:x} {b:x}");
                }
            }
            for bits in 0..=u16::MAX {
                let alone = to(T::narrow(from(bits).widen()));
                assert_eq!(to(T::merge_max(from(bits), from(bits))), alone);
                assert_eq!(to(T::merge_min(from(bits), from(bits))), alone);
            }
        }
        check(f16::from_bits, f16::to_bits);
        check(bf16::from_bits, bf16::to_bits);
    }
}
