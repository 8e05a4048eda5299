//! Every public function, method and type has an example in its documentation.

use std::fs;
use std::path::{Path, PathBuf};

/// Items whose example is elsewhere, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("DLDevice", "a struct of DLPack's C header"),
    ("DLDataType", "a struct of DLPack's C header"),
    ("DLTensor", "a struct of DLPack's C header"),
    ("DLManagedTensor", "a struct of DLPack's C header"),
    ("DLManagedTensorVersioned", "a struct of DLPack's C header"),
    ("DLPackVersion", "a struct of DLPack's C header"),
    ("Form", "sealed: the two structs of a managed tensor"),
];

/// Returns the Rust files below `directory`.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// Returns the name of the item that a line declares, if it is a public function or type.
fn public_item(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.strip_prefix("const ").unwrap_or(rest);
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let kinds = ["fn ", "struct ", "enum ", "trait "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').next()
}

/// Returns the public items of a file that have no example.
fn without_example(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = public_item(line) else { continue };
        // Documentation and attributes stand directly above an item.
        let above = lines[..at].iter().rev().take_while(|line| {
            let line = line.trim();
            !line.is_empty() && !line.ends_with(['}', ';', '{'])
                || line.starts_with("///")
                || line.starts_with("#[")
        });
        let above: Vec<&str> = above.copied().collect();
        let has = |what: &str| above.iter().any(|line| line.contains(what));
        if !has("```") && !has("doc(hidden)") {
            found.push(name);
        }
    }
    found
}

#[test]
fn every_public_item_has_an_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut missing = Vec::new();
    for path in sources(&root) {
        let text = fs::read_to_string(&path).unwrap();
        let file = path.strip_prefix(&root).unwrap().display();
        let excepted = |name: &&str| !EXCEPTIONS.iter().any(|(other, _)| other == name);
        let names = without_example(&text).into_iter().filter(excepted);
        missing.extend(names.map(|name| format!("{file}: {name}")));
    }
    missing.sort();
    assert!(missing.is_empty(), "no example for\n{}", missing.join("\n"));
}

#[test]
fn items_without_an_example_are_found() {
    let text = "\
/// One.
///
/// ```
/// one();
/// ```
#[must_use]
pub fn one() {}

/// Two.
pub const fn two() {}

/// Three.
#[doc(hidden)]
pub struct Three;

/// Four.
pub enum Four {}
pub(crate) fn five() {}
";
    assert_eq!(without_example(text), ["two", "Four"]);
}
