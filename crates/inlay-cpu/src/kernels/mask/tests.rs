//! Every path of the mask kernels against a plain loop.

use inlay_core::{DType, Layout};

use super::compress::compress_with;
use super::expand::expand_with;
use super::*;
use crate::Buffer;
use crate::simd::Simd;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

/// A buffer of random bytes.
fn random_bytes(random: &mut Random, len: usize) -> Buffer {
    let buffer = Buffer::new(len).expect("small");
    for k in 0..len {
        // SAFETY: `k` lies inside of a buffer that nobody else has yet.
        unsafe { buffer.as_ptr().add(k).write(random.below(256) as u8) };
    }
    buffer
}

fn bytes(buffer: &Buffer, start: usize, len: usize) -> Vec<u8> {
    assert!(start + len <= buffer.len());
    // SAFETY: the range lies inside of the buffer, which nobody writes now.
    unsafe { std::slice::from_raw_parts(buffer.as_ptr().add(start), len) }.to_vec()
}

fn strided(len: usize, stride: usize, offset: usize) -> Layout {
    Layout::strided(vec![len].into(), vec![stride as isize].into(), offset)
}

/// Bools that are all false, all true, in stretches, and mixed.
fn random_mask(random: &mut Random, len: usize) -> Vec<bool> {
    let mut mask = vec![];
    while mask.len() < len {
        let one_in = [1, 1, 2, 3, 20, 40, 200, usize::MAX >> 34][random.below(8)];
        let longest = [5, 70, 300][random.below(3)];
        let run = 1 + random.below(longest);
        let sparse = random.below(2) == 0;
        mask.extend((0..run).map(|_| (random.below(one_in) == 0) == sparse));
    }
    mask.truncate(len);
    mask
}

fn check(random: &mut Random, dtype: DType, len: usize, gaps: [usize; 2], offsets: [usize; 2]) {
    let size = dtype.size();
    let mask = random_mask(random, len);
    let mask_buffer = Buffer::new(len).expect("small");
    let mask_layout = Layout::contiguous("test", &[len], 1).expect("small");
    for (k, &value) in mask.iter().enumerate() {
        // SAFETY: `k` lies inside of a buffer that nobody else has yet.
        unsafe { mask_buffer.as_ptr().add(k).write(u8::from(value) * (1 + k as u8 % 255)) };
    }
    let lock = mask_buffer.read();
    let bits = Bits::read(lock.src(&mask_layout, DType::Bool).expect("inside")).expect("small");
    let ones = mask.iter().filter(|&&value| value).count();
    assert_eq!(bits.ones(), ones);

    let base_layout = strided(len, size + gaps[0], offsets[0]);
    let to_layout = strided(len, size + gaps[1], offsets[1]);
    let base = random_bytes(random, len * (size + gaps[0]) + offsets[0]);
    // Just enough: a kernel that reads past the last one that it needs leaves the buffer.
    let source = random_bytes(random, ones * size + offsets[0]);
    let source_layout = strided(ones, size, offsets[0]);
    let element = |buffer: &Buffer, layout: &Layout, k: usize| {
        bytes(buffer, layout.offset() + k * layout.strides()[0] as usize, size)
    };
    for simd in Simd::all() {
        for (stream, fresh) in [(0, true), (usize::MAX, true), (0, false)] {
            let to = random_bytes(random, len * (size + gaps[1]) + offsets[1] + 9);
            let before = bytes(&to, 0, to.len());
            let mut expected = before.clone();
            let mut taken = 0;
            for (k, &chosen) in mask.iter().enumerate() {
                let at = offsets[1] + k * (size + gaps[1]);
                if chosen {
                    expected[at..at + size].copy_from_slice(&element(
                        &source,
                        &source_layout,
                        taken,
                    ));
                    taken += 1;
                } else if fresh {
                    expected[at..at + size].copy_from_slice(&element(&base, &base_layout, k));
                }
            }
            {
                let (base, source, to) = (base.read(), source.read(), to.write());
                let base = base.src(&base_layout, dtype).expect("inside");
                let source = source.src(&source_layout, dtype).expect("inside");
                let to = to.dst(&to_layout, dtype).expect("inside");
                expand_with(simd, stream, to, fresh.then_some(base), &bits, source);
            }
            assert_eq!(
                bytes(&to, 0, to.len()),
                expected,
                "{simd:?} {dtype} {len} {gaps:?} {offsets:?}"
            );
        }
        let to = random_bytes(random, ones * size + offsets[1] + 9);
        let mut expected = bytes(&to, 0, to.len());
        let chosen = (0..len).filter(|&k| mask[k]);
        for (k, from) in chosen.enumerate() {
            let at = offsets[1] + k * size;
            expected[at..at + size].copy_from_slice(&element(&base, &base_layout, from));
        }
        {
            let (base, to) = (base.read(), to.write());
            let layout = strided(ones, size, offsets[1]);
            let to = to.dst(&layout, dtype).expect("inside");
            compress_with(simd, to, base.src(&base_layout, dtype).expect("inside"), &bits);
        }
        assert_eq!(
            bytes(&to, 0, to.len()),
            expected,
            "{simd:?} {dtype} {len} {gaps:?} {offsets:?}"
        );
    }
}

#[test]
fn every_path_is_the_plain_loop() {
    let mut random = Random(3);
    for dtype in [DType::U8, DType::F16, DType::F32, DType::I64, DType::C128] {
        let size = dtype.size();
        for len in [0, 1, 7, 63, 64, 65, 127, 129, 1000, 4095, 4096, 4097, 9001] {
            for (gaps, offsets) in [
                ([0, 0], [0, 0]),
                ([0, 0], [size, 64]),
                ([0, 0], [3, 1]),
                ([size, 0], [0, 0]),
                ([0, 5], [1, 2]),
            ] {
                check(&mut random, dtype, len, gaps, offsets);
            }
        }
    }
}
