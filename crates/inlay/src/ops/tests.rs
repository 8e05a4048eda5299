//! Tests of inference with unknown sizes: what is wrong in any case is an error, and what may be
//! right passes.

use inlay_core::{DType, Dim, Dims, Layout, Meta, Reduce, Result, Slice};

use super::index_select::{INDEX_SELECT, IndexSelect};
use super::names::Caller;
use super::region::{ReadRegion, Region, WriteRegion};
use super::{Diagonal, PutAlongAxis, Scatter, SelectScatter, Slices};
use crate::op::AnyOp;

/// A size of -1 is unknown.
fn meta(dtype: DType, shape: &[i64]) -> Meta {
    let dim = |&size: &i64| usize::try_from(size).map_or_else(|_| Dim::unknown(), Dim::Known);
    Meta { dtype, shape: shape.iter().map(dim).collect() }
}

fn sizes(shape: &Dims) -> Vec<Option<usize>> {
    shape.iter().map(|dim| dim.known()).collect()
}

fn infer(op: &AnyOp, inputs: &[(DType, &[i64])]) -> Result<Vec<Option<usize>>> {
    let metas: Vec<Meta> = inputs.iter().map(|(dtype, shape)| meta(*dtype, shape)).collect();
    op.check(&metas).map(|checked| sizes(&checked.meta().shape))
}

const F: DType = DType::F32;
const I: DType = DType::I64;

#[test]
fn scatter_believes_unknown_sizes_and_refuses_known_ones() {
    let op = AnyOp::new(Scatter::reduce(Reduce::Mean));
    let shape = infer(&op, &[(F, &[-1, 4]), (I, &[-1]), (F, &[-1, 4])]).expect("may fit");
    assert_eq!(shape, [None, Some(4)]);
    let error = infer(&op, &[(F, &[-1, 4]), (I, &[-1]), (F, &[-1, 5])]).expect_err("5 is not 4");
    assert_eq!(error.to_string(), "scatter: updates has shape [?, 5], expected [?, 4]");
    assert!(infer(&op, &[(F, &[-1]), (I, &[3]), (F, &[2])]).is_err(), "2 rows for 3 entries");
    assert!(infer(&op, &[(DType::Bool, &[-1]), (I, &[3]), (DType::Bool, &[3])]).is_err());
}

#[test]
fn regions_of_unknown_sizes_are_of_unknown_sizes() {
    let rows = AnyOp::new(ReadRegion(Slices::new(0, Slice::new(1, None, 2))));
    assert_eq!(infer(&rows, &[(F, &[-1, 5])]), Ok(vec![None, Some(5)]));
    assert_eq!(infer(&rows, &[(F, &[6, -1])]), Ok(vec![Some(3), None]));
    let diagonal = AnyOp::new(ReadRegion(Diagonal::default()));
    assert_eq!(infer(&diagonal, &[(F, &[3, -1, 2])]), Ok(vec![Some(2), None]));
    let write = AnyOp::new(WriteRegion(SelectScatter { axis: 0, index: 7 }));
    assert!(infer(&write, &[(F, &[-1, 2]), (F, &[2])]).is_ok(), "7 may be in range");
    assert!(infer(&write, &[(F, &[5, 2]), (F, &[2])]).is_err(), "7 is out of range");
}

#[test]
fn an_index_gives_its_size_to_the_result() {
    let op = AnyOp::new(IndexSelect { name: Caller(&INDEX_SELECT), axis: 1 });
    assert_eq!(infer(&op, &[(F, &[-1, 3]), (I, &[-1])]), Ok(vec![None, None]));
    assert_eq!(infer(&op, &[(F, &[-1, 3]), (I, &[9])]), Ok(vec![None, Some(9)]));
    let put = AnyOp::new(PutAlongAxis::assign(0));
    assert!(infer(&put, &[(F, &[-1, 3]), (I, &[2, 1]), (F, &[1])]).is_ok());
    assert!(
        infer(&put, &[(F, &[-1, 3]), (I, &[2, 2]), (F, &[1])]).is_err(),
        "2 is neither 3 nor 1"
    );
}

/// Returns the byte offsets of all elements.
fn offsets(layout: &Layout) -> Vec<usize> {
    let mut all = vec![layout.offset()];
    for (&dim, &stride) in layout.shape().iter().zip(layout.strides()) {
        let steps = |at: usize| (0..dim).map(move |k| at.wrapping_add_signed(k as isize * stride));
        all = all.into_iter().flat_map(steps).collect();
    }
    all
}

#[test]
fn slices_and_their_rest_are_all_there_is() {
    // Small tensors are copied whole, so no other test with small tensors reaches `rest`.
    let x = Layout::contiguous("test", &[5, 7], 4).expect("small");
    let bounds = [None, Some(0), Some(1), Some(3), Some(-1), Some(9)];
    for (start, stop) in bounds.iter().flat_map(|a| bounds.map(|b| (*a, b))) {
        for step in [1, 2, 3, -1, -2, 8] {
            let columns = Slices::new(1, Slice { start, stop, step });
            for at in [columns.clone(), columns.and(0, Slice::new(1, 4, 2))] {
                let (_, axes) =
                    at.shape("test", "x", &Meta::known(F, x.shape())).expect("a region");
                let rest = at.rest(&axes, &x);
                let mut found = offsets(&at.layout(&axes, &x));
                found.extend(rest.iter().flat_map(offsets));
                found.sort_unstable();
                assert_eq!(found, offsets(&x), "{at:?}");
            }
        }
    }
}

#[test]
fn every_name_is_declared_once() {
    let mut tags: Vec<&str> = super::STORED.iter().map(|stored| stored.tag).collect();
    tags.sort_unstable();
    assert!(tags.windows(2).all(|pair| pair[0] != pair[1]), "{tags:?}");
    let names: Vec<&str> = super::operations().iter().map(|operation| operation.name).collect();
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
    for operation in super::operations() {
        let known =
            |name: &&&str| operation.arguments.iter().any(|argument| argument.name == **name);
        let strangers: Vec<_> = operation.gradients.iter().filter(|name| !known(name)).collect();
        assert!(strangers.is_empty(), "{} has no {strangers:?}", operation.name);
    }
}
