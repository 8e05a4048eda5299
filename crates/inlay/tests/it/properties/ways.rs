//! Tests of all algorithms for scatters, elements and rows, on both sides of the thresholds between
//! them.

use inlay::{
    DType, PutAlongAxis, Reduce, Scatter, Slice, SliceScatter, Tensor, jit, set_num_threads,
};

use super::{REDUCTIONS, assert_same, check_along, check_read, check_scatter, random_reduce};
use crate::support::device::{also_on_gpu, threads};
use crate::support::{Nd, Rng, naive, tuning};

/// Covers the algorithms of a scatter. Rows of up to 64 bytes are reduced directly, longer rows by
/// place, and single elements without a list. A block has 2048 entries. A row is processed in lanes
/// of 64 elements. If most entries name one place, threads split it by columns. 16-bit sums with a
/// sparse index are sorted.
#[test]
fn twins_agree_on_every_way_of_a_scatter() {
    let mut rng = Rng(17);
    let rng = &mut rng;
    for dtype in [DType::F16, DType::F32, DType::I64] {
        let row = 64 / dtype.size();
        for width in [1, row, row + 1] {
            check_scatter(rng, dtype, DType::I64, &[100, width], 2049);
            check_scatter(rng, dtype, DType::I32, &[1, width], 2047);
        }
        for width in [1, 64, 65] {
            check_scatter(rng, dtype, DType::I64, &[30, width], 500);
            check_scatter(rng, dtype, DType::I32, &[1, width], 500);
            check_scatter(rng, dtype, DType::U16, &[900, width], 100);
        }
        check_scatter(rng, dtype, DType::I64, &[5, 40, 16], 300);
    }
}

/// Covers scatters on both sides of the limits for small scatters: 2 KiB, 64 entries, an index of
/// 64 or 32 bits, and contiguous rows along the first axis that is longer than 1.
#[test]
fn twins_agree_on_small_scatters() {
    let _low = tuning::low();
    let mut rng = Rng(31);
    let combines = REDUCTIONS.into_iter().flat_map(|reduce| [(reduce, false), (reduce, true)]);
    for how in std::iter::once(None).chain(combines.map(Some)) {
        for index_dtype in [DType::I64, DType::I32, DType::I16] {
            for (places, entries) in [(0, 0), (3, 5), (63, 64), (64, 64), (65, 64), (64, 65)] {
                for (axis, outer) in [(0, 1), (1, 1), (1, 2)] {
                    let dtype = [DType::F32, DType::I32, DType::F16][rng.below(3)];
                    let shape = |rows: usize| match axis {
                        0 => vec![rows, 8],
                        _ => vec![outer, rows, 8],
                    };
                    let x = Nd::random(&mut rng, dtype, &shape(places));
                    let updates = Nd::random(&mut rng, dtype, &shape(entries));
                    let index = Nd::random_index(&mut rng, index_dtype, &[entries], places);
                    let expected = naive::scatter(&x, &index, &updates, axis, how);
                    let (index, updates) = (index.tensor(), updates.tensor());
                    let scatter = match how {
                        None => Scatter::overwrite(),
                        Some((reduce, include)) => Scatter::reduce(reduce).include_self(include),
                    };
                    let scatter = scatter.axis(axis as i64);
                    let target = x.tensor();
                    assert_same(&target.scatter(&index, &updates, scatter).unwrap(), &expected);
                    assert_same(&target, &x);
                    target.scatter_(&index, &updates, scatter).unwrap();
                    assert_same(&target, &expected);
                }
            }
        }
    }
}

/// Makes all combinations with one and with two threads, and compares the bits.
fn check_threads(rng: &mut Rng, x: &Nd, axis: usize, index: &Nd) {
    let _low = tuning::low();
    let mut shape = x.shape.clone();
    shape[axis] = index.shape[0];
    let updates = Nd::random(rng, x.dtype, &shape);
    let defined = REDUCTIONS.into_iter().filter(|reduce| reduce.is_defined_for(x.dtype));
    let combines = defined.flat_map(|reduce| [(reduce, false), (reduce, true)]);
    for how in std::iter::once(None).chain(combines.map(Some)) {
        let expected = naive::scatter(x, index, &updates, axis, how);
        let (index, updates) = (index.tensor(), updates.tensor());
        let scatter = match how {
            None => Scatter::overwrite(),
            Some((reduce, include)) => Scatter::reduce(reduce).include_self(include),
        };
        for threads in [1, 2] {
            set_num_threads(threads);
            let scatter = scatter.axis(axis as i64);
            assert_same(&x.tensor().scatter(&index, &updates, scatter).unwrap(), &expected);
        }
    }
}

/// One thread reduces rows of up to 512 bytes directly. Several threads do so if the rows fit into
/// the caches. Direct reductions process 8 elements or a multiple of 16 at a time, and reductions
/// by place 64, 32 or 16. Rows of up to 16 bytes are assigned directly, with one thread up to 32
/// bytes. With at least 8 places per entry, rows of up to 16 KiB are written directly. With more
/// than 32 places per entry, this holds only if no state per place is needed.
#[test]
fn twins_agree_with_one_thread_and_several() {
    let mut rng = Rng(37);
    for (dtype, width) in [
        (DType::F32, 127),
        (DType::F32, 129),
        (DType::F64, 64),
        (DType::F16, 256),
        (DType::F32, 8),
        (DType::F32, 24),
        (DType::F32, 32),
        (DType::F32, 64),
        (DType::F32, 4),
        (DType::F32, 5),
        (DType::F16, 48),
        (DType::F16, 64),
        (DType::I64, 8),
        (DType::I64, 16),
        (DType::I64, 96),
        (DType::C128, 16),
    ] {
        for (places, entries) in [(50, 300), (800, 60), (800, 20)] {
            let x = Nd::random(&mut rng, dtype, &[places, width]);
            let index = Nd::random_index(&mut rng, DType::I64, &[entries], places);
            check_threads(&mut rng, &x, 0, &index);
        }
    }
    for width in [(16 << 10) / 4, (16 << 10) / 4 + 1] {
        let x = Nd::random(&mut rng, DType::F32, &[9, width]);
        let index = Nd::random_index(&mut rng, DType::I64, &[1], 9);
        check_threads(&mut rng, &x, 0, &index);
    }
}

/// If a program selects rows only for a scatter, the scatter reads them from their source, directly
/// or by place. With at least 8 places per entry, the rows are selected first. There may be more
/// rows than the index names.
#[test]
fn twins_agree_on_rows_that_are_selected_to_be_scattered() {
    let _low = tuning::low();
    let mut rng = Rng(47);
    for dtype in [DType::F32, DType::F16, DType::I64, DType::U8] {
        for (shape, axis) in [
            (&[30, 4][..], 0),
            (&[30, 64 / dtype.size()], 0),
            (&[30, 64 / dtype.size() + 1], 0),
            (&[30, 64], 0),
            (&[3, 40, 8], 1),
            (&[20, 30], 1),
            (&[60], 0),
        ] {
            for (rows, entries, more) in [(7, 2050, 0), (90, 300, 3), (9, 2, 0), (5, 0, 1)] {
                let mut table = shape.to_vec();
                table[axis] = rows;
                let (x, table) =
                    (Nd::random(&mut rng, dtype, shape), Nd::random(&mut rng, dtype, &table));
                let select = Nd::random_index(&mut rng, DType::I64, &[entries + more], rows);
                let index = Nd::random_index(&mut rng, DType::I32, &[entries], shape[axis]);
                let how = random_reduce(&mut rng, dtype);
                let updates = naive::index_select(&table, &select, axis);
                let expected = naive::scatter(&x, &index, &updates, axis, how);
                let scatter = match how {
                    None => Scatter::overwrite(),
                    Some((reduce, include)) => Scatter::reduce(reduce).include_self(include),
                };
                let joined = jit(|args: &[Tensor]| {
                    let [x, index, table, select] = args else { unreachable!("four arguments") };
                    let updates = table.index_select(select, axis as i64)?;
                    // The copy is needed because it is written in place.
                    let x = x.copy()?;
                    Ok(vec![x.scatter(index, &updates, scatter.axis(axis as i64))?])
                });
                let [x, index, table, select] = [&x, &index, &table, &select].map(Nd::tensor);
                for threads in [1, 2] {
                    set_num_threads(threads);
                    let found = joined.call(&[&x, &index, &table, &select]).unwrap();
                    assert_same(&found[0], &expected);
                }
            }
        }
    }
}

/// Covers single values of 4 bytes and of other sizes, which are listed differently, in forward and
/// in backward order, which lists a whole block. They are along the first axis, which threads
/// split, and along the last axis.
#[test]
fn twins_agree_on_single_values() {
    let mut rng = Rng(41);
    for dtype in [DType::F32, DType::I32, DType::F64, DType::U8] {
        for (shape, axis, entries) in [(&[3000][..], 0, 4500), (&[3, 700], 1, 2050)] {
            let x = Nd::random(&mut rng, dtype, shape);
            for index_dtype in [DType::U32, DType::I64] {
                let index = Nd::random_index(&mut rng, index_dtype, &[entries], shape[axis]);
                check_threads(&mut rng, &x, axis, &index);
            }
        }
    }
}

/// Means count in `u8`, and list places whose count overflows. The places are named 254 times, 255
/// times, and three times as often.
#[test]
fn twins_agree_on_means_of_many() {
    let mut rng = Rng(43);
    for (shape, dtype) in
        [(&[300][..], DType::F32), (&[300, 8], DType::F32), (&[2, 300], DType::F64)]
    {
        let axis = shape.len() - 1 - usize::from(shape.len() == 2 && shape[0] == 300);
        let x = Nd::random(&mut rng, dtype, shape);
        let mut places: Vec<i64> = (0..600).map(|_| rng.between(-300, 299)).collect();
        for (place, times) in [(7, 253), (64, 254), (65, 255), (299, 256), (130, 600), (0, 763)] {
            places.extend(std::iter::repeat_n(place, times));
        }
        let index = Nd::of_tensor(&Tensor::from_slice(&places, &[places.len()]).unwrap());
        check_threads(&mut rng, &x, axis, &index);
    }
}

/// Covers indices that are distributed evenly, that mostly name eight places, and that mostly name
/// one place. Several threads reduce rows of more than 64 bytes directly: in the first case if all
/// rows together have up to 64 KiB (the low threshold), in the other cases always.
#[test]
fn twins_agree_on_uneven_indices() {
    let _low = tuning::low();
    let mut rng = Rng(19);
    let mut reductions = REDUCTIONS.into_iter().cycle();
    for (dtype, width) in
        [(DType::F32, 32), (DType::F16, 48), (DType::I64, 16), (DType::F32, 33), (DType::F32, 32)]
    {
        let cached = tuning::LOW / (width * dtype.size());
        for (entries, often) in [
            (cached, 20_000),
            (cached + 1, 20_000),
            (cached + 1, 8),
            (cached + 1, 1),
            (65_537, 8),
            (65_537, 1),
        ] {
            let reduce = reductions.next().unwrap();
            let size = if entries > 60_000 { 20_000 } else { 1_000 };
            let places: Vec<i64> = (0..entries)
                .map(|_| match rng.below(10) {
                    0 => rng.between(-size, size - 1),
                    _ => 31 * rng.between(0, often - 1) % size,
                })
                .collect();
            let index = Nd::of_tensor(&Tensor::from_slice(&places, &[entries]).unwrap());
            let x = Nd::random(&mut rng, dtype, &[size as usize, width]);
            let updates = Nd::random(&mut rng, dtype, &[entries, width]);
            let (index_tensor, updates_tensor) = (index.tensor(), updates.tensor());
            let include = rng.chance(2);
            let how = Scatter::reduce(reduce).include_self(include);
            let expected = naive::scatter(&x, &index, &updates, 0, Some((reduce, include)));
            for threads in threads() {
                set_num_threads(threads);
                let target = x.tensor();
                assert_same(
                    &target.scatter(&index_tensor, &updates_tensor, how).unwrap(),
                    &expected,
                );
                target.scatter_(&index_tensor, &updates_tensor, how).unwrap();
                assert_same(&target, &expected);
                let target = backwards(&x.tensor());
                target.scatter_(&index_tensor, &backwards(&updates_tensor), how).unwrap();
                assert_same(&target, &expected);
            }
        }
    }
}

/// Returns the same values with rows that are stored in reverse order.
fn backwards(x: &Tensor) -> Tensor {
    let reversed = SliceScatter::new(1, Slice { start: None, stop: None, step: -1 });
    x.slice(&reversed).unwrap().copy().unwrap().slice(&reversed).unwrap()
}

/// Covers the algorithms of `put_along_axis` for each reduction: 32 lanes at a time, lanes that are
/// moved to a tile (a stride of 2 KiB, up to 512 KiB, one entry per 2 places), entries grouped by
/// place (16-bit sums; fewer than one entry per 8 places), and lanes that are split between threads
/// (2^16 entries, fewer lanes than threads).
#[test]
fn twins_agree_on_every_way_along_an_axis() {
    let mut rng = Rng(19);
    let rng = &mut rng;
    let combines = REDUCTIONS.into_iter().flat_map(|reduce| [(reduce, false), (reduce, true)]);
    for reduce in std::iter::once(None).chain(combines.map(Some)) {
        let mut check = |dtype, shape: [usize; 2], axis, entries| {
            check_along(rng, (dtype, DType::I64), &shape, axis, entries, reduce);
        };
        for lanes in [31, 32, 33] {
            check(DType::F32, [60, lanes], 0, 8);
            check(DType::I64, [60, lanes], 0, 6);
            check(DType::F32, [lanes, 60], 1, 61);
        }
        for (columns, entries) in [(511, 20), (512, 19), (512, 20), (541, 40)] {
            check(DType::F32, [40, columns], 0, entries);
        }
        check(DType::F16, [40, 1030], 0, 41);
        check(DType::I64, [40, 256], 0, 41);
    }
    for reduce in [None, Some((Reduce::Mean, true)), Some((Reduce::Sum, false))] {
        let mut check = |dtype, shape: [usize; 2], axis, entries| {
            check_along(rng, (dtype, DType::I64), &shape, axis, entries, reduce);
        };
        // 32 lanes have the size of a tile, or are larger.
        check(DType::C128, [1024, 128], 0, 512);
        check(DType::C128, [1025, 128], 0, 512);
        check(DType::F32, [300, 1], 0, (1 << 16) - 1);
        check(DType::F32, [300, 1], 0, 1 << 16);
    }
    check_along(rng, (DType::F32, DType::I64), &[3, 300], 1, 1 << 16, Some((Reduce::Mul, true)));
}

/// Every algorithm finds an index that is out of range, and writes nothing in place.
#[test]
fn an_entry_out_of_range_changes_nothing_along_an_axis() {
    let _low = tuning::low();
    let mut rng = Rng(23);
    let reductions = REDUCTIONS.into_iter().map(Some);
    for reduce in std::iter::once(None).chain(reductions) {
        let few = [([8, 8], 0, 4), ([8, 8], 1, 8)];
        let shapes =
            [([40, 530], 0, 40), ([70, 33], 0, 6), ([33, 70], 1, 71), ([300, 1], 0, 1 << 16)];
        for (shape, axis, entries) in few.into_iter().chain(shapes) {
            let mut part = shape;
            part[axis] = entries;
            let x = Nd::random(&mut rng, DType::F32, &shape);
            let values = Nd::random(&mut rng, DType::F32, &part).tensor();
            let numel = entries * shape[1 - axis];
            let mut index = vec![0i64; numel];
            index[numel - 2] = shape[axis] as i64;
            let index = Tensor::from_slice(&index, &part).unwrap();
            let axis = axis as i64;
            let how = match reduce {
                None => PutAlongAxis::assign(axis),
                Some(reduce) => PutAlongAxis::reduce(axis, reduce),
            };
            let how = how.broadcast(false);
            for threads in [1, 3] {
                set_num_threads(threads);
                let target = x.tensor();
                assert!(target.put_along_axis(&index, &values, how).is_err());
                assert!(target.put_along_axis_(&index, &values, how).is_err());
                assert_same(&target, &x);
                assert!(target.take_along_axis(&index, axis, false).is_err());
            }
        }
    }
}

/// Rows with one element are read as elements, and longer rows by cache lines.
#[test]
fn twins_agree_on_every_way_to_select_rows() {
    let mut rng = Rng(29);
    for dtype in [DType::U8, DType::F32, DType::C128] {
        for width in [1, 15, 16, 17, 70] {
            for (shape, axis) in [([width, 90], 1), ([90, width], 0), ([90, width], 1)] {
                let entries = 50 + rng.below(3);
                let x = Nd::random(&mut rng, dtype, &shape);
                let index = Nd::random_index(&mut rng, DType::I64, &[entries], shape[axis]);
                let rows = naive::index_select(&x, &index, axis);
                let index = index.tensor();
                // The same matrix in row-major and in column-major order.
                let turned = x.tensor().transpose(&[1, 0]).unwrap().copy().unwrap();
                for x in [x.tensor(), turned.transpose(&[1, 0]).unwrap()] {
                    check_read(&rows, || x.index_select(&index, axis as i64));
                }
            }
        }
    }
}

also_on_gpu!(
    twins_agree_on_every_way_of_a_scatter,
    twins_agree_on_small_scatters,
    twins_agree_with_one_thread_and_several,
    twins_agree_on_means_of_many,
    twins_agree_on_rows_that_are_selected_to_be_scattered,
    twins_agree_on_uneven_indices,
    twins_agree_on_every_way_along_an_axis,
    an_entry_out_of_range_changes_nothing_along_an_axis,
    twins_agree_on_every_way_to_select_rows,
);
