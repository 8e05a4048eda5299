//! Where a node comes from: the name of its call, and the line of the user's code.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::sync::{Arc, OnceLock};

use inlay_core::Error;

thread_local! {
    static NAME: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
    /// The composite operation that is running.
    static WITHIN: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// Whether nodes get no line.
    static WITHOUT_LINES: Cell<bool> = const { Cell::new(false) };
}

static SITE: OnceLock<fn() -> Option<String>> = OnceLock::new();

/// Calls `work`. Nodes that it adds to programs get this name.
///
/// ```
/// # use inlay::{DType, Program, named};
/// let program = Program::new();
/// let x = program.data("x", &[Some(2)], DType::F32)?;
/// let y = named("twice", || x.add(&x))?;
/// assert!(program.to_string().contains("'twice'"));
/// # Ok::<(), inlay::Error>(())
/// ```
pub fn named<R>(name: &str, work: impl FnOnce() -> R) -> R {
    struct Restore(Option<Arc<str>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            NAME.with(|now| *now.borrow_mut() = self.0.take());
        }
    }
    let _restore = Restore(NAME.with(|now| now.replace(Some(name.into()))));
    work()
}

/// Calls `work`, which runs the operations that `op` is composed of. Their nodes get the name `op`
/// unless they have another.
pub(crate) fn within<R>(op: &'static str, work: impl FnOnce() -> R) -> R {
    struct Restore(Option<&'static str>);
    impl Drop for Restore {
        fn drop(&mut self) {
            WITHIN.set(self.0);
        }
    }
    let _restore = Restore(WITHIN.replace(Some(op)));
    work()
}

/// Calls `work`. Nodes that it adds to programs get no line.
///
/// Functions are traced where other libraries call them, even on threads that must not wait for an
/// interpreter, as finding the line may do.
pub(crate) fn without_lines<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            WITHOUT_LINES.set(self.0);
        }
    }
    let _restore = Restore(WITHOUT_LINES.replace(true));
    work()
}

/// Sets the function that finds the line of the user's code, for languages that call into this
/// library. Only the first call has an effect.
///
/// ```
/// inlay::set_site(|| Some("script.py:7".into()));
/// ```
pub fn set_site(find: fn() -> Option<String>) {
    SITE.get_or_init(|| find);
}

/// The folder of this library's own code.
fn own_folder() -> &'static str {
    file!().trim_end_matches("site.rs")
}

/// The name and the line of a call.
#[derive(Clone, Default, Debug)]
pub(crate) struct Site {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) line: Option<Arc<str>>,
}

impl Site {
    /// The site of the current call. `caller` gives the line if it is not in this library.
    pub(crate) fn now(caller: &Location<'_>) -> Self {
        let name = NAME.with(|name| name.borrow().clone());
        let name = name.or_else(|| WITHIN.get().map(Arc::from));
        let line = match SITE.get() {
            _ if WITHOUT_LINES.get() => None,
            Some(find) => find(),
            None if caller.file().starts_with(own_folder()) => None,
            None => {
                let file = caller.file().rsplit(['/', '\\']).next().unwrap_or_default();
                Some(format!("{file}:{}", caller.line()))
            }
        };
        Site { name, line: line.map(Into::into) }
    }

    /// Adds the name and the line, if known, to the error of a node.
    pub(crate) fn locate(&self, error: Error) -> Error {
        match self.text() {
            Some(node) => Error::AtNode { node, error: error.into() },
            None => error,
        }
    }

    pub(crate) fn text(&self) -> Option<String> {
        let name = self.name.as_ref().map(|name| format!("'{name}'"));
        match (name, &self.line) {
            (Some(name), Some(line)) => Some(format!("{name}, {line}")),
            (Some(name), None) => Some(name),
            (None, line) => line.as_ref().map(|line| line.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A caller such as Python may catch the panic and go on.
    #[test]
    fn a_panic_restores_the_name_and_the_operation() {
        let panicked = std::panic::catch_unwind(|| {
            named("inner", || within("scatter", || panic!("on purpose")));
        });
        assert!(panicked.is_err());
        assert!(Site::now(Location::caller()).name.is_none());
        let site = within("gather", || Site::now(Location::caller()));
        assert_eq!(site.name.as_deref(), Some("gather"));
    }

    #[test]
    fn lines_can_be_left_out() {
        let line = || Site { name: None, ..Site::now(Location::caller()) }.line;
        let before = line();
        assert_eq!(without_lines(line), None);
        assert_eq!(line(), before);
    }
}
