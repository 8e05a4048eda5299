//! Compares every path of the mask kernels with a plain loop.

use inlay_core::{DType, Layout};

use super::blend::blend_with;
use super::compress::compress_with;
use super::expand::expand_with;
use super::*;
use crate::Buffer;
use crate::arch::Level;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

/// Returns a buffer of random bytes.
fn random_bytes(random: &mut Random, len: usize) -> Buffer {
    let buffer = Buffer::new(len).expect("small");
    for k in 0..len {
        // SAFETY: `k` lies inside of the buffer, which has no other handle yet.
        unsafe { buffer.as_ptr().add(k).write(random.below(256) as u8) };
    }
    buffer
}

fn bytes(buffer: &Buffer, start: usize, len: usize) -> Vec<u8> {
    assert!(start + len <= buffer.len());
    // SAFETY: the range lies inside of the buffer, and nobody writes to it now.
    unsafe { std::slice::from_raw_parts(buffer.as_ptr().add(start), len) }.to_vec()
}

fn strided(len: usize, stride: usize, offset: usize) -> Layout {
    Layout::over(&[len], &[stride as isize], offset)
}

/// Returns random bools with stretches that are all false, all true, sparse or mixed.
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

/// Strided masks give the same bits as contiguous ones.
#[test]
fn bits_of_bools_with_gaps_are_the_same_bits() {
    let mut random = Random(11);
    for (rows, columns) in [(1, 1), (3, 50), (64, 64), (64, 65), (70, 130), (9, 1000)] {
        let bools = random_bytes(&mut random, 2 * rows * columns);
        for k in 0..bools.len() {
            // SAFETY: `k` lies inside of the buffer, which has no other handle yet.
            unsafe { bools.as_ptr().add(k).write((random.below(3) * 0x40) as u8) };
        }
        let whole = Layout::contiguous("test", &[rows, 2 * columns], 1).expect("small");
        let half = inlay_core::ResolvedSlice { start: 1, step: 2, len: columns };
        let gaps = whole.slice(1, half);
        for layout in [gaps.transpose(&[1, 0]), whole.transpose(&[1, 0]), gaps, whole] {
            let lock = bools.read();
            let bits = Bits::read(lock.src(&layout, DType::Bool).expect("inside")).expect("small");
            let all = bytes(&bools, 0, bools.len());
            let (shape, strides) = (layout.shape(), layout.strides());
            for k in 0..layout.numel() {
                let (i, j) = ((k / shape[1]) as isize, (k % shape[1]) as isize);
                let at = layout.offset() as isize + i * strides[0] + j * strides[1];
                let bit = bits.words[k / WORD] >> (k % WORD) & 1 == 1;
                assert_eq!(bit, all[at as usize] != 0, "{layout:?} {k}");
            }
        }
    }
}

#[test]
fn every_choice_is_the_plain_loop() {
    let mut random = Random(7);
    for dtype in [DType::U8, DType::F16, DType::F32, DType::I64, DType::C128] {
        let size = dtype.size();
        for len in [1, 7, 15, 63, 64, 65, 127, 129, 1000] {
            // The strides in bytes of the result, the condition, and both operands.
            for steps in [[size, 1, 0, size], [size, 1, size, size], [size, 2, 3, 2 * size]] {
                let [to_step, if_step, a_step, b_step] = steps;
                let mask = random_mask(&mut random, len * if_step);
                let condition = Buffer::new(len * if_step).expect("small");
                for (k, &value) in mask.iter().enumerate() {
                    // SAFETY: `k` lies inside of the buffer, which has no other handle yet.
                    unsafe { condition.as_ptr().add(k).write(u8::from(value) * 0x40) };
                }
                let a = random_bytes(&mut random, len * a_step + size + 1);
                let b = random_bytes(&mut random, len * b_step + size + 1);
                for (level, fresh) in Level::all().flat_map(|s| [(s, true), (s, false)]) {
                    let to = random_bytes(&mut random, len * to_step + 9);
                    let mut expected = bytes(&to, 0, to.len());
                    for k in 0..len {
                        let at = 1 + k * to_step;
                        if mask[k * if_step] {
                            let word = bytes(&a, 1 + k * a_step, size);
                            expected[at..at + size].copy_from_slice(&word);
                        } else if fresh {
                            let word = bytes(&b, k * b_step, size);
                            expected[at..at + size].copy_from_slice(&word);
                        }
                    }
                    {
                        let (condition, a, b) = (condition.read(), a.read(), b.read());
                        let mut write = to.write();
                        let layouts = [(to_step, 1), (if_step, 0), (a_step, 1), (b_step, 0)];
                        let [to, chosen, one, other] =
                            layouts.map(|(step, offset)| strided(len, step, offset));
                        let other = b.src(&other, dtype).expect("inside");
                        blend_with(
                            level,
                            write.dst(&to, dtype).expect("inside"),
                            condition.src(&chosen, DType::Bool).expect("inside"),
                            a.src(&one, dtype).expect("inside"),
                            fresh.then_some(other),
                        );
                    }
                    assert_eq!(
                        bytes(&to, 0, to.len()),
                        expected,
                        "{level:?} {dtype} {len} {steps:?}"
                    );
                }
            }
        }
    }
}

fn check(random: &mut Random, dtype: DType, len: usize, gaps: [usize; 2], offsets: [usize; 2]) {
    let size = dtype.size();
    let mask = random_mask(random, len);
    let mask_buffer = Buffer::new(len).expect("small");
    let mask_layout = Layout::contiguous("test", &[len], 1).expect("small");
    for (k, &value) in mask.iter().enumerate() {
        // SAFETY: `k` lies inside of the buffer, which has no other handle yet.
        unsafe { mask_buffer.as_ptr().add(k).write(u8::from(value) * (1 + k as u8 % 255)) };
    }
    let lock = mask_buffer.read();
    let bits = Bits::read(lock.src(&mask_layout, DType::Bool).expect("inside")).expect("small");
    let ones = mask.iter().filter(|&&value| value).count();
    assert_eq!(bits.ones(), ones);

    let base_layout = strided(len, size + gaps[0], offsets[0]);
    let to_layout = strided(len, size + gaps[1], offsets[1]);
    let base = random_bytes(random, len * (size + gaps[0]) + offsets[0]);
    // The source has exactly as many elements as are needed, so a kernel that reads more leaves the
    // buffer.
    let source = random_bytes(random, ones * size + offsets[0]);
    let source_layout = strided(ones, size, offsets[0]);
    let element = |buffer: &Buffer, layout: &Layout, k: usize| {
        bytes(buffer, layout.offset() + k * layout.strides()[0] as usize, size)
    };
    for level in Level::all() {
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
                let (base, source, mut to) = (base.read(), source.read(), to.write());
                let base = base.src(&base_layout, dtype).expect("inside");
                let source = source.src(&source_layout, dtype).expect("inside");
                let to = to.dst(&to_layout, dtype).expect("inside");
                expand_with(level, stream, to, fresh.then_some(base), &bits, source);
            }
            assert_eq!(
                bytes(&to, 0, to.len()),
                expected,
                "{level:?} {dtype} {len} {gaps:?} {offsets:?}"
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
            let (base, mut to) = (base.read(), to.write());
            let layout = strided(ones, size, offsets[1]);
            let to = to.dst(&layout, dtype).expect("inside");
            compress_with(level, to, base.src(&base_layout, dtype).expect("inside"), &bits);
        }
        assert_eq!(
            bytes(&to, 0, to.len()),
            expected,
            "{level:?} {dtype} {len} {gaps:?} {offsets:?}"
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
