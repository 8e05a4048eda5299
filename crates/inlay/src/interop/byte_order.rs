//! The byte order of files: little-endian on every machine.

use std::borrow::Cow;

use inlay_core::{DType, Kind};

/// Converts the bytes of elements from the byte order of the machine to little-endian, or back.
pub(super) fn little_endian(bytes: &[u8], dtype: DType) -> Cow<'_, [u8]> {
    match cfg!(target_endian = "little") {
        true => Cow::Borrowed(bytes),
        false => Cow::Owned(swapped(bytes, dtype)),
    }
}

/// Reverses the bytes of every number. A complex element is two numbers.
fn swapped(bytes: &[u8], dtype: DType) -> Vec<u8> {
    let parts = if dtype.kind() == Kind::Complex { 2 } else { 1 };
    bytes.chunks(dtype.size() / parts).flat_map(|number| number.iter().rev()).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reversed_one_by_one() {
        let bytes: Vec<u8> = (0..16).collect();
        assert_eq!(swapped(&bytes[..3], DType::Bool), [0, 1, 2]);
        assert_eq!(swapped(&bytes[..4], DType::BF16), [1, 0, 3, 2]);
        assert_eq!(swapped(&bytes[..8], DType::C64), [3, 2, 1, 0, 7, 6, 5, 4]);
        assert_eq!(swapped(&bytes[..8], DType::F64), [7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(little_endian(&1.5f32.to_ne_bytes(), DType::F32), &1.5f32.to_le_bytes()[..]);
    }
}
