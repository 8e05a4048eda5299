//! Tests that the key of a pipeline has all parts of a kernel.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use smallvec::smallvec;

use super::operand::{Access, Operand};
use super::recipe::{Driver, Recipe, Wgsl, wgsl};
use crate::device::current;

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A kernel that writes a constant to its only operand.
fn recipe() -> Recipe {
    Recipe {
        name: "test",
        texts: smallvec![wgsl!("fn work(i: u32) { set_a(i, K + at_a(i)); }\n")],
        constants: smallvec![("K", 1)],
        operands: smallvec![Operand { name: "a", size: 4, access: Access::Write, windows: 1 }],
        layouts: smallvec![("a", 1)],
        plain_params: 2,
        params: 8,
        driver: Driver::Work,
        partial: false,
        checks: false,
    }
}

/// All recipes that differ from [`recipe`] in one part.
fn others() -> Vec<Recipe> {
    let changes: [&dyn Fn(&mut Recipe); 21] = [
        &|other| other.name = "other",
        &|other| other.texts[0] = wgsl!("fn work(i: u32) { set_a(i, K - at_a(i)); }\n"),
        &|other| other.texts.push(wgsl!("// More.\n")),
        &|other| other.texts.clear(),
        &|other| other.constants[0].0 = "L",
        &|other| other.constants[0].1 = 2,
        &|other| other.constants.push(("L", 1)),
        &|other| other.operands[0].name = "b",
        &|other| other.operands[0].size = 8,
        &|other| other.operands[0].access = Access::Atomic,
        &|other| other.operands[0].windows = 2,
        &|other| other.operands.clear(),
        &|other| other.layouts[0].0 = "b",
        &|other| other.layouts[0].1 = 2,
        &|other| other.layouts.clear(),
        &|other| other.plain_params = 3,
        &|other| other.params = 12,
        &|other| other.driver = Driver::Dense,
        &|other| other.driver = Driver::Placed,
        &|other| other.partial = true,
        &|other| other.checks = true,
    ];
    let changed = changes.iter().map(|change| {
        let mut other = recipe();
        change(&mut other);
        other
    });
    changed.collect()
}

#[test]
fn kernels_that_differ_in_one_part_have_different_keys() {
    let mut all = others();
    all.push(recipe());
    let different: HashSet<&Recipe> = all.iter().collect();
    assert_eq!(different.len(), all.len());
    // Equal recipes have equal hashes. Different recipes may have equal hashes only if they differ
    // in nothing but a name or the number of parameter words.
    assert_eq!(hash(&recipe()), hash(&recipe()));
    let hashes: HashSet<u64> = all.iter().map(hash).collect();
    assert!(hashes.len() + 6 >= all.len(), "{} hashes of {}", hashes.len(), all.len());
}

#[test]
fn texts_are_equal_by_content() {
    let text = String::from("fn work(i: u32) { set_a(i, K + at_a(i)); }\n");
    let copy = Wgsl::new(text.leak());
    assert_eq!((&copy, hash(&copy)), (recipe().texts[0], hash(recipe().texts[0])));
    assert_ne!(Wgsl::new("fn a() {}"), Wgsl::new("fn b() {}"));
}

#[test]
fn the_same_parts_share_a_pipeline_and_others_do_not() {
    let gpu = current().expect("a device");
    let get = |recipe: &Recipe| gpu.pipelines.get(&gpu, recipe);
    let first = get(&recipe()).expect("a valid kernel");
    assert!(Arc::ptr_eq(&first, &get(&recipe()).expect("a valid kernel")));
    let others = others();
    let valid: Vec<_> = others.iter().filter_map(|other| get(other).ok()).collect();
    assert!(valid.len() >= 5, "{} of the others compile", valid.len());
    assert!(valid.iter().all(|other| !Arc::ptr_eq(&first, other)));
    // A source that does not compile is an error every time: the failure is not cached as a
    // pipeline.
    assert!(others.iter().any(|other| get(other).is_err()));
}
