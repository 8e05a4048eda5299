//! The cache of the traces of one function.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use crate::lock::lock;

/// The shape of each tensor among the arguments.
pub type Sizes = Vec<Vec<usize>>;

/// The traces of one function. Arguments with equal keys share a trace.
///
/// The key of [`jit`](crate::jit) is the dtypes and ranks; a language that calls in may add
/// constants. A function is first traced with open sizes. If that fails because it needs a size,
/// the function is traced for each set of sizes.
///
/// ```
/// use inlay::Traces;
///
/// let traces = Traces::<&str, usize>::default();
/// let trace = |_: Option<&inlay::Sizes>| Ok::<_, ()>(7);
/// let made = traces.get_or_trace(&"key", || vec![], trace, |_| false);
/// assert_eq!(made.as_deref(), Ok(&7));
/// ```
pub struct Traces<K, T> {
    /// The oldest entry comes first.
    entries: Mutex<VecDeque<Hashed<K, T>>>,
}

/// An entry with the hash of its key and sizes.
type Hashed<K, T> = (u64, Arc<Entry<K, T>>);

struct Entry<K, T> {
    key: K,
    /// The sizes that the trace is for, or `None` if they are open.
    sizes: Option<Sizes>,
    /// `None` means that the function needs known sizes.
    trace: Option<Arc<T>>,
}

impl<K, T> Traces<K, T> {
    /// The maximum number of entries. If it is exceeded, the oldest is dropped: a key may have
    /// constants, which can have any number of values.
    pub const MOST: usize = 256;

    /// Returns all traces, the oldest first.
    ///
    /// ```
    /// # use inlay::Traces;
    /// assert!(Traces::<u8, u8>::default().all().is_empty());
    /// ```
    pub fn all(&self) -> Vec<Arc<T>> {
        lock(&self.entries).iter().filter_map(|(_, entry)| entry.trace.clone()).collect()
    }
}

impl<K: Hash + Eq + Clone, T> Traces<K, T> {
    /// Returns the trace for a key, if there is one. Calls `sizes` only if the function needs them.
    ///
    /// ```
    /// # use inlay::Traces;
    /// assert!(Traces::<u8, u8>::default().get(&0, || vec![]).is_none());
    /// ```
    pub fn get(&self, key: &K, sizes: impl FnOnce() -> Sizes) -> Option<Arc<T>> {
        let entry = self.find(key, None)?;
        match &entry.trace {
            Some(trace) => Some(Arc::clone(trace)),
            None => self.find(key, Some(&sizes()))?.trace.clone(),
        }
    }

    /// Returns the trace for a key. If there is none, `trace` makes it, first without sizes. If
    /// that fails with an error for which `needs_sizes` is true, `trace` is called with sizes.
    ///
    /// Threads that ask for the same key at the same time may each make a trace.
    ///
    /// ```
    /// # use inlay::Traces;
    /// let traces = Traces::<u8, &str>::default();
    /// // The function needs sizes, so it is traced again with them.
    /// let trace = |sizes: Option<&inlay::Sizes>| sizes.map(|_| "of [2]").ok_or("an open size");
    /// let made = traces.get_or_trace(&0, || vec![vec![2]], trace, |error| *error == "an open size");
    /// assert_eq!(made.as_deref(), Ok(&"of [2]"));
    /// ```
    ///
    /// # Errors
    /// The errors of `trace`.
    pub fn get_or_trace<E>(
        &self,
        key: &K,
        sizes: impl FnOnce() -> Sizes,
        mut trace: impl FnMut(Option<&Sizes>) -> Result<T, E>,
        needs_sizes: impl FnOnce(&E) -> bool,
    ) -> Result<Arc<T>, E> {
        let open = match self.find(key, None) {
            Some(entry) => entry.trace.clone(),
            None => match trace(None) {
                Ok(trace) => self.keep(key, None, Some(Arc::new(trace))),
                Err(error) if needs_sizes(&error) => self.keep(key, None, None),
                Err(error) => return Err(error),
            },
        };
        if let Some(trace) = open {
            return Ok(trace);
        }
        let sizes = sizes();
        if let Some(trace) = self.find(key, Some(&sizes)).and_then(|entry| entry.trace.clone()) {
            return Ok(trace);
        }
        let trace = Arc::new(trace(Some(&sizes))?);
        self.keep(key, Some(sizes), Some(Arc::clone(&trace)));
        Ok(trace)
    }

    fn find(&self, key: &K, sizes: Option<&Sizes>) -> Option<Arc<Entry<K, T>>> {
        let hash = hash_of(key, sizes);
        let entries = lock(&self.entries);
        let alike = entries.iter().filter(|(other, _)| *other == hash);
        let alike: SmallVec<[_; 1]> = alike.map(|(_, entry)| Arc::clone(entry)).collect();
        // Comparing keys may call into another language, which may call this function.
        drop(entries);
        alike.into_iter().find(|entry| entry.key == *key && entry.sizes.as_ref() == sizes)
    }

    fn keep(&self, key: &K, sizes: Option<Sizes>, trace: Option<Arc<T>>) -> Option<Arc<T>> {
        let hash = hash_of(key, sizes.as_ref());
        let entry = Entry { key: key.clone(), sizes, trace: trace.clone() };
        let mut entries = lock(&self.entries);
        let oldest = if entries.len() < Self::MOST { None } else { entries.pop_front() };
        entries.push_back((hash, Arc::new(entry)));
        // Dropping a key may call into another language, too.
        drop(entries);
        drop(oldest);
        trace
    }
}

fn hash_of<K: Hash>(key: &K, sizes: Option<&Sizes>) -> u64 {
    let mut mixed = Mixed(0);
    key.hash(&mut mixed);
    if let Some(sizes) = sizes {
        sizes.hash(&mut mixed);
    }
    mixed.finish()
}

/// A hash that takes 1 ns per word. The default hash takes 20 ns, which matters in calls of a few
/// microseconds. Its protection against chosen keys is not needed here.
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<K, T> Default for Traces<K, T> {
    fn default() -> Self {
        Traces { entries: Mutex::default() }
    }
}

impl<K, T> fmt::Debug for Traces<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} traces", self.all().len())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "what fails here fails the test")]
mod tests {
    use super::*;

    fn sizes(n: usize) -> impl Fn() -> Sizes {
        move || vec![vec![n]]
    }

    fn traced(
        traces: &Traces<u32, usize>,
        key: u32,
        n: usize,
        trace: impl FnMut(Option<&Sizes>) -> Result<usize, &'static str>,
    ) -> Result<usize, &'static str> {
        let trace = traces.get_or_trace(&key, sizes(n), trace, |error| *error == "needs sizes");
        trace.map(|trace| *trace)
    }

    #[test]
    fn a_trace_with_open_sizes_serves_all_sizes() {
        let traces = Traces::default();
        assert_eq!(traced(&traces, 1, 5, |_| Ok(7)), Ok(7));
        assert_eq!(traced(&traces, 1, 6, |_| Err("traced again")), Ok(7));
        assert_eq!(traces.get(&1, sizes(8)).as_deref(), Some(&7));
        assert_eq!(traces.get(&2, sizes(8)), None);
    }

    #[test]
    fn a_function_that_needs_sizes_is_traced_for_each_set_of_them() {
        let traces = Traces::default();
        let mut calls = 0;
        for n in [5, 6, 5] {
            let trace = |sizes: Option<&Sizes>| {
                calls += 1;
                sizes.map(|sizes| sizes[0][0]).ok_or("needs sizes")
            };
            assert_eq!(traced(&traces, 1, n, trace), Ok(n));
        }
        // Once with open sizes, and once for each of two.
        assert_eq!(calls, 3);
        assert_eq!(traces.get(&1, sizes(6)).as_deref(), Some(&6));
        assert_eq!(traces.get(&1, sizes(7)), None);
        assert_eq!(traces.all().len(), 2);
    }

    #[test]
    fn errors_are_not_kept() {
        let traces = Traces::default();
        assert_eq!(traced(&traces, 1, 5, |_| Err("other")), Err("other"));
        assert_eq!(traced(&traces, 1, 5, |_| Err("needs sizes")), Err("needs sizes"));
        assert_eq!(traced(&traces, 1, 5, |_| Ok(7)), Ok(7));
    }

    #[test]
    fn the_oldest_trace_is_dropped() {
        let traces = Traces::<u32, usize>::default();
        let most = Traces::<u32, usize>::MOST;
        for key in 0..=most as u32 {
            traced(&traces, key, 0, |_| Ok(key as usize)).unwrap();
        }
        assert_eq!(traces.all().len(), most);
        assert_eq!(traces.get(&0, sizes(0)), None);
        assert_eq!(traces.get(&1, sizes(0)).as_deref(), Some(&1));
    }
}
