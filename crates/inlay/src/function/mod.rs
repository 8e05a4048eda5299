//! Functions: calls without their tensors, with derivatives of any order and a batched form.
//!
//! A function is an operation with the values of all arguments but tensors, the derivative of a
//! function, or a function over a batch. A text describes it completely, so a compiler of another
//! library can keep a call as a string, and any process can read it back. Bridges to other
//! libraries are made of functions: they need one piece of code for all operations and orders.

mod batch;
mod chain;
mod evaluate;
mod infer;
mod into;
mod pullback;
mod text;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex};

use inlay_core::{Error, Result};
use smallvec::SmallVec;

use self::pullback::Derivatives;
use crate::declare::{ArgumentKind, Operation, Value};
use crate::graph::{Kinds, Sizes, Trace, Traces};
use crate::lock::lock;
use crate::site::without_lines;
use crate::{NoGrad, Tensor};

pub use self::infer::{Extent, Need};
pub use self::pullback::Pullback;

/// A call without its tensors: an operation with the values of all other arguments, a derivative,
/// or a batched form. This is a handle: functions with the same text share their traces.
///
/// ```
/// use inlay::{Function, Tensor, Value};
///
/// let absent = || Value::Absent;
/// let sums = Function::new("scatter", &[absent(), absent(), absent(), Value::Flag(false)], &[])?;
/// assert_eq!(sums.text(), "scatter(@, @, @, overwrite=False)");
///
/// let (x, index) = (Tensor::from([1.0f32, 2.0]), Tensor::from([0i64, 0]));
/// let updates = Tensor::from([5.0f32, 6.0]);
/// let results = sums.call(&[&x, &index, &updates])?;
/// assert_eq!(results[0].to_vec::<f32>()?, [11.0, 2.0]);
///
/// // The gradients of x and updates, of the result and its gradient.
/// let gradients = sums.vjp(&[true, false, true])?;
/// let upstream = Tensor::from([10.0f32, 20.0]);
/// let grads = gradients.call(&[&x, &index, &updates, &results[0], &upstream])?;
/// assert_eq!(grads[0].to_vec::<f32>()?, [0.0, 20.0]);
/// assert_eq!(grads[1].to_vec::<f32>()?, [10.0, 10.0]);
/// # Ok::<(), inlay::Error>(())
/// ```
#[derive(Clone)]
pub struct Function(Arc<Inner>);

struct Inner {
    text: String,
    form: Form,
    inputs: usize,
    outputs: usize,
    /// The number of derivatives and batches around the call.
    depth: usize,
    traces: Traces<Kinds, Traced>,
    derivatives: Mutex<Derivatives>,
}

/// What a function is.
enum Form {
    /// A call of an operation.
    Call { operation: &'static Operation, arguments: Vec<Slot> },
    /// The gradients of the wanted inputs of another function. Its inputs are the inputs and the
    /// outputs of that function, then the gradient of each output.
    Vjp { of: Function, wanted: SmallVec<[bool; 4]> },
    /// Another function over a batch. The positions of the batch axis in its inputs; `None` for an
    /// input that all items share. The batch axis of a result is the first.
    Vmap { of: Function, axes: SmallVec<[Option<usize>; 4]> },
    /// Several functions, of which each takes the result of the one before it.
    Chain { steps: Vec<Function> },
}

/// One argument of a call.
#[derive(Clone, Debug)]
enum Slot {
    /// A tensor, which is an input.
    Tensor,
    /// A list of tensors, each of which is an input.
    Tensors(usize),
    /// Another value.
    Value(Value<'static>),
}

/// The trace of a function, and how it uses each input.
struct Traced {
    trace: Trace,
    needs: SmallVec<[Need; 8]>,
}

/// The functions that were made last, by text.
#[derive(Default)]
struct Known {
    by_text: HashMap<String, Function>,
    /// The texts, the oldest first.
    order: VecDeque<String>,
}

/// The number of functions that are kept. A text has all attributes of a call, such as the bounds
/// of a slice, so there can be any number of them.
const KEPT: usize = 1024;

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

impl Function {
    /// The largest number of derivatives and batches around a call. It bounds recursion.
    ///
    /// ```
    /// assert!(inlay::Function::DEEPEST > 3);
    /// ```
    pub const DEEPEST: usize = 64;

    /// Returns the call of an operation with these values. The values of tensors are ignored and may
    /// be absent; `lists` has the length of each argument that is a list of tensors.
    ///
    /// ```
    /// # use inlay::{Function, Value};
    /// let join = Function::new("concat", &[Value::Absent, Value::Int(1)], &[2])?;
    /// assert_eq!(join.text(), "concat([@, @], axis=1)");
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// No such operation, too many values, a value of another kind than declared.
    pub fn new(name: &str, values: &[Value<'static>], lists: &[usize]) -> Result<Function> {
        let operation = operation(name)?;
        if values.len() > operation.arguments.len() {
            return Err(problem(name, "too many arguments"));
        }
        let mut lists = lists.iter();
        let mut arguments = Vec::with_capacity(operation.arguments.len());
        for (k, argument) in operation.arguments.iter().enumerate() {
            let value = values.get(k).cloned().unwrap_or(Value::Absent);
            arguments.push(match argument.kind {
                kind if kind.is_tensor() => Slot::Tensor,
                kind if kind.has_tensors() => Slot::Tensors(
                    *lists
                        .next()
                        .ok_or_else(|| problem(name, "the length of a list is missing"))?,
                ),
                // A label names a node and changes nothing.
                ArgumentKind::Label => Slot::Value(Value::Absent),
                _ => {
                    operation.expect(argument, &value)?;
                    Slot::Value(value)
                }
            });
        }
        Ok(Function::intern(Form::Call { operation, arguments }))
    }

    /// Reads the text of a function.
    ///
    /// ```
    /// # use inlay::Function;
    /// let text = "vjp(101; scatter(@, @, @, overwrite=False, axis=1))";
    /// assert_eq!(Function::parse(text)?.text(), text);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A text that describes no function.
    pub fn parse(text: &str) -> Result<Function> {
        // The lock is released before the text is read, which adds functions.
        let known = lock(&KNOWN).by_text.get(text).cloned();
        match known {
            Some(known) => Ok(known),
            None => text::parse(text),
        }
    }

    /// Returns the function of this form, and makes it if it is not known.
    fn intern(form: Form) -> Function {
        let text = text::of(&form);
        let mut known = lock(&KNOWN);
        if let Some(function) = known.by_text.get(&text) {
            return function.clone();
        }
        let ((inputs, outputs), depth) = (form.counts(), form.depth());
        let traces = Traces::default();
        let derivatives = Mutex::default();
        let inner = Inner { text: text.clone(), form, inputs, outputs, depth, traces, derivatives };
        let function = Function(Arc::new(inner));
        let oldest = if known.order.len() < KEPT { None } else { known.order.pop_front() };
        let dropped = oldest.and_then(|oldest| known.by_text.remove(&oldest));
        known.order.push_back(text.clone());
        known.by_text.insert(text, function.clone());
        // A trace is dropped outside of the lock.
        drop(known);
        drop(dropped);
        function
    }

    /// The text that describes the function.
    ///
    /// ```
    /// # use inlay::Function;
    /// assert_eq!(Function::parse("tril(@)")?.text(), "tril(@)");
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The operation of the call that this function is, or is derived from.
    ///
    /// ```
    /// # use inlay::Function;
    /// assert_eq!(Function::parse("vjp(1; tril(@))")?.operation().name, "tril");
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn operation(&self) -> &'static Operation {
        match &self.0.form {
            Form::Call { operation, .. } => operation,
            Form::Vjp { of, .. } | Form::Vmap { of, .. } => of.operation(),
            Form::Chain { steps } => steps[0].operation(),
        }
    }

    /// The number of tensors that the function takes.
    ///
    /// ```
    /// # use inlay::Function;
    /// assert_eq!(Function::parse("vjp(1; tril(@))")?.inputs(), 3);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn inputs(&self) -> usize {
        self.0.inputs
    }

    /// The number of results.
    ///
    /// ```
    /// # use inlay::Function;
    /// assert_eq!(Function::parse("vjp(11; add(@, @))")?.outputs(), 2);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn outputs(&self) -> usize {
        self.0.outputs
    }

    /// For each input, whether it may have a gradient. Indices and masks have none. Nor have the
    /// outputs of a function that are inputs of its derivative: they only save a computation.
    ///
    /// ```
    /// # use inlay::Function;
    /// let function = Function::parse("index_select(@, @)")?;
    /// assert_eq!(function.differentiable(), [true, false]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn differentiable(&self) -> Vec<bool> {
        match &self.0.form {
            Form::Call { operation, arguments } => {
                let each =
                    operation.arguments.iter().zip(arguments).flat_map(|(argument, slot)| {
                        let has = operation.gradients.contains(&argument.name);
                        std::iter::repeat_n(has, slot.tensors())
                    });
                each.collect()
            }
            Form::Vjp { of, .. } => {
                let mut all = of.differentiable();
                all.extend(std::iter::repeat_n(false, of.outputs()));
                all.extend(std::iter::repeat_n(true, of.outputs()));
                all
            }
            Form::Vmap { of, .. } => of.differentiable(),
            Form::Chain { steps } => chain::differentiable(steps),
        }
    }

    /// Returns the function that computes gradients. Its inputs are the inputs of this function, its
    /// outputs, and the gradient of each output. Its results are the gradients of the `wanted`
    /// inputs, one after the other.
    ///
    /// ```
    /// # use inlay::{Function, Tensor};
    /// let product = Function::parse("multiply(@, @)")?;
    /// let second = product.vjp(&[true, false])?;
    /// let (x, y) = (Tensor::from([2.0f32]), Tensor::from([3.0f32]));
    /// let grads = second.call(&[&x, &y, &Tensor::from([6.0f32]), &Tensor::from([1.0f32])])?;
    /// assert_eq!(grads[0].to_vec::<f32>()?, [3.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of flags than of inputs, an input that has no gradient, or a function of
    /// [`Function::DEEPEST`] derivatives and batches.
    pub fn vjp(&self, wanted: &[bool]) -> Result<Function> {
        let name = self.operation().name;
        if wanted.len() != self.inputs() {
            return Err(problem(name, "vjp needs a flag for each input"));
        }
        let may = self.differentiable();
        if wanted.iter().zip(&may).any(|(wanted, may)| *wanted && !may) {
            return Err(problem(name, "vjp is asked for the gradient of an input without one"));
        }
        self.expect_shallow()?;
        Ok(Function::intern(Form::Vjp { of: self.clone(), wanted: wanted.into() }))
    }

    /// For a derivative: which inputs of its function its results are the gradients of.
    ///
    /// ```
    /// # use inlay::Function;
    /// assert_eq!(Function::parse("vjp(01; add(@, @))")?.wanted(), Some(&[false, true][..]));
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn wanted(&self) -> Option<&[bool]> {
        match &self.0.form {
            Form::Vjp { wanted, .. } => Some(wanted),
            _ => None,
        }
    }

    /// Returns the function over a batch: each input has a batch axis at the given position, or
    /// `None` if all items share it. The batch axis of each result is the first one.
    ///
    /// ```
    /// # use inlay::{Function, Tensor};
    /// let select = Function::parse("index_select(@, @)")?.vmap(&[Some(0), None])?;
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// let rows = select.call(&[&x, &Tensor::from([2i64, 0])])?;
    /// assert_eq!(rows[0].to_vec::<i32>()?, [3, 1, 6, 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of axes than of inputs, no batch axis at all, or a function of
    /// [`Function::DEEPEST`] derivatives and batches.
    pub fn vmap(&self, axes: &[Option<usize>]) -> Result<Function> {
        let name = self.operation().name;
        if axes.len() != self.inputs() || axes.iter().all(Option::is_none) {
            return Err(problem(
                name,
                "vmap needs a position for each input, and at least one axis",
            ));
        }
        self.expect_shallow()?;
        Ok(Function::intern(Form::Vmap { of: self.clone(), axes: axes.into() }))
    }

    /// Returns the results for these inputs. A call of an operation runs at once; a derived function
    /// runs as a program, which is traced once for the dtypes and ranks of the inputs.
    ///
    /// ```
    /// # use inlay::{Function, Tensor};
    /// let lower = Function::parse("tril(@, diagonal=-1)")?;
    /// let results = lower.call(&[&Tensor::from([[1, 2], [3, 4]])])?;
    /// assert_eq!(results[0].to_vec::<i32>()?, [0, 0, 3, 0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of inputs; the errors of the operation.
    pub fn call(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.expect_inputs(inputs.len())?;
        let _off = NoGrad::new();
        match &self.0.form {
            Form::Call { operation, arguments } => {
                let values = evaluate::values(arguments, inputs);
                operation.call_bound(false, &values).map(|result| vec![result])
            }
            Form::Chain { steps } => {
                let result = self.traced(inputs).and_then(|traced| traced.trace.call(inputs));
                match result {
                    Ok(results) => Ok(results),
                    // The steps one by one raise the error that names the operation.
                    Err(_) => {
                        let inputs: Vec<Tensor> = inputs.iter().copied().cloned().collect();
                        let apply = |step: &Function, inputs: &[Tensor]| {
                            step.call(&inputs.iter().collect::<SmallVec<[&Tensor; 4]>>())
                        };
                        chain::evaluate(steps, &inputs, apply)
                    }
                }
            }
            _ => {
                let traced = self.traced(inputs)?;
                traced.trace.call(inputs).map_err(|error| self.blame(&error))
            }
        }
    }

    /// Like [`Function::call`], but a gradient that is one of the inputs is not copied: the result
    /// shares its memory.
    ///
    /// ```
    /// # use inlay::{Function, Tensor};
    /// let sum = "scatter(@, @, @, overwrite=False, include_self=True)";
    /// let gradient = Function::parse(&format!("vjp(100; {sum})"))?;
    /// let (x, g) = (Tensor::from([1.0f32]), Tensor::from([2.0f32]));
    /// let shared = gradient.call_shared(&[&x, &Tensor::from([0i64]), &x, &x, &g])?;
    /// assert_eq!(shared[0].data_ptr(), g.data_ptr());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Function::call`].
    pub fn call_shared(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        if let Form::Call { .. } = &self.0.form {
            return self.call(inputs);
        }
        self.expect_inputs(inputs.len())?;
        let _off = NoGrad::new();
        let traced = self.traced(inputs)?;
        traced.trace.call_shared(inputs).map_err(|error| error.root().clone())
    }

    /// Calls the in-place form of an operation: writes into the first input.
    ///
    /// ```
    /// # use inlay::{Function, Tensor};
    /// let fill = Function::parse("masked_fill(@, @, @)")?;
    /// let x = Tensor::from([1, 2]);
    /// fill.write(&[&x, &Tensor::from([true, false]), &Tensor::from(9)])?;
    /// assert_eq!(x.to_vec::<i32>()?, [9, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A function without an in-place form; the errors of the operation. Then nothing is written.
    pub fn write(&self, inputs: &[&Tensor]) -> Result<()> {
        self.expect_inputs(inputs.len())?;
        let _off = NoGrad::new();
        match &self.0.form {
            Form::Call { operation, arguments } if operation.twin.is_some() => {
                let values = evaluate::values(arguments, inputs);
                operation.call_bound(true, &values).map(drop)
            }
            _ => Err(problem(self.operation().name, "the function has no in-place form")),
        }
    }

    fn expect_inputs(&self, got: usize) -> Result<()> {
        if got == self.inputs() {
            return Ok(());
        }
        let text = format!("{} takes {} tensors, got {got}", self.text(), self.inputs());
        Err(problem(self.operation().name, &text))
    }

    /// Returns the error of a step as one of the operation, which is what the caller knows: a step
    /// may be another operation that does the same for a batch.
    fn blame(&self, error: &Error) -> Error {
        let mut error = error.root().clone();
        match &mut error {
            Error::DType { op, .. }
            | Error::DTypeMismatch { op, .. }
            | Error::Undefined { op, .. }
            | Error::Shape { op, .. }
            | Error::Broadcast { op, .. }
            | Error::BroadcastTogether { op, .. }
            | Error::Rank { op, .. }
            | Error::TooShort { op, .. }
            | Error::Index { op, .. }
            | Error::Axis { op, .. } => *op = self.operation().name,
            _ => {}
        }
        error
    }

    fn expect_shallow(&self) -> Result<()> {
        if self.0.depth < Function::DEEPEST {
            return Ok(());
        }
        let most = Function::DEEPEST;
        Err(problem(self.operation().name, &format!("more than {most} derivatives and batches")))
    }

    fn traced(&self, inputs: &[&Tensor]) -> Result<Arc<Traced>> {
        let shapes: SmallVec<[&[usize]; 8]> = inputs.iter().map(|input| input.shape()).collect();
        self.expect_shapes(&shapes)?;
        let kinds = inputs.iter().map(|input| (input.dtype(), input.rank())).collect();
        self.trace_for(&kinds, || inputs.iter().map(|input| input.shape().to_vec()).collect())
    }

    fn trace_for(&self, kinds: &Kinds, sizes: impl FnOnce() -> Sizes) -> Result<Arc<Traced>> {
        let trace = |sizes: Option<&Sizes>| {
            let (program, inputs, results) = without_lines(|| {
                let (program, inputs) = Trace::start(kinds, sizes)?;
                let results = self.evaluate(&inputs, Some(&program))?;
                Ok::<_, Error>((program, inputs, results))
            })?;
            let trace = Trace::finish(&program, &results, false)?;
            program.close();
            let needs = trace.needs(inputs.len());
            Ok(Traced { trace, needs })
        };
        let needs_sizes = |error: &Error| error.is_open_size() || *error == Error::LateSize;
        let traced = self.0.traces.get_or_trace(kinds, sizes, trace, needs_sizes);
        traced.map_err(|error| self.blame(&error))
    }
}

impl Form {
    /// The number of inputs and of outputs.
    fn counts(&self) -> (usize, usize) {
        match self {
            Form::Call { arguments, .. } => (arguments.iter().map(Slot::tensors).sum(), 1),
            Form::Vjp { of, wanted } => {
                (of.inputs() + 2 * of.outputs(), wanted.iter().filter(|wanted| **wanted).count())
            }
            Form::Vmap { of, .. } => (of.inputs(), of.outputs()),
            Form::Chain { steps } => {
                (steps.iter().map(Function::inputs).sum::<usize>() + 1 - steps.len(), 1)
            }
        }
    }

    /// The number of derivatives and batches around the call.
    fn depth(&self) -> usize {
        match self {
            Form::Call { .. } => 0,
            Form::Vjp { of, .. } | Form::Vmap { of, .. } => of.0.depth + 1,
            Form::Chain { steps } => steps.iter().map(|step| step.0.depth).max().unwrap_or(0) + 1,
        }
    }
}

impl Slot {
    /// The number of inputs that the argument is made of.
    fn tensors(&self) -> usize {
        match self {
            Slot::Tensor => 1,
            Slot::Tensors(count) => *count,
            Slot::Value(_) => 0,
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Returns the operation of this name.
fn operation(name: &str) -> Result<&'static Operation> {
    let found = crate::operations().iter().find(|operation| operation.name == name);
    found.copied().ok_or_else(|| problem("function", &format!("there is no operation {name:?}")))
}

/// The error for a function that is described or used wrongly.
fn problem(name: &str, text: &str) -> Error {
    let found = crate::operations().iter().find(|operation| operation.name == name);
    let op = found.map_or("function", |operation| operation.name);
    Error::Function { op, problem: text.into() }
}
