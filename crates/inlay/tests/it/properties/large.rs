//! Makes the same calls with every strategy and every instruction level, and compares the bits. The
//! tensors have sizes around the default thresholds, which are too large for naive implementations.

use inlay::{DType, PutAlongAxis, Reduce, Scatter, Slice, SliceScatter, Tensor, set_num_threads};
use inlay_cpu::arch::{self, Level};
use inlay_cpu::tuning::{GRAIN, STREAM, WAVE};

use crate::support::{Rng, tuning};

/// A call and its name.
type Named<'a> = (String, Box<dyn Fn() -> Tensor + 'a>);

fn bytes(tensor: &Tensor) -> Vec<u8> {
    let copy = tensor.copy().unwrap();
    let len = copy.numel() * copy.dtype().size();
    // SAFETY: `copy` is contiguous and on the CPU, so `len` initialized bytes start at `data_ptr`.
    // It is the only handle to them.
    unsafe { std::slice::from_raw_parts(copy.data_ptr(), len) }.to_vec()
}

/// A tensor of small integers, which every dtype can represent.
fn numbers(rng: &mut Rng, dtype: DType, shape: &[usize]) -> Tensor {
    let values: Vec<i64> = (0..shape.iter().product()).map(|_| rng.between(0, 9)).collect();
    Tensor::from_slice(&values, shape).unwrap().cast(dtype).unwrap()
}

fn index(rng: &mut Rng, shape: &[usize], size: usize) -> Tensor {
    let size = size as i64;
    let values: Vec<i64> =
        (0..shape.iter().product()).map(|_| rng.between(-size, size - 1)).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

/// Calls of operations whose kernels have several strategies or levels, on `rows` rows of `width`
/// elements.
fn calls(rng: &mut Rng, dtype: DType, rows: usize, width: usize) -> Vec<Named<'static>> {
    let shape = [rows, width];
    let x = numbers(rng, dtype, &shape);
    let mask: Vec<bool> = (0..rows * width).map(|k| k / 700 % 3 == 0 || rng.chance(5)).collect();
    let mask = Tensor::from_slice(&mask, &shape).unwrap();
    let every_other = Slice { start: Some(1), stop: None, step: 2 };
    let comb = SliceScatter::new(1, every_other);
    let part = x.slice(&comb).unwrap().copy().unwrap();
    let places = (rows / 10).max(1);
    let into = numbers(rng, dtype, &[places, width]);
    let at = index(rng, &[rows], places);
    let along = index(rng, &shape, width);
    let mut calls: Vec<Named<'static>> = vec![];
    let mut add = |name: &str, call: Box<dyn Fn() -> Tensor>| {
        calls.push((format!("{name} of {dtype} {shape:?}"), call));
    };
    let this = x.clone();
    add("copy", Box::new(move || this.copy().unwrap()));
    let turned = x.transpose(&[1, 0]).unwrap();
    add("transpose", Box::new(move || turned.copy().unwrap()));
    let (this, source) = (x.clone(), part.clone());
    add("slice_scatter", Box::new(move || this.slice_scatter(&source, &comb).unwrap()));
    let (this, of) = (x.clone(), mask.clone());
    add("masked_select", Box::new(move || this.masked_select(&of).unwrap()));
    let (this, of) = (x.clone(), mask.clone());
    let source = numbers(rng, dtype, &[x.masked_select(&mask).unwrap().numel()]);
    add("masked_scatter", Box::new(move || this.masked_scatter(&of, &source).unwrap()));
    let (this, of) = (x.clone(), mask.clone());
    add("masked_fill", Box::new(move || this.masked_fill(&of, 7).unwrap()));
    let (this, by) = (x.clone(), along.clone());
    add("take_along_axis", Box::new(move || this.take_along_axis(&by, 1, false).unwrap()));
    let (this, by, values) = (x.clone(), along, x.clone());
    let how = PutAlongAxis::reduce(1, Reduce::Sum).broadcast(false);
    add("put_along_axis", Box::new(move || this.put_along_axis(&by, &values, how).unwrap()));
    let (from, by) = (into.clone(), at.clone());
    add("index_select", Box::new(move || from.index_select(&by, 0).unwrap()));
    for axis in [0, 1] {
        let this = x.clone();
        add(&format!("sum {axis}"), Box::new(move || this.sum(axis, false).unwrap()));
        let this = x.clone();
        add(&format!("mean {axis}"), Box::new(move || this.mean(axis, false).unwrap()));
    }
    let reductions = [None, Some(Reduce::Sum), Some(Reduce::Mean), Some(Reduce::Amax)];
    for reduce in reductions {
        for include in [true, false] {
            let how = reduce
                .map_or_else(Scatter::overwrite, |r| Scatter::reduce(r).include_self(include));
            let (this, by, updates) = (into.clone(), at.clone(), x.clone());
            let call = move || this.scatter(&by, &updates, how).unwrap();
            add(&format!("scatter {reduce:?} {include}"), Box::new(call));
        }
    }
    calls
}

#[test]
fn every_level_of_instructions_gives_the_same_bits() {
    let mut rng = Rng(53);
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::I64, DType::U8] {
        for width in [1, 8, 48, 64, 100] {
            for (name, call) in calls(&mut rng, dtype, 4100 / width, width) {
                let of_level = |level: Level| {
                    let _forced = arch::force(level);
                    bytes(&call())
                };
                let expected = of_level(Level::Portable);
                for level in Level::all() {
                    assert!(of_level(level) == expected, "{name} at {level:?}");
                }
            }
        }
    }
}

#[test]
fn thresholds_of_users_give_the_bits_of_low_ones() {
    let mut rng = Rng(59);
    let [grain, stream, wave] = {
        let _released = tuning::released();
        [GRAIN.get(), STREAM.get(), WAVE.get()]
    };
    set_num_threads(2);
    let check = |calls: Vec<Named<'_>>| {
        for (name, call) in calls {
            let low = {
                let _low = tuning::low();
                bytes(&call())
            };
            let _released = tuning::released();
            assert!(bytes(&call()) == low, "{name}");
        }
    };
    // Enough work for several threads.
    check(calls(&mut rng, DType::F32, 3 * grain / 4 / 8, 8));
    // Results that are written with non-temporal stores.
    let mut large = calls(&mut rng, DType::F32, stream / 4 / 1000 + 1, 1000);
    large.truncate(6);
    check(large);
    // Updates that are larger than what is partitioned at a time, in rows of medium length.
    set_num_threads(5);
    let (rows, width) = (wave / 4 / 64 + 1, 64);
    let x = numbers(&mut rng, DType::F32, &[rows / 10, width]);
    let updates = Tensor::full(&[rows, width], 3, DType::F32).unwrap();
    let at = index(&mut rng, &[rows], rows / 10);
    let sum = Scatter::reduce(Reduce::Sum);
    let call = move || x.scatter(&at, &updates, sum).unwrap();
    check(vec![("a large scatter".into(), Box::new(call))]);
}

/// The index is skewed, so that buckets of places are split: single places have many entries. Sums
/// of floats depend on the order of the entries.
#[test]
fn skewed_scatters_have_the_same_bits_with_any_number_of_threads() {
    let (_low, mut rng) = (tuning::low(), Rng(61));
    for (entries, places, width) in [(60_000, 50_000, 1), (60_000, 9_000, 8), (20_000, 9_000, 256)]
    {
        let hot = |rng: &mut Rng| match rng.between(0, 3) {
            0 => 4_321,
            1 => rng.between(4_300, 4_400),
            2 => rng.between(0, 40),
            _ => rng.between(0, places as i64 - 1),
        };
        let at: Vec<i64> = (0..entries).map(|_| hot(&mut rng)).collect();
        let at = Tensor::from_slice(&at, &[entries][..]).unwrap();
        let mut floats = |rows: usize| {
            let values: Vec<f32> =
                (0..rows * width).map(|_| rng.between(-999, 999) as f32 / 7.0).collect();
            Tensor::from_slice(&values, &[rows, width][..]).unwrap()
        };
        let (x, updates) = (floats(places), floats(entries));
        for reduce in [None, Some(Reduce::Sum), Some(Reduce::Mean)] {
            let how = reduce.map_or_else(Scatter::overwrite, Scatter::reduce);
            set_num_threads(1);
            let expected = bytes(&x.scatter(&at, &updates, how).unwrap());
            for threads in [2, 3, 7, 16, 64] {
                set_num_threads(threads);
                let found = bytes(&x.scatter(&at, &updates, how).unwrap());
                assert!(found == expected, "{reduce:?} of {width} with {threads} threads");
            }
        }
    }
}
