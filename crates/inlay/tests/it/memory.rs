//! Tests of writes and memory: a failed write changes nothing, overlapping inputs act like copies,
//! and writes of several threads don't interleave.

use inlay::{
    DType, DiagonalScatter, Error, Item, PutAlongAxis, Reduce, Result, Scatter, SelectScatter,
    Slice, SliceScatter, Tensor,
};

use crate::support::device::also_on_gpu;
use crate::support::{Nd, Rng};

type Write = fn(&Tensor, &Tensor) -> Result<()>;

fn ints(values: &[i64]) -> Tensor {
    Tensor::from_slice(values, &[values.len()]).unwrap()
}

fn all_true(shape: &[usize]) -> Tensor {
    Tensor::full(shape, true, DType::Bool).unwrap()
}

/// In-place operations that write a source of the target's shape into a matrix.
const WRITES: [(&str, Write); 9] = [
    ("scatter", |x, y| {
        let back: Vec<i64> = (0..x.shape()[0] as i64).rev().collect();
        x.scatter_(&ints(&back), y, Scatter::overwrite()).map(drop)
    }),
    ("scatter sum", |x, y| {
        let first = vec![0; x.shape()[0]];
        let how = Scatter::reduce(Reduce::Sum).include_self(true);
        x.scatter_(&ints(&first), y, how).map(drop)
    }),
    ("slice_scatter", |x, y| {
        let all = SliceScatter::new(0, Slice::new(None, None, -1));
        x.slice_scatter_(y, &all).map(drop)
    }),
    ("diagonal_scatter", |x, y| {
        let y = y.diagonal(DiagonalScatter::default())?;
        x.diagonal_scatter_(&y, DiagonalScatter::default()).map(drop)
    }),
    ("masked_scatter", |x, y| x.masked_scatter_(&all_true(x.shape()), y).map(drop)),
    ("put_along_axis", |x, y| {
        let index = Tensor::zeros(x.shape(), DType::I32)?;
        x.put_along_axis_(&index, y, PutAlongAxis::reduce(1, Reduce::Sum)).map(drop)
    }),
    ("select_scatter", |x, y| {
        let row = y.index(&[Item::At(0)])?;
        x.select_scatter_(&row, SelectScatter { axis: 0, index: -1 }).map(drop)
    }),
    ("masked_fill", |x, y| {
        let value = y.index(&[Item::At(0), Item::At(0)])?;
        x.masked_fill_(&all_true(x.shape()), &value).map(drop)
    }),
    ("setitem", |x, y| x.assign(&[Item::Slice(Slice::new(None, None, -1))], y)),
];

/// Pairs of a target and a source of the same shape that are overlapping parts of a matrix.
fn overlaps(whole: &Tensor) -> Vec<(Tensor, Tensor)> {
    let rows = |slice| whole.slice(&SliceScatter::new(0, slice)).unwrap();
    let cols = |slice| whole.slice(&SliceScatter::new(1, slice)).unwrap();
    vec![
        (rows(Slice::new(1, None, 1)), rows(Slice::new(None, -1, 1))),
        (rows(Slice::new(None, -1, 1)), rows(Slice::new(1, None, 1))),
        (rows(Slice::ALL), rows(Slice::new(None, None, -1))),
        (cols(Slice::new(1, None, 2)), cols(Slice::new(None, -1, 2))),
        (whole.clone(), whole.transpose(&[1, 0]).unwrap()),
        (whole.clone(), whole.clone()),
    ]
}

#[test]
fn overlapping_sources_are_read_as_they_were() {
    let mut rng = Rng(3);
    for (name, write) in WRITES {
        for dtype in [DType::I8, DType::F32, DType::C128] {
            let start = Nd::random(&mut rng, dtype, &[6, 6]);
            for pair in 0..overlaps(&start.tensor()).len() {
                let apart = start.tensor();
                let (target, source) = overlaps(&apart).swap_remove(pair);
                write(&target, &source.copy().unwrap()).unwrap();
                let shared = start.tensor();
                let (target, source) = overlaps(&shared).swap_remove(pair);
                write(&target, &source).unwrap();
                let (shared, apart) = (Nd::of_tensor(&shared), Nd::of_tensor(&apart));
                assert_eq!(shared.cells, apart.cells, "{name} of {dtype}, pair {pair}");
            }
        }
    }
}

#[test]
fn an_index_or_mask_in_the_target_is_read_as_it_was() {
    let x = ints(&[2, 0, 1, 0]);
    x.scatter_(&x, &ints(&[9, 8, 7, 6]), Scatter::overwrite()).unwrap();
    assert_eq!(x.to_vec::<i64>().unwrap(), [6, 7, 9, 0]);
    let mask = Tensor::from_slice(&[true, false, true], &[3]).unwrap();
    let source = Tensor::from_slice(&[false, true], &[2]).unwrap();
    mask.masked_scatter_(&mask, &source).unwrap();
    assert_eq!(mask.to_vec::<bool>().unwrap(), [false, false, true]);
}

#[test]
fn targets_that_overlap_themselves_are_refused() {
    for (name, write) in WRITES {
        let row = ints(&[1, 2, 3]);
        let target = row.broadcast_to(&[3, 3]).unwrap();
        let error = write(&target, &Tensor::zeros(&[3, 3], DType::I64).unwrap()).unwrap_err();
        assert!(matches!(error, Error::SelfOverlap { .. }), "{name}: {error}");
        assert_eq!(row.to_vec::<i64>().unwrap(), [1, 2, 3], "{name}");
    }
}

#[test]
fn read_only_targets_are_refused() {
    static BYTES: [u8; 9] = [7; 9];
    for (name, write) in WRITES {
        let layout = inlay::Layout::contiguous("test", &[3, 3], 1).unwrap();
        let ptr = std::ptr::NonNull::from(&BYTES).cast();
        // SAFETY: the bytes are static and initialized. The tensor is read-only, so nothing writes
        // them.
        let target =
            unsafe { Tensor::from_foreign(ptr, 9, layout, DType::U8, false, Box::new(())) }
                .unwrap();
        let error = write(&target, &Tensor::zeros(&[3, 3], DType::U8).unwrap()).unwrap_err();
        assert!(matches!(error, Error::ReadOnly { .. }), "{name}: {error}");
    }
}

#[test]
fn results_share_no_memory_with_inputs() {
    let x = Tensor::zeros(&[2, 2], DType::F32).unwrap();
    let none = Tensor::zeros(&[0], DType::I64).unwrap();
    let empty = Tensor::zeros(&[0, 2], DType::F32).unwrap();
    let results = [
        x.scatter(&none, &empty, Scatter::overwrite()),
        x.slice_scatter(&empty, &SliceScatter::new(0, Slice::new(0, 0, 1))),
        x.slice_scatter(&x, &SliceScatter::default()),
        x.masked_scatter(&all_true(&[2, 2]), &x),
        x.cast(DType::F32),
        x.copy(),
    ];
    for result in results {
        assert_ne!(result.unwrap().data_ptr(), x.data_ptr());
    }
}

#[test]
fn writes_from_many_threads_come_one_at_a_time() {
    let x = Tensor::zeros(&[1000], DType::I64).unwrap();
    let index = ints(&(0..1000).collect::<Vec<_>>());
    let ones = Tensor::ones(&[1000], DType::I64).unwrap();
    let how = Scatter::reduce(Reduce::Sum).include_self(true);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    x.scatter_(&index, &ones, how).unwrap();
                    let seen = x.to_vec::<i64>().unwrap();
                    assert!(
                        seen.iter().all(|value| *value == seen[0]),
                        "a partial write is visible"
                    );
                }
            });
        }
    });
    assert_eq!(x.to_vec::<i64>().unwrap(), [200; 1000]);
}

#[test]
fn two_tensors_written_from_each_other_do_not_wait_for_ever() {
    let (a, b) = (ints(&[1; 64]), ints(&[2; 64]));
    let all = SliceScatter::default();
    std::thread::scope(|scope| {
        for (x, y) in [(&a, &b), (&b, &a), (&a, &b), (&b, &a)] {
            scope.spawn(|| (0..500).for_each(|_| drop(x.slice_scatter_(y, &all).unwrap().clone())));
        }
    });
}

#[test]
fn sizes_beyond_memory_are_errors() {
    let huge = [1usize << 40, 1 << 30];
    assert!(Tensor::zeros(&huge, DType::F64).is_err());
    assert!(Tensor::zeros([1usize << 45], DType::F64).is_err());
    let wide = Tensor::zeros(&[1], DType::F32).unwrap().broadcast_to(&huge).unwrap();
    assert!(wide.copy().is_err());
    assert!(wide.add(&wide).is_err());
    assert!(Tensor::tril_indices(1i64 << 40, 1i64 << 40, 0, DType::I64).is_err());
    assert!(Tensor::arange(0, i64::MAX, 1, DType::I64).is_err());
    // If one size is zero, the others may have any value.
    let none = Tensor::zeros(&[usize::MAX, 0, usize::MAX], DType::C128).unwrap();
    assert_eq!(none.copy().unwrap().numel(), 0);
}

also_on_gpu!(
    overlapping_sources_are_read_as_they_were,
    an_index_or_mask_in_the_target_is_read_as_it_was,
    targets_that_overlap_themselves_are_refused,
    writes_from_many_threads_come_one_at_a_time,
    two_tensors_written_from_each_other_do_not_wait_for_ever,
    sizes_beyond_memory_are_errors,
);
