//! Runs the cases of `testdata/` with the Rust library: out of place, in place, and with inputs in
//! several memory layouts.

use inlay::{Program, Tensor, current_device};

use crate::support::Nd;
use crate::support::case::{self, Case, Expect, load};
use crate::support::device::also_on_gpu;
use crate::support::run::run;

/// Checks the files whose number modulo [`SHARDS`] is `rest`.
fn check_files(rest: usize) {
    let files = case::files();
    assert!(files.len() > SHARDS, "too few case files were found");
    files.iter().skip(rest).step_by(SHARDS).for_each(|file| check(file));
}

fn check(file: &str) {
    let cases = load(file);
    assert!(!cases.is_empty(), "{file} has cases");
    for case in &cases {
        for layout in 0..4 {
            check_case(case, layout, false);
            if case.has_twin {
                check_case(case, layout, true);
            }
        }
        for open in [false, true] {
            check_static(case, open, false);
            if case.has_twin {
                check_static(case, open, true);
            }
        }
    }
}

fn check_case(case: &Case, layout: usize, in_place: bool) {
    let name = format!("{} in layout {layout}, in place: {in_place}", case.name);
    let tensors = case.tensors(layout);
    let before: Vec<Nd> = tensors.iter().map(|(_, tensor)| Nd::of_tensor(tensor)).collect();
    let result = run(case, &tensors, in_place);
    match (case.expect(in_place), result) {
        (Expect::Value(expected), Ok(got)) => {
            assert_eq!(got.device(), current_device(), "{name}");
            assert_eq!(
                case::canonical(Nd::of_tensor(&got)),
                case::canonical(expected.clone()),
                "{name}"
            );
        }
        (Expect::Error { kind, contains }, Err(error)) => {
            let text = error.to_string();
            assert_eq!(format!("{:?}Error", error.kind()), *kind, "{name}: {text}");
            for word in contains {
                assert!(text.contains(word.as_str()), "{name}: {text:?} lacks {word:?}");
            }
        }
        (Expect::Error { .. }, Ok(got)) => panic!("{name}: no error but {got:?}"),
        (Expect::Value(_), Err(error)) => panic!("{name}: {error}"),
    }
    // Only the target of a successful in-place call may change.
    let succeeds = matches!(case.expect(in_place), Expect::Value(_));
    let written = usize::from(succeeds && (in_place || case.op == "setitem"));
    for ((arg, tensor), before) in tensors.iter().zip(before).skip(written) {
        let (after, before) = (Nd::of_tensor(tensor).cells, before.cells);
        assert_eq!(after, before, "{name}: {arg} has changed");
    }
}

/// Runs the case as a program with known or unknown (`open`) sizes. It must give the same result or
/// the same error, either when the program is built or when it runs.
fn check_static(case: &Case, open: bool, in_place: bool) {
    let name = format!("{} as a program, open sizes: {open}, in place: {in_place}", case.name);
    let tensors = case.tensors(0);
    let build = || {
        let program = Program::new();
        let mut symbols = Vec::new();
        for (arg, tensor) in &tensors {
            let known = !open || case.needs_sizes(arg);
            let size = |size: &usize| known.then_some(*size);
            let shape: Vec<_> = tensor.shape().iter().map(size).collect();
            symbols.push((arg.clone(), program.data(arg, &shape, tensor.dtype())?));
        }
        let result = run(case, &symbols, in_place)?;
        let feed: Vec<_> = tensors.iter().map(|(arg, tensor)| (arg.as_str(), tensor)).collect();
        Ok(program.run(&feed, &[&result])?.remove(0))
    };
    let result: inlay::Result<Tensor> = build();
    match (case.expect(in_place), result) {
        (Expect::Value(expected), Ok(got)) => {
            assert_eq!(got.device(), current_device(), "{name}");
            let (got, expected) = (Nd::of_tensor(&got), expected.clone());
            assert_eq!(case::canonical(got), case::canonical(expected), "{name}");
        }
        (Expect::Error { kind, contains }, Err(error)) => {
            let text = error.to_string();
            assert_eq!(format!("{:?}Error", error.kind()), *kind, "{name}: {text}");
            for word in contains {
                // At build time a message has `?` for an unknown size, so numbers may be missing.
                let told = !text.contains('?') || !word.contains(|c: char| c.is_ascii_digit());
                assert!(!told || text.contains(word.as_str()), "{name}: {text:?} lacks {word:?}");
            }
        }
        (Expect::Error { .. }, Ok(got)) => panic!("{name}: no error but {got:?}"),
        (Expect::Value(_), Err(error)) => panic!("{name}: {error}"),
    }
}

/// The number of tests into which the case files are divided, so that they run in parallel.
const SHARDS: usize = 8;

macro_rules! shards {
    ($($test:ident $rest:literal),*) => {
        $(#[test] fn $test() { check_files($rest); })*

        also_on_gpu!($($test),*);
    };
}
shards!(
    files_0 0, files_1 1, files_2 2, files_3 3, files_4 4, files_5 5, files_6 6, files_7 7
);
