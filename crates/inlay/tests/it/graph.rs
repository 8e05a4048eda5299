//! Tests of programs: dropped, merged and constant nodes, in-place writes, and files.

use std::error::Error as _;
use std::io;

use inlay::{
    DType, DiagonalScatter, Error, ErrorKind, Item, Program, Reduce, Scatter, Slice, SliceScatter,
    Tensor, named,
};

use crate::support::{Rng, device::also_on_gpu};

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, &[values.len()]).unwrap()
}

fn first(count: i64) -> SliceScatter {
    SliceScatter::new(0, Slice::new(0, count, 1))
}

#[test]
fn a_chain_of_writes_copies_once_and_feeds_stay() {
    let program = Program::new();
    let x = program.data("x", &[None, None], DType::F32).unwrap();
    let u = program.data("u", &[None, None], DType::F32).unwrap();
    let index = Tensor::from_slice(&[1i64, -1], &[2]).unwrap();
    let chain = |x: &Tensor, u: &Tensor| {
        let diagonal = x.diagonal(DiagonalScatter::default())?;
        x.slice_scatter(u, &first(2))?
            .diagonal_scatter(&diagonal, DiagonalScatter::default())?
            .scatter(&index, u, Scatter::reduce(Reduce::Mean))?
            .masked_fill(&Tensor::from_slice(&[true, false, false], &[3])?, 0.5)
    };
    let y = chain(&x, &u).unwrap();
    let plan = program.plan(&[&y], false).unwrap();
    assert_eq!(plan.copies_saved(), 3);
    let mut rng = Rng(3);
    for rows in [3, 4] {
        let values: Vec<f32> = (0..rows * 3).map(|_| rng.below(100) as f32).collect();
        let x = Tensor::from_slice(&values, &[rows, 3]).unwrap();
        let u = Tensor::from_slice(&values[..6], &[2, 3]).unwrap();
        let got = plan.run(&[("x", &x), ("u", &u)]).unwrap();
        let want = chain(&x, &u).unwrap();
        assert_eq!(got[0].to_vec::<f32>(), want.to_vec::<f32>());
        assert_eq!(x.to_vec::<f32>().unwrap(), values);
    }
    assert_eq!(plan.peak_memory(), Some(4 * 3 * 4));
}

#[test]
fn values_that_are_still_read_are_not_written() {
    let program = Program::new();
    let x = program.data("x", &[Some(4)], DType::F32).unwrap();
    let zeros = floats(&[0.0, 0.0]);
    let base = x.add(&x).unwrap();
    let view = base.index(&[Item::Slice(Slice::new(2, None, 1))]).unwrap();
    let written = base.slice_scatter(&zeros, &first(2)).unwrap();
    let again = written.slice_scatter(&view, &first(2)).unwrap();
    // `view` reads `base` after the first write, so the first write copies. The second does not.
    let plan = program.plan(&[&again], false).unwrap();
    assert_eq!(plan.copies_saved(), 1);
    let got = plan.run(&[("x", &floats(&[1.0, 2.0, 3.0, 4.0]))]).unwrap();
    assert_eq!(got[0].to_vec::<f32>().unwrap(), [6.0, 8.0, 6.0, 8.0]);
    // Fetching a value counts as reading it.
    let plan = program.plan(&[&written, &again], false).unwrap();
    assert_eq!(plan.copies_saved(), 0);
    let got = plan.run(&[("x", &floats(&[1.0, 2.0, 3.0, 4.0]))]).unwrap();
    assert_eq!(got[0].to_vec::<f32>().unwrap(), [0.0, 0.0, 6.0, 8.0]);
    assert_eq!(got[1].to_vec::<f32>().unwrap(), [6.0, 8.0, 6.0, 8.0]);
}

#[test]
fn equal_nodes_of_open_sizes_become_one() {
    let program = Program::new();
    let x = program.data("x", &[None], DType::F32).unwrap();
    let mask = program.data("mask", &[None], DType::Bool).unwrap();
    let one = || x.masked_select(&mask).unwrap().sum(None, true).unwrap();
    let both = one().add(&one()).unwrap();
    let text = program.plan(&[&both], false).unwrap().to_string();
    assert_eq!(text.matches("masked_select(").count(), 1, "{text}");
    assert!(text.contains("2 equal to others"), "{text}");
    let mask = Tensor::from_slice(&[true, false, true], &[3]).unwrap();
    let feed = [("x", &floats(&[1.0, 2.0, 3.0])), ("mask", &mask)];
    assert_eq!(program.run(&feed, &[&both]).unwrap()[0].to_vec::<f32>().unwrap(), [8.0]);
}

#[test]
fn sizes_that_come_with_values_are_checked_then() {
    let program = Program::new();
    let x = program.data("x", &[None], DType::F32).unwrap();
    let mask = program.data("mask", &[None], DType::Bool).unwrap();
    let sum = named("pairs", || x.masked_select(&mask)?.add(&x)).unwrap();
    let run = |x: &[f32], mask: &[bool]| {
        let mask = Tensor::from_slice(mask, &[mask.len()]).unwrap();
        program.run(&[("x", &floats(x)), ("mask", &mask)], &[&sum])
    };
    let fits = run(&[1.0, 2.0], &[true, true]).unwrap();
    assert_eq!(fits[0].to_vec::<f32>().unwrap(), [2.0, 4.0]);
    let text = run(&[1.0, 2.0, 3.0], &[true, true, false]).unwrap_err().to_string();
    assert_eq!(text, "add: shapes [2] and [3] do not broadcast together (at 'pairs', graph.rs:92)");
    let text = run(&[1.0, 2.0, 3.0], &[true, true]).unwrap_err().to_string();
    assert!(text.starts_with("masked_select: mask has shape [2]"), "{text}");
}

#[test]
fn donated_memory_is_written_unless_two_feeds_share_it() {
    let program = Program::new();
    let x = program.data("x", &[None], DType::F32).unwrap();
    let u = program.data("u", &[None], DType::F32).unwrap();
    let y = x.slice_scatter(&u, &first(2)).unwrap();
    let (array, update) = (floats(&[1.0, 2.0, 3.0]), floats(&[7.0, 8.0]));
    let got = program.run_donated(&[("x", &array), ("u", &update)], &[&y]).unwrap();
    assert_eq!(got[0].data_ptr(), array.data_ptr());
    assert_eq!(array.to_vec::<f32>().unwrap(), [7.0, 8.0, 3.0]);
    let part = array.slice(&SliceScatter::new(0, Slice::new(1, None, 1))).unwrap();
    let got = program.run_donated(&[("x", &array), ("u", &part)], &[&y]).unwrap();
    assert_eq!(got[0].to_vec::<f32>().unwrap(), [8.0, 3.0, 3.0]);
    assert_eq!(array.to_vec::<f32>().unwrap(), [7.0, 8.0, 3.0]);
}

#[test]
fn a_long_program_is_built_planned_and_dropped() {
    let program = Program::new();
    let x = program.data("x", &[None], DType::I64).unwrap();
    let mut y = x.clone();
    for k in 0..10_000 {
        y = y.index_fill(&Tensor::from_slice(&[k % 3], &[1]).unwrap(), 0, k).unwrap();
    }
    let plan = program.plan(&[&y], false).unwrap();
    assert_eq!(plan.copies_saved(), 9_999);
    let got = plan.run(&[("x", &Tensor::zeros(&[3], DType::I64).unwrap())]).unwrap();
    assert_eq!(got[0].to_vec::<i64>().unwrap(), [9_999, 9_997, 9_998]);
}

#[test]
fn the_error_of_a_node_is_the_source_of_the_error_of_the_run() {
    let program = Program::new();
    let x = program.data("x", &[None], DType::F32).unwrap();
    let index = program.data("index", &[None], DType::I64).unwrap();
    let y = x.scatter(&index, &x, Scatter::overwrite()).unwrap();
    let far = Tensor::from_slice(&[9i64], &[1]).unwrap();
    let error = program.run(&[("x", &floats(&[1.0])), ("index", &far)], &[&y]).unwrap_err();
    let source = error.source().and_then(|source| source.downcast_ref::<Error>()).unwrap();
    assert!(matches!(source, Error::Index { value: 9, size: 1, .. }), "{source:?}");
    assert_eq!((error.op(), error.argument()), (Some("scatter"), Some("index")));
    let text = program.run(&[("x", &far), ("index", &far)], &[&y]).unwrap_err().to_string();
    assert_eq!(text, "run: feed \"x\" has dtype int64, expected float32");
}

#[test]
fn errors_of_the_file_system_are_kept() {
    let path = std::env::temp_dir().join("inlay-no-such-folder").join("a.inlay");
    let error = Program::load(&path).unwrap_err();
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>()).unwrap();
    assert_eq!(source.kind(), io::ErrorKind::NotFound);
    assert_eq!((error.op(), error.kind()), (Some("load"), ErrorKind::Os));
    let program = Program::new();
    let x = program.data("x", &[None], DType::F32).unwrap();
    program.set_outputs(&[("x", &x)]).unwrap();
    let error = program.save(&path).unwrap_err();
    assert!(matches!(&error, Error::Io { op: "save", path: at, .. } if *at == path), "{error:?}");
    assert!(error.to_string().contains("inlay-no-such-folder"), "{error}");
}

#[test]
fn a_closed_program_takes_no_calls() {
    let program = Program::new();
    let x = program.data("x", &[None], DType::F32).unwrap();
    let y = x.add(&x).unwrap();
    program.close();
    let error = y.add(&x).unwrap_err();
    assert!(error.to_string().contains("a traced function that has returned"), "{error}");
    let results = program.run(&[("x", &floats(&[1.0]))], &[&y]).unwrap();
    assert_eq!(results[0].to_vec::<f32>().unwrap(), [2.0]);
}

also_on_gpu!(
    a_chain_of_writes_copies_once_and_feeds_stay,
    values_that_are_still_read_are_not_written,
    equal_nodes_of_open_sizes_become_one,
    sizes_that_come_with_values_are_checked_then,
    donated_memory_is_written_unless_two_feeds_share_it,
    a_long_program_is_built_planned_and_dropped,
);
