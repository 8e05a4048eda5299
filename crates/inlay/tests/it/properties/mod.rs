//! Compares every kernel bit by bit with a naive implementation, for random ranks, dtypes, strides
//! and thread counts.

mod keys;
mod large;
mod strides;
mod threads;
mod ways;

use crate::support::case::canonical;
use crate::support::device::{also_on_gpu, threads};
use crate::support::{Nd, Rng, naive, tuning};
use inlay::{
    DType, DiagonalScatter, PutAlongAxis, Reduce, Result, Scatter, Slice, SliceScatter, Tensor,
    set_num_threads,
};
use proptest::prelude::*;

const REDUCTIONS: [Reduce; 5] =
    [Reduce::Sum, Reduce::Mul, Reduce::Mean, Reduce::Amax, Reduce::Amin];

fn dtypes() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.to_vec())
}

fn index_dtypes() -> impl Strategy<Value = DType> {
    let integers = DType::ALL.into_iter().filter(|dtype| dtype.is_integer());
    prop::sample::select(integers.collect::<Vec<_>>())
}

fn shapes(ranks: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..=4, ranks)
}

/// Compares bits. All NaNs count as equal, because the bits of a NaN result are not specified.
fn assert_same(got: &Tensor, expected: &Nd) {
    let (got, expected) = (canonical(Nd::of_tensor(got)), canonical(expected.clone()));
    assert_eq!(got, expected);
}

/// Runs a write out of place and in place, with random layouts and 1 to 4 threads.
fn check_write(
    rng: &mut Rng,
    x: &Nd,
    expected: &Nd,
    fresh: impl Fn(&Tensor) -> Result<Tensor>,
    in_place: impl Fn(&Tensor) -> Result<()>,
) {
    let _low = tuning::low();
    for threads in threads() {
        set_num_threads(threads);
        let source = x.scattered(rng);
        let result = fresh(&source).unwrap();
        assert!(result.is_contiguous());
        assert_same(&result, expected);
        assert_same(&source, x);
        let target = x.scattered(rng);
        in_place(&target).unwrap();
        assert_same(&target, expected);
    }
}

fn check_read(expected: &Nd, read: impl Fn() -> Result<Tensor>) {
    let _low = tuning::low();
    for threads in threads() {
        set_num_threads(threads);
        assert_same(&read().unwrap(), expected);
    }
}

fn random_slice(rng: &mut Rng, size: usize) -> Slice {
    let far = size as i64 + 2;
    let end = |rng: &mut Rng| (!rng.chance(4)).then(|| rng.between(-far, far));
    let (start, stop) = (end(rng), end(rng));
    let step = *rng.pick(&[1, 1, 2, 3, 7, -1, -2, -3, i64::MAX, i64::MIN]);
    Slice { start, stop, step }
}

/// A random reduction that the dtype supports, or an assignment.
fn random_reduce(rng: &mut Rng, dtype: DType) -> Option<(Reduce, bool)> {
    let defined = REDUCTIONS.into_iter().filter(|reduce| reduce.is_defined_for(dtype));
    let defined: Vec<Reduce> = defined.collect();
    (!rng.chance(4)).then(|| (*rng.pick(&defined), rng.chance(2)))
}

/// Random axes that get stride 0.
fn held(rng: &mut Rng, nd: &mut Nd) -> Tensor {
    let axes: Vec<bool> = nd.shape.iter().map(|_| rng.chance(5)).collect();
    nd.hold(&axes);
    nd.held(rng, &axes)
}

fn check_slice_scatter(rng: &mut Rng, dtype: DType, shape: &[usize]) {
    let _low = tuning::low();
    let x = Nd::random(rng, dtype, shape);
    let mut axes = rng.permutation(shape.len());
    axes.truncate(1 + rng.below(2));
    let slices: Vec<(usize, Slice)> =
        axes.into_iter().map(|axis| (axis, random_slice(rng, shape[axis]))).collect();
    let mut part = shape.to_vec();
    let mut at = SliceScatter::default();
    for &(axis, slice) in &slices {
        part[axis] = naive::slice_positions(slice, shape[axis]).len();
        let from_end = axis as i64 - shape.len() as i64;
        at = at.and(if rng.chance(2) { axis as i64 } else { from_end }, slice);
    }
    let mut y = Nd::random(rng, dtype, &part);
    let source = held(rng, &mut y);
    let expected = naive::slice_scatter(&x, &y, &slices);
    check_write(
        rng,
        &x,
        &expected,
        |x| x.slice_scatter(&source, &at),
        |x| x.slice_scatter_(&source, &at).map(drop),
    );
    assert_same(&expected.tensor().slice(&at).unwrap(), &y);
}

fn check_diagonal_scatter(rng: &mut Rng, dtype: DType, shape: &[usize]) {
    let _low = tuning::low();
    let x = Nd::random(rng, dtype, shape);
    let axes = rng.permutation(shape.len());
    let (axis1, axis2) = (axes[0], axes[1]);
    let offset = *rng.pick(&[0, 0, 1, -1, 2, -3, 6, i64::MAX, i64::MIN]);
    let at =
        DiagonalScatter { offset, axis1: axis1 as i64, axis2: axis2 as i64 - shape.len() as i64 };
    let part = x.tensor().diagonal(at).unwrap();
    let mut src = Nd::random(rng, dtype, part.shape());
    let source = held(rng, &mut src);
    let expected = naive::diagonal_scatter(&x, &src, offset, axis1, axis2);
    check_write(
        rng,
        &x,
        &expected,
        |x| x.diagonal_scatter(&source, at),
        |x| x.diagonal_scatter_(&source, at).map(drop),
    );
    assert_same(&expected.tensor().diagonal(at).unwrap(), &src);
}

fn check_masks(rng: &mut Rng, dtype: DType, shape: &[usize]) {
    let _low = tuning::low();
    let x = Nd::random(rng, dtype, shape);
    let drop = rng.below(shape.len() + 1);
    let small: Vec<usize> =
        shape[drop..].iter().map(|&n| if rng.chance(4) { 1 } else { n }).collect();
    let one_in = *rng.pick(&[1, 1, 2, 3, 20]);
    let mask = Nd::bools(rng, &small, one_in);
    let mask_tensor = mask.scattered(rng);
    let selected = naive::masked_select(&x, &mask);
    let laid = x.scattered(rng);
    check_read(&selected, || laid.masked_select(&mask_tensor));

    let more = rng.below(3);
    let mut source = Nd::random(rng, dtype, &[selected.cells.len() + more]);
    let source_tensor = held(rng, &mut source);
    let expected = naive::masked_scatter(&x, &mask, &source);
    check_write(
        rng,
        &x,
        &expected,
        |x| x.masked_scatter(&mask_tensor, &source_tensor),
        |x| x.masked_scatter_(&mask_tensor, &source_tensor).map(std::mem::drop),
    );

    let value = Nd::random(rng, dtype, &[]);
    let value_tensor = value.tensor();
    let expected = naive::select(&mask, &value, &x, shape);
    check_write(
        rng,
        &x,
        &expected,
        |x| x.masked_fill(&mask_tensor, &value_tensor),
        |x| x.masked_fill_(&mask_tensor, &value_tensor).map(std::mem::drop),
    );
    let (laid, other) = (laid.copy().unwrap(), x.scattered(rng));
    let value_row = value_tensor.broadcast_to(shape).unwrap();
    check_read(&expected, || mask_tensor.where_(&value_row, &other));
    assert_same(&laid, &x);
}

fn check_scatter(rng: &mut Rng, dtype: DType, index_dtype: DType, shape: &[usize], entries: usize) {
    let _low = tuning::low();
    let x = Nd::random(rng, dtype, shape);
    let axis = rng.below(shape.len());
    let entries = if shape[axis] == 0 { 0 } else { entries };
    let index = Nd::random_index(rng, index_dtype, &[entries], shape[axis].max(1));
    let mut part = shape.to_vec();
    part[axis] = entries + rng.below(2);
    let mut updates = Nd::random(rng, dtype, &part);
    let updates_tensor = held(rng, &mut updates);
    let index_tensor = index.scattered(rng);
    let reduce = random_reduce(rng, dtype);
    let how = match reduce {
        None => Scatter::overwrite(),
        Some((reduce, include)) => Scatter::reduce(reduce).include_self(include),
    };
    let how = how.axis(axis as i64 - if rng.chance(2) { shape.len() as i64 } else { 0 });
    let expected = naive::scatter(&x, &index, &updates, axis, reduce);
    check_write(
        rng,
        &x,
        &expected,
        |x| x.scatter(&index_tensor, &updates_tensor, how),
        |x| x.scatter_(&index_tensor, &updates_tensor, how).map(drop),
    );

    let rows = naive::index_select(&x, &index, axis);
    let laid = x.scattered(rng);
    check_read(&rows, || laid.index_select(&index_tensor, axis as i64));

    let value = Nd::random(rng, dtype, &[]);
    let value_tensor = value.tensor();
    part[axis] = entries;
    let filled = Nd::new(dtype, &part, vec![value.cells[0]; part.iter().product()]);
    let expected = naive::scatter(&x, &index, &filled, axis, None);
    check_write(
        rng,
        &x,
        &expected,
        |x| x.index_fill(&index_tensor, axis as i64, &value_tensor),
        |x| x.index_fill_(&index_tensor, axis as i64, &value_tensor).map(drop),
    );
}

fn check_along_axis(
    rng: &mut Rng,
    dtype: DType,
    index_dtype: DType,
    shape: &[usize],
    entries: usize,
) {
    let axis = rng.below(shape.len());
    let reduce = random_reduce(rng, dtype);
    check_along(rng, (dtype, index_dtype), shape, axis, entries, reduce);
}

fn check_along(
    rng: &mut Rng,
    (dtype, index_dtype): (DType, DType),
    shape: &[usize],
    axis: usize,
    entries: usize,
    reduce: Option<(Reduce, bool)>,
) {
    let _low = tuning::low();
    let x = Nd::random(rng, dtype, shape);
    let smaller = rng.chance(2);
    let mut part: Vec<usize> =
        shape.iter().map(|&n| if smaller { n - rng.below(n.min(1) + 1) } else { n }).collect();
    part[axis] = if shape[axis] == 0 { 0 } else { entries };
    let mut index = Nd::random_index(rng, index_dtype, &part, shape[axis].max(1));
    let index_tensor = held(rng, &mut index);
    let mut values = Nd::random(rng, dtype, &part);
    let values_tensor = held(rng, &mut values);
    let how = match reduce {
        None => PutAlongAxis::assign(axis as i64),
        Some((reduce, include)) => PutAlongAxis::reduce(axis as i64, reduce).include_self(include),
    };
    let how = how.broadcast(!smaller);
    let expected = naive::put_along_axis(&x, &index, &values, axis, reduce);
    check_write(
        rng,
        &x,
        &expected,
        |x| x.put_along_axis(&index_tensor, &values_tensor, how),
        |x| x.put_along_axis_(&index_tensor, &values_tensor, how).map(drop),
    );
    let taken = naive::take_along_axis(&x, &index, axis);
    let laid = x.scattered(rng);
    check_read(&taken, || laid.take_along_axis(&index_tensor, axis as i64, !smaller));
}

fn check_triangles(rng: &mut Rng, dtype: DType, shape: &[usize]) {
    let _low = tuning::low();
    let x = Nd::random(rng, dtype, shape);
    let offset = *rng.pick(&[0, 1, -1, 3, -7, i64::MAX, i64::MIN]);
    let laid = x.scattered(rng);
    check_read(&naive::keep_triangle(&x, true, offset), || laid.tril(offset));
    check_read(&naive::keep_triangle(&x, false, offset), || laid.triu(offset));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn slice_scatter_is_its_naive_twin(seed: u64, dtype in dtypes(), shape in shapes(1..=5)) {
        check_slice_scatter(&mut Rng(seed), dtype, &shape);
    }

    #[test]
    fn diagonal_scatter_is_its_naive_twin(seed: u64, dtype in dtypes(), shape in shapes(2..=5)) {
        check_diagonal_scatter(&mut Rng(seed), dtype, &shape);
    }

    #[test]
    fn masks_are_their_naive_twins(seed: u64, dtype in dtypes(), shape in shapes(0..=5)) {
        check_masks(&mut Rng(seed), dtype, &shape);
    }

    #[test]
    fn scatter_is_its_naive_twin(
        seed: u64, dtype in dtypes(), index in index_dtypes(), shape in shapes(1..=5), n in 0usize..12,
    ) {
        check_scatter(&mut Rng(seed), dtype, index, &shape, n);
    }

    #[test]
    fn along_axis_is_its_naive_twin(
        seed: u64, dtype in dtypes(), index in index_dtypes(), shape in shapes(1..=5), n in 0usize..12,
    ) {
        check_along_axis(&mut Rng(seed), dtype, index, &shape, n);
    }

    #[test]
    fn triangles_are_their_naive_twins(seed: u64, dtype in dtypes(), shape in shapes(2..=5)) {
        check_triangles(&mut Rng(seed), dtype, &shape);
    }
}

/// Tests sizes on both sides of each threshold: words and blocks of a mask (64 and 4096 elements),
/// few elements (1024), few entries (64) of a small tensor (2 KiB), blocks of a long row (16 KiB),
/// a dense index (8 places per entry), and a second thread (128 KiB of work).
#[test]
fn twins_agree_around_every_threshold() {
    let mut rng = Rng(7);
    let rng = &mut rng;
    for n in [63, 64, 65, 1024, 1025, 4095, 4096, 4097, 33_000] {
        for dtype in [DType::U8, DType::F16, DType::F32, DType::I64, DType::C128] {
            check_masks(rng, dtype, &[n]);
            check_slice_scatter(rng, dtype, &[n]);
            check_scatter(rng, dtype, DType::I32, &[n], n / 3);
            check_scatter(rng, dtype, DType::U64, &[n], n / 8 - 1);
            check_scatter(rng, dtype, DType::I64, &[n], n / 8 + 1);
            check_scatter(rng, dtype, DType::I64, &[3, n], 2);
            check_along_axis(rng, dtype, DType::I64, &[n], n / 9);
            check_along_axis(rng, dtype, DType::I32, &[n / 32, 32], 40);
        }
    }
    for shape in [[8, 8], [5, 13], [16, 32], [16, 33]] {
        for dtype in [DType::U8, DType::F16, DType::F32, DType::I64, DType::C128] {
            check_masks(rng, dtype, &shape);
            for entries in [1, 2, 4, 5, 8, 9] {
                check_along_axis(rng, dtype, DType::I64, &shape, entries);
                check_along_axis(rng, dtype, DType::I32, &shape, entries);
            }
        }
    }
    for shape in [[129, 65, 5], [64, 64, 16], [2, 300, 70]] {
        for dtype in [DType::BF16, DType::F32, DType::F64] {
            check_masks(rng, dtype, &shape);
            check_slice_scatter(rng, dtype, &shape);
            check_diagonal_scatter(rng, dtype, &shape);
            check_scatter(rng, dtype, DType::I64, &shape, 150);
            check_along_axis(rng, dtype, DType::I64, &shape, 33);
            check_triangles(rng, dtype, &shape);
        }
    }
}

#[test]
fn every_reduction_of_every_dtype_is_its_naive_twin() {
    let mut rng = Rng(11);
    for dtype in DType::ALL {
        for reduce in REDUCTIONS.into_iter().filter(|reduce| reduce.is_defined_for(dtype)) {
            for include in [false, true] {
                let x = Nd::random(&mut rng, dtype, &[7, 70]);
                let index = Nd::random_index(&mut rng, DType::I64, &[40], 7);
                let updates = Nd::random(&mut rng, dtype, &[40, 70]);
                let expected = naive::scatter(&x, &index, &updates, 0, Some((reduce, include)));
                let how = Scatter::reduce(reduce).include_self(include);
                let got = x.tensor().scatter(&index.tensor(), &updates.tensor(), how).unwrap();
                assert_same(&got, &expected);
            }
        }
    }
}

#[test]
fn every_reduction_of_every_dtype_along_an_axis_is_its_naive_twin() {
    let mut rng = Rng(12);
    for dtype in DType::ALL {
        for reduce in REDUCTIONS.into_iter().filter(|reduce| reduce.is_defined_for(dtype)) {
            // These sizes are on both sides of the threshold for few elements.
            let kinds = [(false, 0), (false, 1), (true, 0), (true, 1)];
            for ((include, axis), n) in kinds.into_iter().flat_map(|kind| [(kind, 8), (kind, 70)]) {
                let x = Nd::random(&mut rng, dtype, &[n, n]);
                let index = Nd::random_index(&mut rng, DType::I64, &[n, n], n);
                let values = Nd::random(&mut rng, dtype, &[n, n]);
                let combine = Some((reduce, include));
                let expected = naive::put_along_axis(&x, &index, &values, axis, combine);
                let how = PutAlongAxis::reduce(axis as i64, reduce).include_self(include);
                let (index, values) = (index.tensor(), values.tensor());
                let got = x.tensor().put_along_axis(&index, &values, how).unwrap();
                assert_same(&got, &expected);
            }
        }
    }
}

#[test]
fn halves_are_cast_many_at_a_time_as_one_by_one() {
    let _low = tuning::low();
    let mut rng = Rng(13);
    for n in [1, 255, 256, 257, 1000] {
        let x = Nd::random(&mut rng, DType::F32, &[n, 3]);
        for half in [DType::F16, DType::BF16] {
            let whole = x.tensor().cast(half).unwrap();
            let laid = x.scattered(&mut rng).cast(half).unwrap();
            // Casts through float64 convert the numbers one by one.
            let singly = x.tensor().cast(DType::F64).unwrap().cast(half).unwrap();
            let back = |x: &Tensor| x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
            assert_eq!(format!("{:?}", back(&whole)), format!("{:?}", back(&singly)));
            assert_eq!(format!("{:?}", back(&laid)), format!("{:?}", back(&singly)));
            let wide = whole.cast(DType::F32).unwrap().cast(DType::F64).unwrap();
            assert_eq!(format!("{:?}", back(&wide)), format!("{:?}", back(&whole)));
        }
    }
}

#[test]
fn sums_do_not_depend_on_threads_or_layout() {
    let _low = tuning::low();
    let mut rng = Rng(13);
    for dtype in DType::ALL {
        for shape in [vec![5000], vec![70, 90], vec![4, 1030, 3], vec![0, 4], vec![]] {
            let x = Nd::random(&mut rng, dtype, &shape);
            let axes: Vec<i64> = (0..shape.len() as i64).filter(|_| rng.chance(2)).collect();
            set_num_threads(1);
            let expected = Nd::of_tensor(&x.tensor().sum(&axes, false).unwrap());
            for threads in threads() {
                set_num_threads(threads);
                let laid = x.scattered(&mut rng);
                assert_same(&laid.sum(&axes, false).unwrap(), &expected);
            }
        }
    }
}

#[test]
fn triangle_indices_are_what_a_loop_finds() {
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_integer()) {
        for (row, col) in [(0, 0), (0, 3), (3, 0), (1, 1), (5, 3), (3, 5), (100, 90)] {
            for offset in [0, 1, -1, 4, -4, 200, -200, i64::MAX, i64::MIN] {
                for threads in threads() {
                    set_num_threads(threads);
                    for lower in [true, false] {
                        let inside = |&(r, c): &(i64, i64)| {
                            let distance = i128::from(c - r);
                            let offset = i128::from(offset);
                            if lower { distance <= offset } else { distance >= offset }
                        };
                        let entries = (0..row).flat_map(|r| (0..col).map(move |c| (r, c)));
                        let entries: Vec<(i64, i64)> = entries.filter(inside).collect();
                        let rows = entries.iter().map(|entry| entry.0);
                        let expected: Vec<i64> =
                            rows.chain(entries.iter().map(|entry| entry.1)).collect();
                        let indices = match lower {
                            true => Tensor::tril_indices(row, col, offset, dtype),
                            false => Tensor::triu_indices(row, col, offset, dtype),
                        };
                        let got = indices.unwrap().cast(DType::I64).unwrap();
                        assert_eq!(got.shape(), [2, entries.len()]);
                        assert_eq!(got.to_vec::<i64>().unwrap(), expected);
                    }
                }
            }
        }
    }
}

#[cfg(feature = "gpu")]
fn twins_agree_on_random_calls() {
    for seed in 0..40 {
        let rng = &mut Rng(seed);
        for dtype in DType::ALL {
            let rank = 2 + rng.below(3);
            let shape: Vec<usize> = (0..rank).map(|_| rng.below(5)).collect();
            let index = *rng.pick(&[DType::I64, DType::I32, DType::U8, DType::I16, DType::U64]);
            let entries = rng.below(12);
            check_slice_scatter(rng, dtype, &shape);
            check_diagonal_scatter(rng, dtype, &shape);
            check_masks(rng, dtype, &shape);
            check_scatter(rng, dtype, index, &shape, entries);
            check_along_axis(rng, dtype, index, &shape, entries);
            check_triangles(rng, dtype, &shape);
        }
    }
}

also_on_gpu!(
    twins_agree_on_random_calls,
    twins_agree_around_every_threshold,
    every_reduction_of_every_dtype_is_its_naive_twin,
    every_reduction_of_every_dtype_along_an_axis_is_its_naive_twin,
    halves_are_cast_many_at_a_time_as_one_by_one,
    sums_do_not_depend_on_threads_or_layout,
    triangle_indices_are_what_a_loop_finds,
);
