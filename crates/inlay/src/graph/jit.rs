//! Functions that are traced once and then run as programs.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use inlay_core::{DType, Result};
use smallvec::SmallVec;

use super::plan::Plan;
use super::program::Program;
use crate::lock::lock;
use crate::{Tensor, is_grad_enabled};

/// What arguments must share to share a trace.
type Key = SmallVec<[(DType, usize); 4]>;

/// A function of tensors that is traced once for the dtypes and ranks of its arguments; made by
/// [`jit`].
pub struct Jit<F> {
    function: F,
    traces: Mutex<HashMap<Key, Arc<Trace>>>,
}

/// A plan, and the arguments that it needs, in its order.
struct Trace {
    plan: Arc<Plan>,
    takes: Vec<usize>,
}

impl<F> fmt::Debug for Jit<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Jit of {} traces", lock(&self.traces).len())
    }
}

/// Makes a function of tensors run as a program: it is called once with symbolic tensors for each set
/// of dtypes and ranks, and what it did is planned and run from then on.
///
/// ```
/// use inlay::{Reduce, Scatter, Tensor, jit};
///
/// let total = jit(|args: &[Tensor]| {
///     let [x, index, updates] = args else { unreachable!("three arguments") };
///     Ok(vec![x.scatter(index, updates, Scatter::reduce(Reduce::Sum))?])
/// });
/// let x = Tensor::from_slice(&[1.0f32, 2.0], &[2])?;
/// let index = Tensor::from_slice(&[0i64, 0], &[2])?;
/// let results = total.call(&[&x, &index, &x])?;
/// assert_eq!(results[0].to_vec::<f32>()?, [3.0, 2.0]);
/// # Ok::<(), inlay::Error>(())
/// ```
pub fn jit<F: Fn(&[Tensor]) -> Result<Vec<Tensor>>>(function: F) -> Jit<F> {
    Jit { function, traces: Mutex::default() }
}

impl<F: Fn(&[Tensor]) -> Result<Vec<Tensor>>> Jit<F> {
    /// The results for these arguments.
    ///
    /// While a gradient is recorded for one of them, and within another trace, the function itself is
    /// called.
    ///
    /// # Errors
    /// What the function or its operations report; what it does with values that a symbolic tensor
    /// does not have.
    pub fn call(&self, args: &[&Tensor]) -> Result<Vec<Tensor>> {
        let recorded = is_grad_enabled() && args.iter().any(|arg| !arg.stop_gradient());
        if recorded || args.iter().any(|arg| arg.is_symbolic()) {
            let args: Vec<Tensor> = args.iter().map(|arg| (*arg).clone()).collect();
            return (self.function)(&args);
        }
        let key: Key = args.iter().map(|arg| (arg.dtype(), arg.rank())).collect();
        let known = lock(&self.traces).get(&key).cloned();
        let trace = match known {
            Some(trace) => trace,
            None => {
                let trace = self.trace(&key)?;
                lock(&self.traces).insert(key, Arc::clone(&trace));
                trace
            }
        };
        let feed: SmallVec<[&Tensor; 4]> = trace.takes.iter().map(|at| args[*at]).collect();
        trace.plan.call(&feed)
    }

    fn trace(&self, key: &Key) -> Result<Arc<Trace>> {
        let program = Program::new();
        let args = key
            .iter()
            .enumerate()
            .map(|(at, (dtype, rank))| program.data(&argument(at), &vec![None; *rank], *dtype));
        let args = args.collect::<Result<Vec<Tensor>>>()?;
        let results = (self.function)(&args)?;
        let plan = program.plan(&results.iter().collect::<Vec<_>>(), false)?;
        let takes =
            plan.inputs().filter_map(|name| (0..key.len()).find(|at| argument(*at) == name));
        let takes = takes.collect();
        Ok(Arc::new(Trace { plan, takes }))
    }
}

fn argument(at: usize) -> String {
    format!("arg{at}")
}
