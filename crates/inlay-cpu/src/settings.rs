//! Environment variables that set numbers, and the report of values that can't be used.

use std::io::Write;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::memory::CACHE_LIMIT;
use crate::threads::NUM_THREADS;

/// An environment variable that sets a number.
pub(crate) struct Variable {
    name: &'static str,
    /// What the number counts.
    unit: &'static str,
    range: RangeInclusive<usize>,
    default: fn() -> usize,
    /// Whether a bad value was printed, or given to a caller of [`environment_problems`].
    reported: AtomicBool,
}

impl Variable {
    pub(crate) const fn new(
        name: &'static str,
        unit: &'static str,
        range: RangeInclusive<usize>,
        default: fn() -> usize,
    ) -> Self {
        Variable { name, unit, range, default, reported: AtomicBool::new(false) }
    }

    /// Returns the number that the variable sets, or the default. If the value of the variable
    /// can't be used, the first call prints that to stderr.
    pub(crate) fn get(&self) -> usize {
        let value = std::env::var_os(self.name);
        let text = value.as_ref().map(|value| value.to_string_lossy());
        self.parse(text.as_deref()).unwrap_or_else(|problem| {
            if !self.reported.swap(true, Relaxed) {
                // A program without stderr can't be warned.
                let _ = writeln!(std::io::stderr(), "inlay: {problem}");
            }
            (self.default)()
        })
    }

    /// Returns whether the variable sets the number.
    pub(crate) fn is_set(&self) -> bool {
        let value = std::env::var_os(self.name).filter(|value| !value.is_empty());
        value.is_some_and(|value| self.parse(Some(&value.to_string_lossy())).is_ok())
    }

    /// Returns the number that the text stands for, the default if there is no text or an empty
    /// one, or what is wrong with the text.
    fn parse(&self, text: Option<&str>) -> Result<usize, String> {
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
            return Ok((self.default)());
        };
        let number = text.trim().parse().ok().filter(|number| self.range.contains(number));
        number.ok_or_else(|| {
            let Variable { name, unit, range, default, .. } = self;
            let limits = match (range.start(), range.end()) {
                (least, &usize::MAX) => format!("at least {least}"),
                (least, most) => format!("{least} to {most}"),
            };
            format!("{name} is {text:?}, expected {limits} {unit}; using {}", default())
        })
    }

    fn problem(&self) -> Option<String> {
        self.reported.store(true, Relaxed);
        let value = std::env::var_os(self.name)?;
        self.parse(Some(&value.to_string_lossy())).err()
    }
}

/// Returns one message for each environment variable (`INLAY_NUM_THREADS`, `INLAY_CACHE_LIMIT`)
/// whose value can't be used, so that the default is used instead.
///
/// Without this call, a message is printed to stderr when the variable is first needed. After it,
/// the caller reports the messages, and nothing is printed.
pub fn environment_problems() -> Vec<String> {
    [NUM_THREADS.problem(), CACHE_LIMIT.problem()].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_in_the_range_are_used() {
        let threads = Variable::new("INLAY_TEST", "threads", 1..=8, || 5);
        for (text, number) in [(None, 5), (Some(""), 5), (Some("8"), 8), (Some(" 3\n"), 3)] {
            assert_eq!(threads.parse(text), Ok(number));
        }
        for text in ["abc", "0", "-1", "9", "2.5", "99999999999999999999"] {
            let problem = format!("INLAY_TEST is {text:?}, expected 1 to 8 threads; using 5");
            assert_eq!(threads.parse(Some(text)), Err(problem));
        }
        let bytes = Variable::new("INLAY_TEST", "bytes", 0..=usize::MAX, || 7);
        let problem = "INLAY_TEST is \"1G\", expected at least 0 bytes; using 7";
        assert_eq!(bytes.parse(Some("1G")), Err(problem.to_owned()));
        assert_eq!(bytes.parse(Some("0")), Ok(0));
    }
}
