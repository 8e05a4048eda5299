//! One case per threshold: a call for which the threshold decides between two strategies.

use inlay::{DType, PutAlongAxis, Reduce, Scatter, Slice, SliceScatter, Tensor};
use inlay_cpu::arch::Level;
use inlay_cpu::tuning;

use super::measure::Case;

/// Returns pseudo-random numbers from a linear congruential generator.
fn random(count: usize, below: usize) -> Vec<i64> {
    let mut state = 7u64;
    let next = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below as u64) as i64
    };
    (0..count).map(next).collect()
}

fn index(shape: &[usize], below: usize) -> Tensor {
    let numel = shape.iter().product();
    Tensor::from_slice(&random(numel, below), shape).expect("a shape of its numbers")
}

fn ones(shape: &[usize], dtype: DType) -> Tensor {
    Tensor::ones(shape, dtype).expect("a tensor that fits in memory")
}

/// A random mask of `count` elements, of which `of_64` in 64 are true on average.
fn mask(count: usize, of_64: usize) -> Tensor {
    let bits: Vec<bool> = random(count, 64).into_iter().map(|k| (k as usize) < of_64).collect();
    Tensor::from_slice(&bits, &[count]).expect("a shape of its numbers")
}

fn boxed<T>(call: impl Fn() -> inlay::Result<T> + 'static) -> Box<dyn Fn()> {
    Box::new(move || drop(std::hint::black_box(call().expect("a valid call"))))
}

/// A sum of `entries` rows of `width` elements into `places` places. `own` includes the old values.
fn scatter(width: usize, places: usize, entries: usize, dtype: DType, own: bool) -> Box<dyn Fn()> {
    let (x, updates) = (ones(&[places, width], dtype), ones(&[entries, width], dtype));
    let index = index(&[entries], places);
    let how = Scatter::reduce(Reduce::Sum).include_self(own);
    boxed(move || x.scatter(&index, &updates, how))
}

/// A call that overwrites a slice of an axis.
fn slice_scatter(shape: [usize; 2], axis: i64, slice: Slice) -> Box<dyn Fn()> {
    let at = SliceScatter::new(axis, slice);
    let x = ones(&shape, DType::F32);
    let part = x.slice(&at).and_then(|part| part.copy()).expect("a slice of its tensor");
    boxed(move || x.slice_scatter(&part, &at))
}

fn part(start: usize, stop: usize, step: i64) -> Slice {
    Slice { start: Some(start as i64), stop: Some(stop as i64), step }
}

/// Returns all cases. Each threshold has one.
pub(crate) fn all() -> Vec<Case> {
    vec![
        Case {
            threshold: &tuning::GRAIN,
            what: "bytes that a copy reads and writes",
            strategies: ["one thread", "several threads"],
            sizes: 128 << 10..=16 << 20,
            short: 256 << 10,
            level: None,
            call: |bytes| {
                let x = ones(&[bytes / 8], DType::F32);
                boxed(move || x.copy())
            },
        },
        Case {
            threshold: &tuning::STREAM,
            what: "bytes that are copied",
            strategies: ["ordinary stores", "non-temporal stores"],
            sizes: 2 << 20..=128 << 20,
            short: 2 << 20,
            level: None,
            call: |bytes| {
                let x = ones(&[bytes / 4], DType::F32);
                boxed(move || x.copy())
            },
        },
        Case {
            threshold: &tuning::SCANNED,
            what: "threads, sums of 4M values into 100k",
            strategies: ["each reads the index", "partitioned"],
            sizes: 2..=64,
            short: 2,
            level: None,
            call: |threads| {
                inlay::set_num_threads(threads);
                scatter(1, 100_000, 4_000_000, DType::F32, true)
            },
        },
        Case {
            threshold: &tuning::WAVE,
            what: "bytes that 8 threads partition at a time, sums of 4M values into 100k",
            strategies: ["at one time", "in waves"],
            sizes: 1 << 20..=64 << 20,
            short: 1 << 20,
            level: None,
            call: |bytes| {
                inlay::set_num_threads(8);
                scatter(1, 100_000, bytes / 16, DType::F32, true)
            },
        },
        Case {
            threshold: &tuning::NOTED,
            what: "places per entry, sums of rows of 16 bytes into 1M places without old values",
            strategies: ["with state per place", "by place"],
            sizes: 4..=512,
            short: 4,
            level: None,
            call: |places| scatter(4, 1 << 20, (1 << 20) / places, DType::F32, false),
        },
        Case {
            threshold: &tuning::DENSE,
            what: "places per entry, sums of rows of 16 half floats into 256K places",
            strategies: ["counted", "sorted"],
            sizes: 1..=128,
            short: 2,
            level: None,
            call: |places| scatter(16, 256 << 10, (256 << 10) / places, DType::F16, true),
        },
        Case {
            threshold: &tuning::SHORT_ROW,
            what: "bytes of a row, index_select from 64 MiB",
            strategies: ["prefetched", "not prefetched"],
            sizes: 256..=64 << 10,
            short: 256,
            level: None,
            call: |bytes| {
                let rows = (64 << 20) / bytes;
                let (x, index) = (ones(&[rows, bytes / 4], DType::F32), index(&[rows / 4], rows));
                boxed(move || x.index_select(&index, 0))
            },
        },
        Case {
            threshold: &tuning::FEW,
            what: "elements of masked_fill",
            strategies: ["without a walk", "with a walk"],
            sizes: 64..=64 << 10,
            short: 256,
            level: None,
            call: |count| {
                let (x, mask) = (ones(&[count], DType::F32), mask(count, 32));
                boxed(move || x.masked_fill(&mask, 0))
            },
        },
        Case {
            threshold: &tuning::EXPAND_SPARSE,
            what: "true elements in 64, masked_scatter of 1M floats, portable",
            strategies: ["one by one", "each chosen"],
            sizes: 1..=32,
            short: 2,
            level: Some(Level::Portable),
            call: |of_64| {
                let (x, mask) = (ones(&[1 << 20], DType::F32), mask(1 << 20, of_64));
                let source = ones(&[1 << 20], DType::F32);
                boxed(move || x.masked_scatter(&mask, &source))
            },
        },
        Case {
            threshold: &tuning::COMPRESS_SPARSE,
            what: "true elements in 64, masked_select of 1M floats, portable",
            strategies: ["one by one", "each moved"],
            sizes: 1..=32,
            short: 2,
            level: Some(Level::Portable),
            call: |of_64| {
                let (x, mask) = (ones(&[1 << 20], DType::F32), mask(1 << 20, of_64));
                boxed(move || x.masked_select(&mask))
            },
        },
        Case {
            threshold: &tuning::COPIED,
            what: "places per entry, put_along_axis on 2048 x 2048 floats along the last axis",
            strategies: ["copied lane by lane", "copied before"],
            sizes: 1..=256,
            short: 1,
            level: None,
            call: |places| {
                let (x, values) = (ones(&[2048; 2], DType::F32), 2048 / places);
                let (index, values) =
                    (index(&[2048, values], 2048), ones(&[2048, values], DType::F32));
                let how = PutAlongAxis::assign(1).broadcast(false);
                boxed(move || x.put_along_axis(&index, &values, how))
            },
        },
        Case {
            threshold: &tuning::SHORT_LANE,
            what: "bytes of a lane, take_along_axis on 16 MiB of floats along the last axis",
            strategies: ["prefetched", "not prefetched"],
            sizes: 1 << 10..=256 << 10,
            short: 1 << 10,
            level: None,
            call: |bytes| {
                let shape = [(16 << 20) / bytes, bytes / 4];
                let (x, index) = (ones(&shape, DType::F32), index(&shape, bytes / 4));
                boxed(move || x.take_along_axis(&index, 1, false))
            },
        },
        Case {
            threshold: &tuning::TILE,
            what: "bytes of 32 lanes of floats, sums along the first axis of 1024 lanes",
            strategies: ["in a tile", "in place"],
            sizes: 64 << 10..=4 << 20,
            short: 64 << 10,
            level: None,
            call: |bytes| {
                let shape = [bytes / 128, 1024];
                let (x, index) = (ones(&shape, DType::F32), index(&shape, shape[0]));
                let how = PutAlongAxis::reduce(0, Reduce::Sum).broadcast(false);
                let values = ones(&shape, DType::F32);
                boxed(move || x.put_along_axis(&index, &values, how))
            },
        },
        Case {
            threshold: &tuning::WIDE_TOOTH,
            what: "bytes of a row, every other row of 16 MiB is overwritten",
            strategies: ["interleaved", "separate parts"],
            sizes: 32..=4 << 10,
            short: 32,
            level: None,
            call: |bytes| {
                let rows = (16 << 20) / bytes;
                slice_scatter([rows, bytes / 4], 0, part(0, rows, 2))
            },
        },
        Case {
            threshold: &tuning::SHORT_RUN,
            what: "bytes of half a row, the middle half of each row of 16 MiB is overwritten",
            strategies: ["over a copy", "side by side"],
            sizes: 64..=8 << 10,
            short: 64,
            level: None,
            call: |bytes| {
                let width = bytes / 2;
                slice_scatter([(4 << 20) / width, width], 1, part(width / 4, 3 * width / 4, 1))
            },
        },
        Case {
            threshold: &tuning::SMALL_REGION,
            what: "elements per element of the region, 256 KiB of floats in rows of 4 KiB",
            strategies: ["side by side", "over a copy"],
            sizes: 2..=512,
            short: 4,
            level: None,
            call: |part_of| slice_scatter([64, 1024], 1, part(0, 1024 / part_of, 1)),
        },
        Case {
            threshold: &tuning::COPIED_WHOLE,
            what: "bytes of floats in rows of 4 KiB, 64 bytes of each row are overwritten",
            strategies: ["over a copy", "side by side"],
            sizes: 16 << 10..=8 << 20,
            short: 32 << 10,
            level: None,
            call: |bytes| slice_scatter([bytes >> 12, 1024], 1, part(0, 16, 1)),
        },
    ]
}
