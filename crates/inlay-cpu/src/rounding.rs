//! Conversions to 16-bit floats that round once. A conversion from `f64` through `f32` rounds
//! twice. The result is still the nearest number if the first rounding is to odd: the last bit of
//! an inexact value is set to 1, so the second rounding never mistakes it for a tie.

use half::{bf16, f16};

/// Rounds to odd.
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) == value || !near.is_finite() {
        return near;
    }
    let bits = near.to_bits();
    // Truncate: undo a rounding away from zero.
    let cut = if f64::from(near).abs() > value.abs() { bits - 1 } else { bits };
    f32::from_bits(cut | 1)
}

/// Returns the nearest `f16`.
pub fn f16_from_f64(value: f64) -> f16 {
    f16::from_f32(to_odd(value))
}

/// Returns the nearest `bf16`.
pub fn bf16_from_f64(value: f64) -> bf16 {
    bf16::from_f32(to_odd(value))
}

/// Converts an integer to `f64`, rounded to odd, so that [`f16_from_f64`] and [`bf16_from_f64`]
/// round the result as they would round the integer itself.
pub fn f64_from_i128(value: i128) -> f64 {
    let size = value.unsigned_abs();
    let spare = (128 - size.leading_zeros()).saturating_sub(53);
    let lost = size & ((1 << spare) - 1) != 0;
    let odd = ((size >> spare) | u128::from(lost)) << spare;
    if value < 0 { -(odd as f64) } else { odd as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_are_broken_by_what_lies_beyond_them() {
        let tie = 1.0 + f64::from(f16::EPSILON) / 2.0;
        assert_eq!(f16_from_f64(tie), f16::ONE);
        assert_eq!(f16_from_f64(tie + 1e-12).to_f64(), 1.0 + f64::from(f16::EPSILON));
        assert_eq!(f16_from_f64(tie - 1e-12), f16::ONE);
        assert_eq!(f16_from_f64(-tie - 1e-12).to_f64(), -1.0 - f64::from(f16::EPSILON));
        let tie = (1i128 << 60) + (1 << 52);
        assert_eq!(bf16_from_f64(f64_from_i128(tie)).to_f64(), 2f64.powi(60));
        let above = bf16_from_f64(f64_from_i128(tie + 1)).to_f64();
        assert_eq!(above, 2f64.powi(60) + 2f64.powi(53));
    }

    #[test]
    fn exact_numbers_stay() {
        for value in [0.0, -0.0, 1.5, -2.0, 65504.0, f64::INFINITY, f64::NEG_INFINITY, 6e-8] {
            assert_eq!(f16_from_f64(value).to_bits(), f16::from_f32(value as f32).to_bits());
        }
        assert!(f16_from_f64(f64::NAN).is_nan() && bf16_from_f64(f64::NAN).is_nan());
        assert_eq!(f64_from_i128(-7), -7.0);
        assert_eq!(f64_from_i128(i128::MIN), -(2f64.powi(127)));
    }
}
