//! Protection of the arguments of a traced function that runs itself: its writes in place don't
//! change them, as those of a program don't.

use std::collections::BTreeSet;
use std::sync::Mutex;

use inlay_core::Result;

use crate::Tensor;
use crate::guard::Guard;
use crate::lock::lock;

/// The arguments that a function writes in place, by position. They are found when it runs. For
/// bindings.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Written(Mutex<BTreeSet<usize>>);

impl Written {
    /// Calls `function` with handles to `args` that it may write.
    ///
    /// The function first gets the tensors themselves, which are read-only for it. If it wants to
    /// write some of them, it is called again with copies of these, and its first result is
    /// dropped, unless `is_final` is true for it. Later calls copy them at once.
    ///
    /// # Errors
    /// When there is not enough memory for a copy.
    #[doc(hidden)]
    pub fn protect<R>(
        &self,
        args: &[&Tensor],
        mut function: impl FnMut(Vec<Tensor>) -> R,
        is_final: impl Fn(&R) -> bool,
    ) -> Result<R> {
        loop {
            let known = lock(&self.0).clone();
            let is_safe = |at: usize| args[at].is_symbolic() || known.contains(&at);
            let handle = |at| if is_safe(at) { args[at].separate() } else { Ok(args[at].clone()) };
            let handles = (0..args.len()).map(handle).collect::<Result<_>>()?;
            let buffer = |at: usize| &args[at].array().buffer;
            let bare: Vec<usize> = (0..args.len()).filter(|at| !is_safe(*at)).collect();
            let guard = Guard::new(bare.iter().map(|at| buffer(*at).clone()));
            let result = function(handles);
            let found: Vec<usize> =
                bare.into_iter().filter(|at| guard.was_wanted(buffer(*at))).collect();
            if found.is_empty() || is_final(&result) {
                return Ok(result);
            }
            // The set grows with each repetition, so there are at most as many as arguments.
            lock(&self.0).extend(found);
        }
    }
}

impl Tensor {
    /// Returns a tensor with the same elements and the same gradient, which can be written without
    /// a change of `self`. It is a copy. For a symbolic tensor it is a handle to the same value.
    ///
    /// # Errors
    /// When there is not enough memory. A view in a program whose tensor was written since.
    #[doc(hidden)]
    #[track_caller]
    pub fn separate(&self) -> Result<Tensor> {
        match self.symbolic() {
            Some(symbolic) => {
                // The new handle is no view, so it would not notice such a write.
                symbolic.id("copy")?;
                Ok(self.again(self.history_again()))
            }
            None if self.is_plain() => self.copy().map(Tensor::plain),
            None => self.copy(),
        }
    }

    /// Makes each of `results` share no memory with `args` and with the results before it.
    ///
    /// # Errors
    /// The errors of [`Tensor::separate`].
    #[doc(hidden)]
    #[track_caller]
    pub fn separate_all(results: &mut [Tensor], args: &[&Tensor]) -> Result<()> {
        for at in 0..results.len() {
            let (before, rest) = results.split_at_mut(at);
            let others = args.iter().copied().chain(before.iter());
            let result = &mut rest[0];
            if result.is_symbolic() || others.into_iter().any(|other| result.overlaps(other)) {
                *result = result.separate()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "what fails here fails the test")]
mod tests {
    use super::*;
    use crate::Scatter;

    fn tensor(values: &[i32]) -> Tensor {
        Tensor::from_slice(values, &[values.len()]).unwrap()
    }

    /// Writes 9 to place 0.
    fn write(x: &Tensor) -> Result<()> {
        let index = Tensor::from_slice(&[0i64], &[1])?;
        x.scatter_(&index, &tensor(&[9]), Scatter::overwrite()).map(drop)
    }

    #[test]
    fn only_written_arguments_are_copied() {
        let (x, y) = (tensor(&[1, 2]), tensor(&[3, 4]));
        let written = Written::default();
        let mut calls = 0;
        for _ in 0..2 {
            let call = |args: Vec<Tensor>| {
                calls += 1;
                write(&args[1]).map(|()| args)
            };
            let args = written.protect(&[&x, &y], call, |_| false).unwrap().unwrap();
            assert_eq!(args[1].to_vec::<i32>().unwrap(), [9, 4]);
            assert_eq!(args[0].data_ptr(), x.data_ptr());
        }
        assert_eq!(y.to_vec::<i32>().unwrap(), [3, 4]);
        // The first call found the write. The second copied at once.
        assert_eq!(calls, 3);
    }

    #[test]
    fn views_are_protected_and_a_swallowed_error_does_not_matter() {
        let x = tensor(&[1, 2]);
        let call = |args: Vec<Tensor>| {
            let view = args[0].reshape(&[2, 1]).unwrap().reshape(&[2]).unwrap();
            drop(write(&view));
            args[0].to_vec::<i32>().unwrap()
        };
        assert_eq!(Written::default().protect(&[&x], call, |_| false).unwrap(), [9, 2]);
        assert_eq!(x.to_vec::<i32>().unwrap(), [1, 2]);
        assert!(write(&x).is_ok());
    }

    #[test]
    fn arguments_of_inner_calls_are_protected_once_for_each_function() {
        let x = tensor(&[1, 2]);
        let (outer, inner) = (Written::default(), Written::default());
        let mut calls = 0;
        let call = |args: Vec<Tensor>| {
            calls += 1;
            let write = |args: Vec<Tensor>| write(&args[0]).map(|()| args[0].clone());
            let written = inner.protect(&[&args[0]], write, |_| false).unwrap().unwrap();
            assert_eq!(written.to_vec::<i32>().unwrap(), [9, 2]);
            args[0].to_vec::<i32>().unwrap()
        };
        assert_eq!(outer.protect(&[&x], call, |_| false).unwrap(), [1, 2]);
        assert_eq!(calls, 1);
    }

    #[test]
    fn results_are_separated_from_arguments_and_from_each_other() {
        let (x, y) = (tensor(&[1, 2]), tensor(&[3, 4]));
        let mut results = [x.clone(), y.clone(), y.reshape(&[2, 1]).unwrap()];
        Tensor::separate_all(&mut results, &[&x]).unwrap();
        assert_eq!(results[1].data_ptr(), y.data_ptr());
        write(&x).unwrap();
        write(&y).unwrap();
        assert_eq!(results[0].to_vec::<i32>().unwrap(), [1, 2]);
        assert_eq!(results[2].to_vec::<i32>().unwrap(), [3, 4]);
    }
}
