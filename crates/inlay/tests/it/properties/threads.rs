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
        all.push(Scatter::reduce(reduce));
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
