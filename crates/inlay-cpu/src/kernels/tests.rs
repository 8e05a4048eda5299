//! Compares copies, folds, overlays, combs and lists with plain loops, with and without
//! non-temporal stores.

use inlay_core::{DType, Fold, Layout, ResolvedSlice};

use super::copy::copy_with;
use super::fold::fold;
use super::mask::{Comb, interleave_with};
use super::overlay::overlay_with;
use crate::Buffer;
use crate::arch::Level;

const DTYPES: [DType; 5] = [DType::U8, DType::F16, DType::F32, DType::I64, DType::C128];

/// Returns a buffer of pseudorandom bytes.
fn bytes(len: usize, seed: usize) -> Buffer {
    let buffer = Buffer::new(len).expect("small");
    for k in 0..len {
        // SAFETY: `k` lies inside of the buffer, which has no other handle yet.
        unsafe { buffer.as_ptr().add(k).write((k * 167 + k / 251 + seed) as u8) };
    }
    buffer
}

fn contents(buffer: &Buffer) -> Vec<u8> {
    // SAFETY: the range is the whole buffer, and nobody writes to it now.
    unsafe { std::slice::from_raw_parts(buffer.as_ptr(), buffer.len()) }.to_vec()
}

/// Returns the byte offsets of the elements in row-major order.
fn offsets(layout: &Layout) -> Vec<usize> {
    let mut all = vec![layout.offset() as isize];
    for (&size, &stride) in layout.shape().iter().zip(layout.strides()) {
        all = all.iter().flat_map(|at| (0..size as isize).map(move |k| at + k * stride)).collect();
    }
    all.into_iter().map(|at| at as usize).collect()
}

/// Copies element by element.
fn copied(to: &mut [u8], to_layout: &Layout, from: &[u8], from_layout: &Layout, size: usize) {
    for (to_at, at) in offsets(to_layout).into_iter().zip(offsets(from_layout)) {
        to[to_at..to_at + size].copy_from_slice(&from[at..at + size]);
    }
}

fn slice(start: usize, step: isize, len: usize) -> ResolvedSlice {
    ResolvedSlice { start, step, len }
}

#[test]
fn copies_are_plain_loops() {
    for dtype in DTYPES {
        let size = dtype.size();
        let whole = Layout::contiguous("test", &[5, 70, 33], size).expect("small");
        let long = Layout::contiguous("test", &[3, 1, 2000], size).expect("small");
        for from in [
            whole.clone(),
            whole.transpose(&[2, 1, 0]),
            whole.transpose(&[0, 2, 1]),
            whole.transpose(&[1, 2, 0]),
            whole.slice(1, slice(69, -1, 70)).transpose(&[2, 0, 1]),
            whole.slice(2, slice(1, 1, 31)),
            whole.slice(2, slice(32, -2, 16)),
            long.slice(2, slice(3, 1, 1900)),
        ] {
            let to = Layout::contiguous("test", from.shape(), size).expect("small");
            // A contiguous destination, and one whose first axis is reversed.
            let reversed = to.slice(0, slice(to.shape()[0] - 1, -1, to.shape()[0]));
            for to in [to, reversed] {
                for stream in [0, usize::MAX] {
                    let source = bytes(3 * 2000 * 2 * size, 1);
                    let target = bytes(to.numel() * size, 7);
                    let mut expected = contents(&target);
                    copied(&mut expected, &to, &contents(&source), &from, size);
                    let (read, mut write) = (source.read(), target.write());
                    let dst = write.dst(&to, dtype).expect("inside").into_target();
                    copy_with(stream, dst, read.src(&from, dtype).expect("inside"));
                    drop(write);
                    assert!(contents(&target) == expected, "{dtype} {from:?} {to:?} {stream}");
                }
            }
        }
    }
}

/// Folds numbers by the tree that the kernel uses: blocks of 1,024 numbers with 8 or 32 lanes each;
/// then lanes, and then blocks, are joined pairwise. `nothing` is the neutral element.
fn folded(numbers: &[f64], nothing: f64, join: fn(f64, f64) -> f64) -> f64 {
    let tree = |mut values: Vec<f64>| {
        while values.len() > 1 {
            values = values
                .chunks(2)
                .map(|pair| pair.iter().copied().reduce(join))
                .map(Option::unwrap_or_default)
                .collect();
        }
        values[0]
    };
    let block = |numbers: &[f64]| {
        let mut lanes = vec![nothing; if numbers.len() <= 8 { 8 } else { 32 }];
        let count = lanes.len();
        for (k, &number) in numbers.iter().enumerate() {
            lanes[k % count] = join(lanes[k % count], number);
        }
        tree(lanes)
    };
    tree(numbers.chunks(1024).map(block).collect())
}

#[test]
fn folds_are_trees_however_they_lie() {
    type Join = fn(f64, f64) -> f64;
    let folds: [(Fold, f64, Join); 4] = [
        (Fold::Sum, -0.0, |a, b| a + b),
        (Fold::Prod, 1.0, |a, b| a * b),
        (Fold::Amax, f64::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a }),
        (Fold::Amin, f64::INFINITY, |a, b| if b < a || b.is_nan() { b } else { a }),
    ];
    let lens = [1, 2, 3, 5, 7, 8, 9, 16, 31, 32, 33, 64, 100, 1000, 1023, 1024, 1025, 1057, 3000];
    for len in lens {
        let rows = 5;
        let source = Buffer::new(rows * len * 8).expect("small");
        let mut numbers: Vec<f64> =
            (0..rows * len).map(|k| ((k * 7919 + 13) % 1009) as f64 / 1009.0 - 0.3).collect();
        // A row of negative zeros, a row with a NaN, and a row with an infinity.
        numbers[..len].fill(-0.0);
        numbers[2 * len - 1] = f64::NAN;
        numbers[2 * len] = f64::INFINITY;
        // SAFETY: the buffer has room for `rows * len` numbers, and has no other handle yet.
        unsafe {
            source.as_ptr().cast::<f64>().copy_from_nonoverlapping(numbers.as_ptr(), rows * len);
        }
        let lines = Layout::contiguous("test", &[rows, len], 8).expect("small");
        let columns = Layout::contiguous("test", &[len, rows], 8).expect("small");
        let gaps = lines.slice(1, slice(0, 2, len.div_ceil(2)));
        let apart = columns.slice(1, slice(1, 2, 2));
        for (layout, axis) in [(lines, 1), (columns, 0), (gaps, 1), (apart, 0)] {
            let rows = layout.shape()[1 - axis];
            let at = offsets(&layout.transpose(&[1 - axis, axis]));
            let count = layout.shape()[axis];
            let to = Layout::contiguous("test", &[rows], 8).expect("small");
            for (how, nothing, join) in folds {
                let target = bytes(rows * 8, 3);
                let (read, mut write) = (source.read(), target.write());
                let dst = write.dst(&to, DType::F64).expect("inside");
                let src = read.src(&layout, DType::F64).expect("inside");
                fold(how, dst, src, &[axis == 0, axis == 1]).expect("small");
                drop(write);
                for (row, got) in contents(&target).as_chunks::<8>().0.iter().enumerate() {
                    let own = &at[row * count..(row + 1) * count];
                    let own: Vec<f64> = own.iter().map(|at| numbers[at / 8]).collect();
                    let (got, expected) = (f64::from_ne_bytes(*got), folded(&own, nothing, join));
                    let same = got.to_bits() == expected.to_bits();
                    assert!(
                        same || got.is_nan() && expected.is_nan(),
                        "{how:?} {len} {axis} {row}"
                    );
                }
            }
        }
    }
}

#[test]
fn overlays_are_copies_in_turn() {
    for dtype in DTYPES {
        let size = dtype.size();
        let whole = Layout::contiguous("test", &[6, 90, 400], size).expect("small");
        let diagonal = whole.diagonal(2, 1, 2);
        let rows = [whole.slice(1, slice(0, 2, 45)), whole.slice(1, slice(1, 2, 45))];
        let back = whole.slice(2, slice(390, -3, 100));
        for parts in [
            vec![whole.clone(), diagonal],
            rows.to_vec(),
            vec![whole.clone(), back],
            vec![whole.slice(1, slice(0, 1, 13)), whole.slice(1, slice(13, 1, 77))],
            vec![whole.transpose(&[2, 1, 0]), whole.slice(0, slice(0, 1, 0))],
        ] {
            for stream in [0, usize::MAX] {
                let target = bytes(whole.numel() * size, 3);
                let mut expected = contents(&target);
                let sources: Vec<(Buffer, Layout)> = parts
                    .iter()
                    .enumerate()
                    .map(|(k, part)| {
                        let layout = Layout::contiguous("test", part.shape(), size).expect("small");
                        (bytes(layout.numel() * size, 11 * k), layout)
                    })
                    .collect();
                for (part, (source, layout)) in parts.iter().zip(&sources) {
                    copied(&mut expected, part, &contents(source), layout, size);
                }
                let mut write = target.write();
                let reads: Vec<_> = sources.iter().map(|(source, _)| source.read()).collect();
                let views: Vec<_> = parts
                    .iter()
                    .zip(reads.iter().zip(&sources))
                    .map(|(part, (read, (_, layout)))| {
                        (part, read.src(layout, dtype).expect("inside"))
                    })
                    .collect();
                overlay_with(stream, write.dst(&whole, dtype).expect("inside"), &views);
                drop(write);
                assert!(contents(&target) == expected, "{dtype} {parts:?} {stream}");
            }
        }
    }
}

#[test]
fn combs_are_slices_with_a_step() {
    for dtype in DTYPES {
        let size = dtype.size();
        for (shape, axis, part) in [
            ([40, 128, 1], 1, slice(0, 2, 64)),
            ([40, 128, 1], 1, slice(1, 2, 64)),
            ([40, 129, 1], 1, slice(3, 5, 20)),
            ([3, 9000, 1], 1, slice(7, 2, 4000)),
            ([3, 50, 130], 1, slice(1, 3, 16)),
            ([500, 7, 3], 0, slice(2, 4, 100)),
        ] {
            let whole = Layout::contiguous("test", &shape, size).expect("small");
            let region = whole.slice(axis, part);
            let packed = Layout::contiguous("test", region.shape(), size).expect("small");
            let width = shape[axis + 1..].iter().product::<usize>();
            let comb = Comb {
                row: shape[axis] * width,
                start: part.start * width,
                step: part.step as usize * width,
                width,
                teeth: part.len,
            };
            let base = bytes(whole.numel() * size, 1);
            let source = bytes(packed.numel() * size, 9);
            let mut expected = contents(&base);
            copied(&mut expected, &region, &contents(&source), &packed, size);
            for level in Level::all() {
                for stream in [0, usize::MAX] {
                    let target = bytes(whole.numel() * size, 5);
                    let (base, source) = (base.read(), source.read());
                    let mut write = target.write();
                    let dst = write.dst(&whole, dtype).expect("inside");
                    let base = base.src(&whole, dtype).expect("inside");
                    let source = source.src(&packed, dtype).expect("inside");
                    interleave_with(level, stream, dst, base, source, comb);
                    drop(write);
                    assert!(contents(&target) == expected, "{level:?} {dtype} {comb:?} {stream}");
                }
            }
        }
    }
}
