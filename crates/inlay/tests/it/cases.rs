//! The cases of `testdata/`, run on the Rust library: out of place, in place, and with every input
//! laid out in other ways in memory.

use crate::support::Nd;
use crate::support::case::{self, Case, Expect, load};
use crate::support::run::run;

fn check(op: &str) {
    let cases = load(op);
    assert!(!cases.is_empty(), "{op} has cases");
    for case in &cases {
        for layout in 0..4 {
            check_case(case, layout, false);
            if case.has_twin {
                check_case(case, layout, true);
            }
        }
    }
}

fn check_case(case: &Case, layout: usize, in_place: bool) {
    let name = format!("{} in layout {layout}, in place: {in_place}", case.name);
    let tensors = case.tensors(layout);
    let before: Vec<Nd> = tensors.iter().map(|(_, tensor)| Nd::of_tensor(tensor)).collect();
    let result = run(case, &tensors, in_place);
    match (&case.expect, result) {
        (Expect::Value(expected), Ok(got)) => {
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
    // Nothing is written but the target of a call in place that succeeds.
    let succeeds = matches!(case.expect, Expect::Value(_));
    let written = usize::from(succeeds && (in_place || case.op == "setitem"));
    for ((arg, tensor), before) in tensors.iter().zip(before).skip(written) {
        let (after, before) = (Nd::of_tensor(tensor).cells, before.cells);
        assert_eq!(after, before, "{name}: {arg} has changed");
    }
}

/// The file of a test, one of which is called by a keyword.
fn file(test: &str) -> &str {
    test.trim_start_matches("r#")
}

macro_rules! cases {
    ($($op:ident),* $(,)?) => {
        $(#[test] fn $op() { check(file(stringify!($op))); })*

        /// A file without a test would be cases that nobody runs.
        #[test]
        fn every_file_has_a_test() {
            let mut tested = vec![$(format!("{}.toml", file(stringify!($op)))),*];
            tested.sort_unstable();
            assert_eq!(case::files(), tested);
        }
    };
}
cases!(
    amax,
    amin,
    arithmetic,
    broadcast_to,
    cast,
    comparison,
    concat,
    constructors,
    diagonal,
    diagonal_scatter,
    getitem,
    index_add,
    index_fill,
    index_put,
    index_select,
    masked_fill,
    masked_scatter,
    masked_select,
    mean,
    prod,
    put_along_axis,
    reshape,
    scatter,
    scatter_nd,
    scatter_nd_add,
    select_scatter,
    setitem,
    slice_scatter,
    stack,
    sum,
    take_along_axis,
    transpose,
    tril,
    tril_indices,
    triu,
    triu_indices,
    r#where,
);
