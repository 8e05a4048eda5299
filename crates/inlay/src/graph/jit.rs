//! `jit`: functions that are traced once and then run as programs.

use std::fmt;
use std::sync::Arc;

use inlay_core::{DType, Error, Result};
use smallvec::SmallVec;

use super::plan::Plan;
use super::program::Program;
use super::protect::Written;
use super::traces::{Sizes, Traces};
use crate::function::Need;
use crate::{Tensor, is_grad_enabled};

/// The prefix of the names of inputs. The position of the argument follows.
const ARGUMENT: &str = "arg";

/// The dtype and the rank of each argument.
pub type Kinds = SmallVec<[(DType, usize); 8]>;

/// A function as a plan, recorded by a call with symbolic arguments.
///
/// ```
/// use inlay::{DType, Kinds, Tensor, Trace};
///
/// let kinds = Kinds::from_slice(&[(DType::F32, 1)]);
/// let (program, inputs) = Trace::start(&kinds, None)?;
/// let trace = Trace::finish(&program, &[inputs[0].multiply(2)?], false)?;
/// let results = trace.call(&[&Tensor::from([1.0f32, 2.0])])?;
/// assert_eq!(results[0].to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), inlay::Error>(())
/// ```
pub struct Trace {
    plan: Arc<Plan>,
    /// The arguments that the plan needs, in its order.
    takes: SmallVec<[usize; 4]>,
}

impl Trace {
    /// Returns a program with an input for each argument, and these inputs, with which the function
    /// is called. Sizes are open unless they are given.
    ///
    /// ```
    /// # use inlay::{DType, Kinds, Trace};
    /// let kinds = Kinds::from_slice(&[(DType::F32, 2)]);
    /// let (program, inputs) = Trace::start(&kinds, Some(&vec![vec![2, 3]]))?;
    /// assert_eq!((program.inputs().len(), inputs[0].shape()), (1, &[2, 3][..]));
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A dtype and a rank that no tensor can have.
    pub fn start(kinds: &Kinds, sizes: Option<&Sizes>) -> Result<(Program, Vec<Tensor>)> {
        let program = Program::new();
        let input = |(at, (dtype, rank)): (usize, &(DType, usize))| {
            let shape = match sizes {
                Some(sizes) => sizes[at].iter().copied().map(Some).collect(),
                None => vec![None; *rank],
            };
            program.data(&format!("{ARGUMENT}{at}"), &shape, *dtype)
        };
        let inputs = kinds.iter().enumerate().map(input).collect::<Result<_>>()?;
        Ok((program, inputs))
    }

    /// Like [`Trace::start`], for a function that may read sizes by [`Tensor::shape`]: it sees
    /// those of `args`. [`Program::size_was_read`] says whether it did.
    fn start_call(args: &[&Tensor], open: bool) -> Result<(Program, Vec<Tensor>)> {
        let program = Program::of_call();
        let input = |(at, arg): (usize, &&Tensor)| {
            let (name, shape) = (format!("{ARGUMENT}{at}"), arg.shape());
            match open {
                true => program.open_input(&name, shape, arg.dtype()),
                false => {
                    let shape: Vec<_> = shape.iter().copied().map(Some).collect();
                    program.data(&name, &shape, arg.dtype())
                }
            }
        };
        let inputs = args.iter().enumerate().map(input).collect::<Result<_>>()?;
        Ok((program, inputs))
    }

    /// Returns the trace of a function that returned `results` for the inputs of `program`. With
    /// `donate`, calls may write into the memory of their arguments.
    ///
    /// ```
    /// # use inlay::{DType, Kinds, Trace};
    /// let kinds = Kinds::from_slice(&[(DType::F32, 1)]);
    /// let (program, inputs) = Trace::start(&kinds, None)?;
    /// let trace = Trace::finish(&program, &[inputs[0].multiply(2)?], false)?;
    /// assert_eq!(trace.plan().inputs().count(), 1);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Results that belong to another program.
    pub fn finish(program: &Program, results: &[Tensor], donate: bool) -> Result<Trace> {
        let plan = program.plan(&results.iter().collect::<Vec<_>>(), donate)?;
        let position = |name: &str| name.strip_prefix(ARGUMENT)?.parse().ok();
        let takes = plan.inputs().filter_map(position).collect();
        Ok(Trace { plan, takes })
    }

    /// The plan that is run.
    ///
    /// ```
    /// # use inlay::{DType, Kinds, Trace};
    /// let kinds = Kinds::from_slice(&[(DType::F32, 1)]);
    /// let (program, inputs) = Trace::start(&kinds, None)?;
    /// let trace = Trace::finish(&program, &[inputs[0].multiply(2)?], false)?;
    /// println!("{}", trace.plan());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How the plan uses each of `count` arguments.
    pub(crate) fn needs(&self, count: usize) -> SmallVec<[Need; 8]> {
        let mut needs = SmallVec::from_elem(Need::Nothing, count);
        for (feed, argument) in self.takes.iter().enumerate() {
            needs[*argument] = if self.plan.reads(feed) { Need::Elements } else { Need::Shape };
        }
        needs
    }

    /// Like [`Trace::call`], but a result that is an argument is that argument itself, not a copy.
    pub(crate) fn call_shared(&self, args: &[&Tensor]) -> Result<Vec<Tensor>> {
        let feed: SmallVec<[&Tensor; 4]> = self.takes.iter().map(|at| args[*at]).collect();
        self.plan.call_shared(&feed)
    }

    /// Like [`Trace::call`], but results may be written into the memory of `outputs`.
    pub(crate) fn call_into(&self, args: &[&Tensor], outputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let feed: SmallVec<[&Tensor; 4]> = self.takes.iter().map(|at| args[*at]).collect();
        self.plan.call_into(&feed, outputs)
    }

    /// Returns the results for these arguments.
    ///
    /// ```
    /// # use inlay::{DType, Kinds, Tensor, Trace};
    /// let kinds = Kinds::from_slice(&[(DType::F32, 1)]);
    /// let (program, inputs) = Trace::start(&kinds, None)?;
    /// let trace = Trace::finish(&program, &[inputs[0].multiply(2)?], false)?;
    /// assert_eq!(trace.call(&[&Tensor::from([1.0f32])])?[0].to_vec::<f32>()?, [2.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the operations.
    pub fn call(&self, args: &[&Tensor]) -> Result<Vec<Tensor>> {
        let feed: SmallVec<[&Tensor; 4]> = self.takes.iter().map(|at| args[*at]).collect();
        self.plan.call(&feed)
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace of {:?}", self.plan)
    }
}

/// A function of tensors that is traced once for the dtypes and ranks of its arguments. [`jit`]
/// makes it.
///
/// ```
/// use inlay::{Tensor, jit};
///
/// let twice = jit(|args: &[Tensor]| Ok(vec![args[0].multiply(2)?]));
/// for values in [vec![1.0f32], vec![1.0, 2.0]] {
///     let results = twice.call(&[&Tensor::from(values)])?;
///     println!("{}", results[0]);
/// }
/// # Ok::<(), inlay::Error>(())
/// ```
pub struct Jit<F> {
    function: F,
    donate: bool,
    traces: Traces<Kinds, Trace>,
    written: Written,
}

impl<F> fmt::Debug for Jit<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Jit of {:?}", self.traces)
    }
}

/// Makes a function of tensors run as a program. The function is called once with symbolic tensors
/// for each set of dtypes and ranks. What it did is planned, and later calls run the plan.
///
/// Sizes are open during the trace. If the function reads one ([`Tensor::shape`]), or calls an
/// operation that needs one, it is traced again for each set of sizes, with the sizes known. So the
/// function may be called twice for one call, and should have no side effects. A size that depends
/// on values ([`Tensor::masked_select`]) can't be read. [`Tensor::rank`] is always known. At most
/// 256 traces are kept.
///
/// Writes in place don't change the arguments of a call.
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
/// print!("{}", total.explain());
/// # Ok::<(), inlay::Error>(())
/// ```
pub fn jit<F: Fn(&[Tensor]) -> Result<Vec<Tensor>>>(function: F) -> Jit<F> {
    Jit { function, donate: false, traces: Traces::default(), written: Written::default() }
}

impl<F> Jit<F> {
    /// Sets whether calls may write into the memory of their arguments at its last use, even if the
    /// call then fails. The default is false.
    ///
    /// ```
    /// # use inlay::{SliceScatter, Slice, Tensor, jit};
    /// let write = jit(|args: &[Tensor]| {
    ///     Ok(vec![args[0].slice_scatter(&args[1], &SliceScatter::new(0, Slice::new(0, 1, 1)))?])
    /// })
    /// .donate(true);
    /// let (x, y) = (Tensor::from_slice(&[1, 2], &[2])?, Tensor::from_slice(&[7], &[1])?);
    /// assert_eq!(write.call(&[&x, &y])?[0].data_ptr(), x.data_ptr());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    #[must_use]
    pub fn donate(self, donate: bool) -> Self {
        // A trace is planned for either setting.
        Jit { donate, traces: Traces::default(), ..self }
    }

    /// Returns the plans of all traces as text: the steps, which of them write in place, the copies
    /// saved and the peak memory.
    ///
    /// ```
    /// # use inlay::{Tensor, jit};
    /// let twice = jit(|args: &[Tensor]| Ok(vec![args[0].multiply(2)?]));
    /// twice.call(&[&Tensor::from([1, 2])])?;
    /// assert!(twice.explain().contains("multiply(arg0"));
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn explain(&self) -> String {
        let plans = self.traces.all();
        let plans: Vec<String> = plans.iter().map(|trace| trace.plan().to_string()).collect();
        plans.join("\n")
    }
}

impl<F: Fn(&[Tensor]) -> Result<Vec<Tensor>>> Jit<F> {
    /// Returns the results for these arguments.
    ///
    /// The function itself is called while a gradient is recorded for an argument, and inside of
    /// another trace.
    ///
    /// ```
    /// # use inlay::{Tensor, jit};
    /// let twice = jit(|args: &[Tensor]| Ok(vec![args[0].multiply(2)?]));
    /// assert_eq!(twice.call(&[&Tensor::from([1, 2])])?[0].to_vec::<i32>()?, [2, 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the function and its operations. A symbolic tensor has no values, so a
    /// function that reads them fails.
    pub fn call(&self, args: &[&Tensor]) -> Result<Vec<Tensor>> {
        let recorded = is_grad_enabled() && args.iter().any(|arg| !arg.stop_gradient());
        if recorded || args.iter().any(|arg| arg.is_symbolic()) {
            let run = |args: Vec<Tensor>| (self.function)(&args);
            let mut results = self.written.protect(args, run, |_| false)??;
            Tensor::separate_all(&mut results, args)?;
            return Ok(results);
        }
        let kinds: Kinds = args.iter().map(|arg| (arg.dtype(), arg.rank())).collect();
        let sizes = || args.iter().map(|arg| arg.shape().to_vec()).collect();
        let trace = |sizes: Option<&Sizes>| {
            let (program, inputs) = Trace::start_call(args, sizes.is_none())?;
            let results = (self.function)(&inputs);
            // The results, or the error, depend on the size that was read.
            if program.size_was_read() {
                return Err(Error::LateSize);
            }
            let trace = Trace::finish(&program, &results?, self.donate);
            // A tensor that the function has kept can't be used any more.
            program.close();
            trace
        };
        let needs_sizes = |error: &Error| error.is_open_size() || *error == Error::LateSize;
        self.traces.get_or_trace(&kinds, sizes, trace, needs_sizes)?.call(args)
    }
}
