//! The program: a list of nodes in the order in which they were added. Each node is one value.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use inlay_core::{DType, Dim, Error, Meta, Result, Shape, Symbol};
use smallvec::SmallVec;

use super::plan::Plan;
use super::sizes::CallSizes;
use crate::array::Array;
use crate::lock::lock;
use crate::op::AnyOp;
use crate::site::Site;
use crate::symbolic::{Id, ProgramRef, Recorder, Symbolic, disown_sizes, own_sizes};
use crate::tape::History;
use crate::tensor::WeakTensor;
use crate::{Device, Tensor, device};

/// Operations that were recorded on symbolic tensors, to be run on values.
///
/// This is a handle: clones share one program.
///
/// ```
/// use inlay::{DType, Program, Slice, SliceScatter, Tensor};
///
/// let program = Program::new();
/// let x = program.data("x", &[None], DType::I32)?;
/// let y = program.data("y", &[Some(1)], DType::I32)?;
/// let first = x.slice_scatter(&y, &SliceScatter::new(0, Slice::new(0, 1, 1)))?;
/// let both = first.slice_scatter(&y, &SliceScatter::new(0, Slice::new(-1, None, 1)))?;
///
/// let (x, y) = (Tensor::from_slice(&[1, 2, 3], &[3])?, Tensor::from_slice(&[7], &[1])?);
/// let results = program.run(&[("x", &x), ("y", &y)], &[&both])?;
/// assert_eq!(results[0].to_vec::<i32>()?, [7, 2, 7]);
/// # Ok::<(), inlay::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Program(Arc<Shared>);

#[derive(Default)]
struct Shared {
    graph: Mutex<Graph>,
    /// The plans that were requested last.
    plans: Mutex<Vec<(PlanKey, Arc<Plan>)>>,
    /// If the program is the trace of a function: the sizes of the call.
    call: Option<CallSizes>,
    /// Whether calls can no longer be added.
    closed: AtomicBool,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let graph = self.graph.get_mut().unwrap_or_else(PoisonError::into_inner);
        disown_sizes(graph.sizes.keys());
    }
}

/// The values that a plan fetches, and whether runs may write into their feeds.
pub(super) type PlanKey = (Vec<Id>, bool);

/// The maximum number of plans that are kept for a program. Few sets of results are requested.
const PLANS: usize = 8;

/// The contents of a program.
#[derive(Clone, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) data: HashMap<String, Id>,
    pub(super) outputs: Vec<(String, Id)>,
    /// The node and the axis whose size each symbol is.
    pub(super) sizes: HashMap<Symbol, (Id, usize)>,
    /// Inputs that plans read instead of computing a node; see [`Program::substitute`].
    pub(super) instead: HashMap<Id, Id>,
    /// Tensors that became constants. Each becomes one only once.
    captured: HashMap<usize, (WeakTensor, u64, Id)>,
}

/// A node, which is one value.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) what: What,
    pub(super) inputs: SmallVec<[Id; 3]>,
    pub(super) meta: Meta,
    pub(super) site: Site,
}

/// The origin of a value.
#[derive(Clone)]
pub(super) enum What {
    /// Each run is given the value under this name.
    Data(String),
    /// The value is known when the program is built.
    Constant(Array),
    /// An operation computes the value.
    Op(AnyOp),
}

impl Graph {
    pub(super) fn push(&mut self, what: What, inputs: &[Id], meta: Meta, site: Site) -> Result<Id> {
        let op = "program";
        let problem = || "too many nodes".into();
        let id =
            Id::try_from(self.nodes.len()).map_err(|_| Error::File { op, problem: problem() })?;
        for (axis, dim) in meta.shape.iter().enumerate() {
            if let Dim::Symbol(symbol) = dim {
                self.sizes.entry(*symbol).or_insert((id, axis));
            }
        }
        self.nodes.push(Node { what, inputs: inputs.into(), meta, site });
        Ok(id)
    }

    /// Returns the node that plans read instead of this one, or the node itself.
    pub(super) fn source(&self, id: Id) -> Id {
        self.instead.get(&id).copied().unwrap_or(id)
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    /// Returns the symbols that appear first in the shape of this node, with their axes.
    pub(super) fn defined_by(&self, id: Id) -> SmallVec<[(Symbol, usize); 2]> {
        let shape = self.node(id).meta.shape.iter().enumerate();
        let found = shape.filter_map(|(axis, dim)| match dim {
            Dim::Symbol(symbol) if self.sizes.get(symbol) == Some(&(id, axis)) => {
                Some((*symbol, axis))
            }
            _ => None,
        });
        found.collect()
    }

    /// Returns the constant with the current elements of a tensor.
    pub(super) fn constant(&mut self, op: &'static str, tensor: &Tensor) -> Result<Id> {
        let array = tensor.array();
        let (key, version) = (tensor.address(), array.buffer.version());
        // Another library that shares the CPU memory can write it without a change of version, so
        // the bytes are compared.
        if let Some((weak, then, id)) = self.captured.get(&key)
            && *then == version
            && weak.is(tensor)
            && let What::Constant(kept) = &self.node(*id).what
            && (tensor.device() != Device::Cpu
                || device::load_bytes(kept)? == device::load_bytes(array)?)
        {
            return Ok(*id);
        }
        // Copied, because owners of the tensor may write it later. Kept on the CPU, because it is
        // not known yet on which device a run will be.
        let kept = device::to_device(op, array, Device::Cpu)?;
        let id = self.push(What::Constant(kept), &[], array.meta(), Site::default())?;
        self.captured.insert(key, (tensor.downgrade(), version, id));
        Ok(id)
    }
}

impl Program {
    /// Returns an empty program.
    ///
    /// ```
    /// # use inlay::Program;
    /// assert!(Program::new().is_empty());
    /// ```
    pub fn new() -> Self {
        Program::default()
    }

    pub(super) fn of_graph(graph: Graph) -> Self {
        let symbols: Vec<Symbol> = graph.sizes.keys().copied().collect();
        let (graph, plans, closed) = (Mutex::new(graph), Mutex::default(), AtomicBool::default());
        let program = Program(Arc::new(Shared { graph, plans, call: None, closed }));
        own_sizes(symbols, &program.weak());
        program
    }

    /// Returns an empty program that traces a function. The function sees the sizes of a call.
    pub(super) fn of_call() -> Self {
        let (graph, plans, call) = (Mutex::default(), Mutex::default(), Some(CallSizes::default()));
        let closed = AtomicBool::default();
        Program(Arc::new(Shared { graph, plans, call, closed }))
    }

    /// Whether the traced function has read an open size.
    pub(super) fn size_was_read(&self) -> bool {
        self.0.call.as_ref().is_some_and(CallSizes::was_read)
    }

    /// Adds a node.
    pub(super) fn push(&self, what: What, inputs: &[Id], meta: Meta, site: Site) -> Result<Id> {
        let mut graph = self.graph();
        let id = graph.push(what, inputs, meta, site)?;
        let defined = graph.defined_by(id);
        drop(graph);
        if !defined.is_empty() {
            own_sizes(defined.into_iter().map(|(symbol, _)| symbol), &self.weak());
        }
        Ok(id)
    }

    fn weak(&self) -> Weak<dyn Recorder> {
        let weak: Weak<Shared> = Arc::downgrade(&self.0);
        weak
    }

    fn recorder(&self) -> ProgramRef {
        self.0.clone()
    }

    pub(super) fn graph(&self) -> MutexGuard<'_, Graph> {
        lock(&self.0.graph)
    }

    /// Whether two handles refer to the same program.
    ///
    /// ```
    /// # use inlay::Program;
    /// let program = Program::new();
    /// assert!(program.is(&program.clone()) && !program.is(&Program::new()));
    /// ```
    pub fn is(&self, other: &Program) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Adds an input: a symbolic tensor whose value each run is given under `name`. A size of
    /// `None` is known only when the value is given.
    ///
    /// ```
    /// # use inlay::{DType, Program};
    /// let program = Program::new();
    /// let x = program.data("x", &[None, Some(3)], DType::F32)?;
    /// assert!(x.is_symbolic());
    /// assert_eq!(x.rank(), 2);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A name that is taken or empty.
    #[track_caller]
    pub fn data(&self, name: &str, shape: &[Option<usize>], dtype: DType) -> Result<Tensor> {
        let dims = shape.iter().map(|size| size.map_or_else(Dim::unknown, Dim::Known));
        self.input(name, Meta { dtype, shape: dims.collect() })
    }

    /// Adds an input with open sizes to the trace of a function. `shape` is that of the argument.
    pub(super) fn open_input(&self, name: &str, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let symbols: SmallVec<[Symbol; 4]> = shape.iter().map(|_| Symbol::fresh()).collect();
        if let Some(call) = &self.0.call {
            call.learn(symbols.iter().copied().zip(shape.iter().copied()));
        }
        let shape = symbols.into_iter().map(Dim::Symbol).collect();
        self.input(name, Meta { dtype, shape })
    }

    #[track_caller]
    fn input(&self, name: &str, meta: Meta) -> Result<Tensor> {
        let op = "data";
        if name.is_empty() || self.graph().data.contains_key(name) {
            let expected = "a name that is not in use".into();
            return Err(Error::Argument { op, arg: "name", got: format!("{name:?}"), expected });
        }
        let id =
            self.push(What::Data(name.into()), &[], meta.clone(), Site::now(Location::caller()))?;
        self.graph().data.insert(name.into(), id);
        Ok(Tensor::of_value(Symbolic::new(&self.recorder(), id, meta, None), History::default()))
    }

    /// Gives names to results. A program that is saved and loaded finds its results by these names.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// program.set_outputs(&[("doubled", &y)])?;
    /// assert_eq!(program.outputs(), ["doubled"]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Tensors of another program, a name that is taken.
    pub fn set_outputs(&self, outputs: &[(&str, &Tensor)]) -> Result<()> {
        let mut named: Vec<(String, Id)> = Vec::new();
        for (name, tensor) in outputs {
            if named.iter().any(|(taken, _)| taken == name) {
                let (op, arg, got) = ("set_outputs", "name", format!("{name:?}"));
                let expected = "each name once".into();
                return Err(Error::Argument { op, arg, got, expected });
            }
            named.push(((*name).into(), self.id_of("set_outputs", tensor)?));
        }
        self.graph().outputs = named;
        Ok(())
    }

    /// Returns the names of the inputs, in the order in which they were added.
    ///
    /// ```
    /// # use inlay::{DType, Program};
    /// let program = Program::new();
    /// program.data("x", &[], DType::F32)?;
    /// assert_eq!(program.inputs(), ["x"]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn inputs(&self) -> Vec<String> {
        let graph = self.graph();
        let names = graph.nodes.iter().filter_map(|node| match &node.what {
            What::Data(name) => Some(name.clone()),
            _ => None,
        });
        names.collect()
    }

    /// The names given by [`Program::set_outputs`].
    ///
    /// ```
    /// # use inlay::Program;
    /// assert!(Program::new().outputs().is_empty());
    /// ```
    pub fn outputs(&self) -> Vec<String> {
        self.graph().outputs.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The dtype of an input.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// assert_eq!(program.input_dtype("x"), Some(DType::F32));
    /// assert_eq!(program.input_dtype("z"), None);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn input_dtype(&self, name: &str) -> Option<DType> {
        let graph = self.graph();
        graph.data.get(name).map(|id| graph.node(*id).meta.dtype)
    }

    /// Returns the symbolic tensor of an input or output.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// program.set_outputs(&[("y", &y)])?;
    /// assert_eq!(program.value("y")?.dtype(), DType::F32);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// No such name.
    pub fn value(&self, name: &str) -> Result<Tensor> {
        let graph = self.graph();
        let output = graph.outputs.iter().find(|(known, _)| known == name).map(|(_, id)| *id);
        let Some(id) = output.or_else(|| graph.data.get(name).copied()) else {
            let known = graph.outputs.iter().map(|(name, _)| name.clone());
            let known: Vec<String> = known.chain(graph.data.keys().cloned()).collect();
            let problem = format!("is not in the program, which has {known:?}");
            return Err(Error::Feed { arg: "fetch", name: name.into(), problem });
        };
        let meta = graph.node(id).meta.clone();
        drop(graph);
        Ok(Tensor::of_value(Symbolic::new(&self.recorder(), id, meta, None), History::default()))
    }

    /// Ends the recording: a later call on a symbolic tensor of this program is an error. Plans can
    /// still be made.
    ///
    /// ```
    /// # use inlay::{DType, Program};
    /// let program = Program::new();
    /// let x = program.data("x", &[None], DType::F32)?;
    /// program.close();
    /// assert!(x.add(1).is_err());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
    }

    /// The number of nodes.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// assert_eq!(program.len(), 3);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.graph().nodes.len()
    }

    /// Whether the program has no nodes.
    ///
    /// ```
    /// # use inlay::Program;
    /// assert!(Program::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the node that a tensor stands for in this program. A tensor with elements becomes a
    /// constant.
    pub(super) fn id_of(&self, op: &'static str, tensor: &Tensor) -> Result<Id> {
        match tensor.symbolic() {
            Some(symbolic) if self.has_recorded(symbolic) => symbolic.id(op),
            Some(_) => Err(Error::OtherProgram { op }),
            None => self.graph().constant(op, tensor),
        }
    }

    /// Makes plans read `input` instead of computing `value`. Each run must be given the same
    /// elements that it would compute. A value that no operation computes is read as before.
    pub(crate) fn substitute(&self, value: &Tensor, input: &Tensor) -> Result<()> {
        let (value, input) = (self.id_of("program", value)?, self.id_of("program", input)?);
        let mut graph = self.graph();
        // The input was added first, so that plans, which follow the order of nodes, have it.
        if matches!(graph.node(value).what, What::Op(_)) && input < value {
            graph.instead.insert(value, input);
        }
        Ok(())
    }

    /// If a function is traced, computes the sizes of a new node in the call.
    fn follow_sizes(&self, id: Id) {
        let Some(call) = &self.0.call else { return };
        let graph = self.graph();
        let (node, defined) = (graph.node(id), graph.defined_by(id));
        if let (What::Op(op), false) = (&node.what, defined.is_empty()) {
            let input = |id: &Id| graph.node(*id).meta.clone();
            call.follow(op, &node.inputs.iter().map(input).collect::<Vec<_>>(), &defined);
        }
    }

    /// Whether a symbolic tensor stands for a value of this program.
    fn has_recorded(&self, symbolic: &Symbolic) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(symbolic.program()), Arc::as_ptr(&self.0))
    }

    /// Returns the plan that computes `fetch`. With `donate`, runs may write into their feeds.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// let plan = program.plan(&[&y], false)?;
    /// println!("{plan}");
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Tensors of another program.
    pub fn plan(&self, fetch: &[&Tensor], donate: bool) -> Result<Arc<Plan>> {
        let ids = fetch.iter().map(|tensor| self.id_of("plan", tensor));
        let key = (ids.collect::<Result<Vec<Id>>>()?, donate);
        let mut plans = lock(&self.0.plans);
        if let Some((_, plan)) = plans.iter().find(|(known, _)| *known == key) {
            return Ok(Arc::clone(plan));
        }
        // Nodes are never changed or removed, so a plan stays valid.
        let plan = Arc::new(Plan::new(&self.graph(), &key)?);
        if plans.len() >= PLANS {
            plans.remove(0);
        }
        plans.push((key, Arc::clone(&plan)));
        Ok(plan)
    }

    /// Runs the program on the values of `feed` and returns the values of `fetch`.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// let results = program.run(&[("x", &Tensor::from([1.0f32, 2.0]))], &[&y])?;
    /// assert_eq!(results[0].to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Names, dtypes or shapes of `feed` that differ from the program's inputs, and errors of
    /// operations. A run that fails changes neither the feeds nor later runs.
    pub fn run(&self, feed: &[(&str, &Tensor)], fetch: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.run_plan(&*self.plan(fetch, false)?, feed)
    }

    /// Like [`Program::run`], but the run may write into the memory of a feed at its last use, even
    /// if the run then fails.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// let results = program.run_donated(&[("x", &Tensor::from([1.0f32, 2.0]))], &[&y])?;
    /// assert_eq!(results[0].to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Program::run`].
    pub fn run_donated(&self, feed: &[(&str, &Tensor)], fetch: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.run_plan(&*self.plan(fetch, true)?, feed)
    }

    fn run_plan(&self, plan: &Plan, feed: &[(&str, &Tensor)]) -> Result<Vec<Tensor>> {
        // A feed that this plan does not need is accepted, but its name must be that of an input.
        let graph = self.graph();
        if let Some((name, _)) = feed.iter().find(|(name, _)| !graph.data.contains_key(*name)) {
            let mut known: Vec<&str> = graph.data.keys().map(String::as_str).collect();
            known.sort_unstable();
            let problem = format!("is not among the program's inputs {known:?}");
            return Err(Error::Feed { arg: "feed", name: (*name).into(), problem });
        }
        drop(graph);
        plan.run(feed)
    }
}

impl Recorder for Shared {
    fn append(
        self: Arc<Self>,
        op: AnyOp,
        inputs: &[&Tensor],
        meta: &Meta,
        caller: &Location<'_>,
    ) -> Result<Id> {
        let site = Site::now(caller);
        let program = Program(self);
        let make = || {
            if program.0.closed.load(Ordering::Acquire) {
                let (op, arg) = (op.name(), "an input");
                let got = "a symbolic tensor of a traced function that has returned".into();
                let expected = "a tensor that the function returned".into();
                return Err(Error::Argument { op, arg, got, expected });
            }
            let mut ids: SmallVec<[Id; 4]> = SmallVec::new();
            for input in inputs {
                ids.push(program.id_of(op.name(), input)?);
            }
            let graph = program.graph();
            for dim in op.sizes() {
                if let Dim::Symbol(symbol) = dim
                    && !graph.sizes.contains_key(&symbol)
                {
                    return Err(Error::OtherProgram { op: op.name() });
                }
            }
            drop(graph);
            let id = program.push(What::Op(op), &ids, meta.clone(), site.clone())?;
            program.follow_sizes(id);
            Ok(id)
        };
        make().map_err(|error| site.locate(error))
    }

    fn locate(&self, error: Error, caller: &Location<'_>) -> Error {
        Site::now(caller).locate(error)
    }

    fn sizes_in_call(&self, shape: &[Dim]) -> Option<Shape> {
        self.call.as_ref()?.of(shape)
    }

    fn note_size_read(&self) {
        self.call.iter().for_each(CallSizes::note_read);
    }
}
