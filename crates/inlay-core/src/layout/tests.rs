//! Tests of layouts.

use super::*;
use crate::Slice;

fn layout(shape: &[usize]) -> Layout {
    Layout::contiguous("test", shape, 4).expect("small")
}

#[test]
fn sizes_that_overflow_are_an_error() {
    assert!(Layout::contiguous("test", &[usize::MAX, 2], 1).is_err());
    assert!(Layout::contiguous("test", &[1 << 62], 4).is_err());
    assert!(Layout::contiguous("test", &[usize::MAX, usize::MAX, 0], 16).is_ok());
}

#[test]
fn reshape_views_where_strides_allow() {
    let x = layout(&[2, 3, 4]);
    assert_eq!(x.reshape(&[6, 4]), Some(layout(&[6, 4])));
    assert_eq!(x.reshape(&[1, 24, 1]).map(|l| l.is_contiguous(4)), Some(true));
    let t = x.transpose(&[1, 0, 2]);
    assert_eq!(t.reshape(&[6, 4]), None);
    assert_eq!(t.reshape(&[3, 2, 2, 2]).map(|l| l.strides().to_vec()), Some(vec![16, 48, 8, 4]));
    let reversed = x.slice(0, Slice::new(None, None, -1).resolve(2).expect("step"));
    assert_eq!(reversed.reshape(&[2, 12]).map(|l| l.strides().to_vec()), Some(vec![-48, 4]));
    assert_eq!(reversed.reshape(&[24]), None);
    assert_eq!(layout(&[]).reshape(&[1, 1]).map(|l| l.numel()), Some(1));
    assert_eq!(layout(&[2, 0]).reshape(&[0, 5]).map(|l| l.numel()), Some(0));
}

#[test]
fn extent_covers_negative_strides() {
    let x = layout(&[4]).slice(0, Slice::new(None, None, -1).resolve(4).expect("step"));
    assert_eq!((x.offset(), x.extent(4)), (12, Some(0..16)));
    let before = Layout::over(&[2], &[-4], 0);
    assert_eq!(before.extent(4), None);
}

#[test]
fn overlap_is_seen() {
    let x = layout(&[3, 4]);
    assert!(!x.overlaps_itself(4));
    assert!(!x.transpose(&[1, 0]).overlaps_itself(4));
    assert!(!x.diagonal(1, 0, 1).overlaps_itself(4));
    assert!(layout(&[1, 4]).broadcast_to(&[3, 4]).is_some_and(|l| l.overlaps_itself(4)));
    let windows = Layout::over(&[3, 2], &[4, 4], 0);
    assert!(windows.overlaps_itself(4));
}

#[test]
fn diagonals_end_at_the_edges() {
    for (rows, cols) in [(0, 3), (1, 1), (3, 5), (5, 3)] {
        for offset in -7..=7 {
            let naive = (0..rows as i64).filter(|r| (0..cols as i64).contains(&(r + offset)));
            assert_eq!(diagonal_len(rows, cols, offset), naive.count());
        }
        assert_eq!(diagonal_len(rows, cols, i64::MIN), 0);
        assert_eq!(diagonal_len(rows, cols, i64::MAX), 0);
    }
}

/// Returns layouts that can be derived from one another by slices, selections, insertions, transposes,
/// broadcasts and reshapes.
fn derived(x: &Layout) -> Vec<Layout> {
    let mut all = vec![x.clone(), x.insert_axis(0), x.insert_axis(x.rank())];
    for axis in 0..x.rank() {
        let size = x.shape()[axis];
        for (start, step, len) in
            [(0, 1, size), (size / 2, 1, size - size / 2), (0, 1, 0), (0, 2, 1)]
        {
            if start + len <= size {
                all.push(x.slice(axis, ResolvedSlice { start, step, len }));
            }
        }
        if size > 0 {
            all.push(x.slice(axis, ResolvedSlice { start: size - 1, step: -1, len: size }));
            all.extend([x.select(axis, size - 1), x.without_axis(axis)]);
        }
    }
    let axes: Vec<usize> = (0..x.rank()).rev().collect();
    all.push(x.transpose(&axes));
    all.extend(x.reshape(&[x.numel()]));
    all.extend(x.broadcast_to(&[&[2, 1], x.shape()].concat()));
    if x.rank() > 1 {
        all.push(x.diagonal(0, 0, 1));
    }
    all
}

/// What a layout remembers is what its strides say, for all shapes of up to three dimensions of sizes
/// 0 to 3, and for layouts derived from them twice.
#[test]
fn a_layout_that_knows_it_is_contiguous_is() {
    let mut known = 0;
    let shapes = (0..4usize).flat_map(|rank| (0..4usize.pow(rank as u32)).map(move |k| (rank, k)));
    for (rank, number) in shapes {
        let shape: Vec<usize> = (0..rank).map(|k| number / 4usize.pow(k as u32) % 4).collect();
        for once in derived(&layout(&shape)) {
            for x in derived(&once) {
                known += usize::from(x.dense > 0);
                for size in [1, 4, 8] {
                    assert_eq!(x.is_contiguous(size), x.follows(size), "{x:?} {size}");
                    assert_eq!(x.extent(size), x.extent_of_any(size), "{x:?} {size}");
                    assert_eq!(x.overlaps_itself(size), x.any_overlap(size), "{x:?} {size}");
                }
                let packed = x.packed("test", 4).expect("small");
                let expected = Layout::contiguous("test", x.shape(), 4).expect("small");
                assert!(packed.is_contiguous(4) && packed.offset() == 0);
                assert!(
                    packed.numel() == 0
                        || (0..x.rank()).all(|k| {
                            x.shape()[k] == 1 || packed.strides()[k] == expected.strides()[k]
                        })
                );
            }
        }
    }
    assert!(known > 1000, "{known} layouts remember something");
}
