//! Makes the same calls with many numbers of threads and compares the bits with those of one thread,
//! which are compared with naive implementations elsewhere. The entries are distributed in ways that
//! lead to every plan for the threads.

use inlay::{DType, PutAlongAxis, Reduce, Scatter, Tensor, set_num_threads};
use inlay_cpu::tuning::{GRAIN, SCANNED, WAVE};

use crate::support::{Rng, tuning};

const THREADS: [usize; 6] = [1, 2, 3, 7, 16, 64];

pub(super) fn bytes(tensor: &Tensor) -> Vec<u8> {
    let copy = tensor.copy().unwrap();
    let len = copy.numel() * copy.dtype().size();
    // SAFETY: `copy` is contiguous and on the CPU, so `len` initialized bytes start at `data_ptr`.
    // It is the only handle to them.
    unsafe { std::slice::from_raw_parts(copy.data_ptr(), len) }.to_vec()
}

/// Values whose sums depend on the order in which they are added.
pub(super) fn values(rng: &mut Rng, dtype: DType, shape: &[usize]) -> Tensor {
    let count = shape.iter().product();
    let float =
        |rng: &mut Rng| rng.between(-1000, 1000) as f64 * 1.1f64.powi(rng.between(0, 60) as i32);
    let values: Vec<f64> = (0..count).map(|_| float(rng)).collect();
    let values = Tensor::from_slice(&values, shape).unwrap();
    if dtype.is_differentiable() {
        return values.cast(dtype).unwrap();
    }
    let values: Vec<i64> = (0..count).map(|_| rng.between(0, 100)).collect();
    Tensor::from_slice(&values, shape).unwrap().cast(dtype).unwrap()
}

/// Indices of several kinds: their names and values.
fn indices(rng: &mut Rng, entries: usize, places: usize) -> Vec<(&'static str, Vec<i64>)> {
    let last = places as i64 - 1;
    let uniform: Vec<i64> = (0..entries).map(|_| rng.between(0, last)).collect();
    let mut sorted = uniform.clone();
    sorted.sort_unstable();
    let mut nearly = sorted.clone();
    // A sample finds the index sorted, but it is not.
    if entries > 3000 {
        nearly.swap(1, entries - 2);
    }
    let skewed = (0..entries).map(|_| {
        let bound = rng.between(0, last);
        rng.between(0, bound) * rng.between(0, 1)
    });
    let skewed = skewed.collect();
    // Chunks have other shares of the places than the whole index.
    let blocks = (0..entries as i64).map(|k| (k / 1500 * 7919 + k % 3) % places as i64).collect();
    let from_end = uniform.iter().map(|&at| if at % 2 == 0 { at } else { at - places as i64 });
    let from_end = from_end.collect();
    vec![
        ("uniform", uniform),
        ("sorted", sorted),
        ("nearly sorted", nearly),
        ("skewed", skewed),
        ("in blocks", blocks),
        ("from the end", from_end),
        ("one place", vec![last / 2; entries]),
    ]
}

fn reductions() -> Vec<Scatter> {
    let mut all = vec![Scatter::overwrite()];
    for reduce in [Reduce::Sum, Reduce::Mul, Reduce::Mean, Reduce::Amax, Reduce::Amin] {
        all.push(Scatter::reduce(reduce).include_self(true));
        all.push(Scatter::reduce(reduce).include_self(false));
    }
    all
}

/// A call and its name.
type Named<'a> = (String, Box<dyn Fn() -> Tensor + 'a>);

/// Compares calls with all numbers of threads, and with each way in which few threads may share the
/// entries. The threads are started once for each number.
fn check(calls: &[Named<'_>]) {
    set_num_threads(1);
    let expected: Vec<Vec<u8>> = calls.iter().map(|(_, call)| bytes(&call())).collect();
    for threads in THREADS {
        set_num_threads(threads);
        for scanned in [1, 64] {
            let _changed = SCANNED.set(scanned);
            for ((name, call), expected) in calls.iter().zip(&expected) {
                assert!(bytes(&call()) == *expected, "{name} on {threads} threads, {scanned}");
            }
        }
    }
}

#[test]
fn scatters_give_the_same_bits_on_any_number_of_threads() {
    let _released = tuning::released();
    let (_grain, _wave) = (GRAIN.set(1 << 10), WAVE.set(1 << 10));
    let mut rng = Rng(71);
    let rows = [
        (DType::F32, 1),
        (DType::F32, 8),
        (DType::F32, 64),
        (DType::F32, 200),
        (DType::F16, 3),
        (DType::U8, 1),
        (DType::F64, 1),
        (DType::C128, 1),
        (DType::I32, 8),
    ];
    for (entries, places) in [(9000, 700), (9000, 3), (2500, 40_000), (70_000, 4096)] {
        let mut calls: Vec<Named<'_>> = vec![];
        let kinds = indices(&mut rng, entries, places);
        for (dtype, width) in rows {
            // Large cases are few.
            if entries * width > 600_000 || places * width > 400_000 {
                continue;
            }
            let shape = |rows: usize| if width == 1 { vec![rows] } else { vec![rows, width] };
            let x = values(&mut rng, dtype, &shape(places));
            let updates = values(&mut rng, dtype, &shape(entries));
            for ((kind, index), how) in
                kinds.iter().flat_map(|k| reductions().into_iter().map(move |h| (k, h)))
            {
                let index = Tensor::from_slice(index, &[entries]).unwrap();
                if x.scatter(&index, &updates, how).is_err() {
                    continue;
                }
                let name = format!("{how:?} of {entries} x {width} {dtype} to {places}, {kind}");
                let (to, at, from) = (x.clone(), index.clone(), updates.clone());
                let call = move || to.scatter(&at, &from, how).unwrap();
                calls.push((name.clone(), Box::new(call)));
                if dtype == DType::F32 {
                    let (x, from) = (x.clone(), updates.clone());
                    let call = move || {
                        let x = x.copy().unwrap();
                        x.scatter_(&index, &from, how).unwrap();
                        x
                    };
                    calls.push((format!("{name}, in place"), Box::new(call)));
                }
            }
        }
        check(&calls);
    }
}

#[test]
fn lanes_and_columns_give_the_same_bits_on_any_number_of_threads() {
    let _released = tuning::released();
    let (_grain, _wave) = (GRAIN.set(1 << 10), WAVE.set(1 << 10));
    let mut rng = Rng(73);
    let (entries, places) = (70_000, 300);
    // Places that are closer in memory than the elements of a row.
    let x = values(&mut rng, DType::F32, &[3, places]);
    let updates = values(&mut rng, DType::F32, &[3, entries]);
    let mut calls: Vec<Named<'_>> = vec![];
    for (kind, index) in indices(&mut rng, entries, places) {
        let index = Tensor::from_slice(&index, &[entries]).unwrap();
        for how in reductions() {
            let how = how.axis(1);
            let (x, index, updates) = (&x, index.clone(), &updates);
            let call = move || x.scatter(&index, updates, how).unwrap();
            calls.push((format!("{how:?} along axis 1, {kind}"), Box::new(call)));
        }
        // A few long lanes.
        let lanes = index.reshape(&[1, entries]).unwrap().broadcast_to(&[3, entries]).unwrap();
        let how = PutAlongAxis::reduce(1, Reduce::Sum).broadcast(false);
        let (x, updates) = (&x, &updates);
        let call = move || x.put_along_axis(&lanes, updates, how).unwrap();
        calls.push((format!("put_along_axis, {kind}"), Box::new(call)));
    }
    check(&calls);
}

#[test]
fn an_entry_that_is_out_of_range_changes_nothing_on_any_number_of_threads() {
    let _released = tuning::released();
    let (_grain, _wave) = (GRAIN.set(1 << 10), WAVE.set(1 << 10));
    let mut rng = Rng(79);
    let (entries, places) = (9000, 700);
    let x = values(&mut rng, DType::F32, &[places]);
    let updates = values(&mut rng, DType::F32, &[entries]);
    let before = bytes(&x);
    for (kind, mut index) in indices(&mut rng, entries, places) {
        index[entries - 3] = places as i64;
        let index = Tensor::from_slice(&index, &[entries]).unwrap();
        let ways =
            THREADS.into_iter().flat_map(|t| reductions().into_iter().map(move |how| (t, how)));
        for (threads, how) in ways {
            set_num_threads(threads);
            let error = x.scatter_(&index, &updates, how).unwrap_err().to_string();
            assert!(error.contains("700"), "{error}");
            assert!(x.scatter(&index, &updates, how).is_err(), "{kind}");
            assert!(bytes(&x) == before, "{how:?} with an index {kind} on {threads} threads");
        }
    }
}

/// Bytes of numbers for which the order matters: NaN with different payloads, also signaling ones,
/// both zeros and both infinities, and bools that are neither 0 nor 1, between other numbers.
fn special(rng: &mut Rng, dtype: DType, count: usize) -> Vec<u8> {
    let any = |rng: &mut Rng| rng.next().to_ne_bytes();
    let float = |rng: &mut Rng| {
        let value = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0][rng.below(6)];
        match dtype {
            DType::F32 => u64::from((value as f32).to_bits()),
            DType::F64 => f64::to_bits(value),
            // The upper half of an `f32` is a `bf16`.
            DType::BF16 => u64::from((value as f32).to_bits() >> 16),
            _ => [0, 0x8000, 0x7c00, 0xfc00, 0x3c00, 0xbc00][rng.below(6)],
        }
        .to_ne_bytes()
    };
    // One of 500 is a NaN, so that many places get one and many get none.
    let nan = |rng: &mut Rng| {
        let payload = rng.next();
        match dtype {
            DType::F32 => u64::from(f32::NAN.to_bits()) ^ payload & 0x803f_ffff,
            DType::F64 => f64::NAN.to_bits() ^ payload & 0x8007_ffff_ffff_ffff,
            DType::BF16 => 0x7f81 | payload & 0x807f,
            _ => 0x7c01 | payload & 0x83ff,
        }
        .to_ne_bytes()
    };
    let size = dtype.size();
    let mut bytes = vec![];
    for _ in 0..count {
        let element = match dtype.is_differentiable() {
            true if rng.chance(500) => nan(rng),
            true => float(rng),
            // Many bools are 0.
            false if dtype == DType::Bool && rng.chance(2) => [0; 8],
            false => any(rng),
        };
        let low = if cfg!(target_endian = "big") { 8 - size } else { 0 };
        bytes.extend_from_slice(&element[low..low + size]);
    }
    bytes
}

/// The reductions whose partial results are merged. The bits of a NaN that is a sum or a product depend
/// on the order of the operands of an instruction, which is the compiler's choice.
fn exact(dtype: DType) -> Vec<Scatter> {
    let all = [Reduce::Amax, Reduce::Amin, Reduce::Sum, Reduce::Mul];
    let all = &all[..if dtype.is_differentiable() { 2 } else { 4 }];
    let both = |&reduce| [true, false].map(|own| Scatter::reduce(reduce).include_self(own));
    all.iter().flat_map(both).collect()
}

/// Compares reductions whose partial results are merged, on numbers that show the order. The number
/// of threads decides whether each has private places.
#[test]
fn partial_results_have_the_bits_of_the_loop() {
    let _released = tuning::released();
    let (_grain, _wave) = (GRAIN.set(1 << 10), WAVE.set(1 << 10));
    let mut rng = Rng(83);
    let dtypes = [
        DType::Bool,
        DType::U8,
        DType::I16,
        DType::I32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];
    for (entries, places, width) in
        [(9000, 1, 1), (9000, 300, 1), (9000, 40, 8), (9000, 100, 5), (40_000, 9000, 1)]
    {
        let mut calls: Vec<Named<'_>> = vec![];
        let kinds = indices(&mut rng, entries, places);
        for dtype in dtypes {
            let shape = |rows: usize| if width == 1 { vec![rows] } else { vec![rows, width] };
            let x = special(&mut rng, dtype, places * width);
            let x = Tensor::from_bytes(&x, shape(places), dtype).unwrap();
            let updates = special(&mut rng, dtype, entries * width);
            let updates = Tensor::from_bytes(&updates, shape(entries), dtype).unwrap();
            for ((kind, index), how) in
                kinds.iter().flat_map(|k| exact(dtype).into_iter().map(move |h| (k, h)))
            {
                let index = Tensor::from_slice(index, &[entries]).unwrap();
                let name = format!("{how:?} of {entries} x {width} {dtype} to {places}, {kind}");
                let (x, from) = (x.clone(), updates.clone());
                let call = move || {
                    let x = x.copy().unwrap();
                    x.scatter_(&index, &from, how).unwrap();
                    x
                };
                calls.push((name, Box::new(call)));
            }
        }
        check(&calls);
    }
}

/// Compares a maximum of floats with a plain loop: the last NaN, or else the first of equal numbers.
#[test]
fn a_maximum_on_many_threads_is_the_loop() {
    let _released = tuning::released();
    let _grain = GRAIN.set(1 << 10);
    let mut rng = Rng(89);
    let (entries, places) = (20_000, 200);
    let bits = |bytes: &[u8]| -> Vec<f32> {
        bytes.as_chunks().0.iter().map(|&four| f32::from_ne_bytes(four)).collect()
    };
    let x = special(&mut rng, DType::F32, places);
    let updates = special(&mut rng, DType::F32, entries);
    let (numbers, old) = (bits(&updates), bits(&x));
    for (kind, index) in indices(&mut rng, entries, places) {
        let mut result = old.clone();
        for (&at, &value) in index.iter().zip(&numbers) {
            let place = &mut result[at.rem_euclid(places as i64) as usize];
            if value.is_nan() || value > *place {
                *place = value;
            }
        }
        let result: Vec<u8> = result.into_iter().flat_map(f32::to_ne_bytes).collect();
        let x = Tensor::from_bytes(&x, [places], DType::F32).unwrap();
        let updates = Tensor::from_bytes(&updates, [entries], DType::F32).unwrap();
        let index = Tensor::from_slice(&index, &[entries]).unwrap();
        let how = Scatter::reduce(Reduce::Amax).include_self(true);
        for threads in THREADS {
            set_num_threads(threads);
            let found = x.scatter(&index, &updates, how).unwrap();
            assert!(bytes(&found) == result, "an index {kind} on {threads} threads");
        }
    }
}

/// Several waves of a partition, each of which splits the entries of a hot place.
#[test]
fn hot_places_are_split_in_every_wave() {
    let _released = tuning::released();
    let (_grain, _wave, _scanned) = (GRAIN.set(1 << 10), WAVE.set(1 << 10), SCANNED.set(1));
    let mut rng = Rng(97);
    let (entries, places) = (600_000, 100_000);
    let mut calls: Vec<Named<'_>> = vec![];
    for dtype in [DType::I32, DType::F32] {
        let x = special(&mut rng, dtype, places);
        let x = Tensor::from_bytes(&x, [places], dtype).unwrap();
        let updates = special(&mut rng, dtype, entries);
        let updates = Tensor::from_bytes(&updates, [entries], dtype).unwrap();
        // Half of the entries name three places, one of which is not named by the first half.
        let hot = (0..entries as i64).map(|k| match rng.below(6) {
            at @ (0 | 1) => 7 + 900 * at as i64,
            2 if k > entries as i64 / 2 => 99_999,
            _ => rng.between(0, places as i64 - 1),
        });
        let index = Tensor::from_slice(&hot.collect::<Vec<i64>>(), &[entries]).unwrap();
        for how in exact(dtype) {
            let (x, index, updates) = (x.clone(), index.clone(), updates.clone());
            let call = move || x.scatter(&index, &updates, how).unwrap();
            calls.push((format!("{how:?} of {dtype}"), Box::new(call)));
        }
    }
    set_num_threads(1);
    let expected: Vec<Vec<u8>> = calls.iter().map(|(_, call)| bytes(&call())).collect();
    set_num_threads(16);
    for ((name, call), expected) in calls.iter().zip(&expected) {
        assert!(bytes(&call()) == *expected, "{name}");
    }
}

/// Once all places were named, the kernels no longer note that. Indices name the last place early, late
/// or never.
#[test]
fn the_old_value_of_a_place_takes_no_part_even_if_its_entries_are_far_apart() {
    let _released = tuning::released();
    let (_grain, _wave) = (GRAIN.set(1 << 10), WAVE.set(1 << 10));
    let mut rng = Rng(79);
    let entries = 40_000;
    let mut calls: Vec<(Named<'_>, Vec<f32>)> = vec![];
    for (places, width) in
        [(1, 1), (31, 3), (32, 8), (33, 1), (64, 8), (100, 16), (700, 1), (5, 64)]
    {
        for late in [0, 10_000, 39_999, entries] {
            let mut index: Vec<i64> =
                (0..entries).map(|_| rng.between(0, (places as i64 - 2).max(0))).collect();
            if late < entries {
                index[late] = places as i64 - 1;
            }
            let old: Vec<f32> = (0..places * width).map(|k| 1e6 + k as f32).collect();
            let new: Vec<f32> =
                (0..entries * width).map(|_| rng.between(-1000, 1000) as f32 * 0.37).collect();
            for reduce in [Reduce::Sum, Reduce::Amax] {
                let (mut expected, mut named) = (old.clone(), vec![false; places]);
                for (&place, row) in index.iter().zip(new.chunks(width)) {
                    let first = !std::mem::replace(&mut named[place as usize], true);
                    let to = &mut expected[place as usize * width..][..width];
                    for (to, &value) in to.iter_mut().zip(row) {
                        *to = match reduce {
                            _ if first => value,
                            Reduce::Sum => *to + value,
                            _ => to.max(value),
                        };
                    }
                }
                let x = Tensor::from_slice(&old, &[places, width]).unwrap();
                let from = Tensor::from_slice(&new, &[entries, width]).unwrap();
                let at = Tensor::from_slice(&index, &[entries]).unwrap();
                let how = Scatter::reduce(reduce);
                let name = format!("{reduce:?} to {places} x {width}, the last at {late}");
                let call = move || {
                    let (out, to) = (x.scatter(&at, &from, how).unwrap(), x.copy().unwrap());
                    to.scatter_(&at, &from, how).unwrap();
                    assert!(bytes(&out) == bytes(&to), "in place");
                    out
                };
                calls.push(((name, Box::new(call)), expected));
            }
        }
    }
    for threads in THREADS {
        set_num_threads(threads);
        for ((name, call), expected) in &calls {
            assert!(call().to_vec::<f32>().unwrap() == *expected, "{name} on {threads} threads");
        }
    }
}
