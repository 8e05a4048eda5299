//! The plan of a program: which operations run, in which order, and which write into their inputs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use inlay_core::{Dim, Dims, Meta, Result, Symbol};
use smallvec::SmallVec;

use super::bind::Bound;
use super::program::{Graph, PlanKey, What};
use crate::array::Array;
use crate::op::{AnyOp, Out};
use crate::ops::Pad;
use crate::site::Site;
use crate::symbolic::Id;
use crate::{Device, device};

/// The maximum size in bytes of a result that is computed when the plan is made. Such a result is
/// held as long as the plan, and a run can't write into it.
const FOLD: usize = 64 << 10;

/// The maximum size in bytes of constants that are compared by value.
const COMPARE: usize = 64;

/// How a program computes one set of results. A plan is made once and run many times, also by
/// several threads at once.
///
/// ```
/// use inlay::{DType, Program, Tensor};
///
/// # let program = Program::new();
/// # let x = program.data("x", &[None], DType::F32)?;
/// # let y = (&x * 2)?;
/// let plan = program.plan(&[&y], false)?;
/// let results = plan.run(&[("x", &Tensor::from([1.0f32, 2.0]))])?;
/// assert_eq!(results[0].to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), inlay::Error>(())
/// ```
pub struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) feeds: Vec<Feed>,
    /// The constants on the CPU.
    pub(super) constants: Arc<Vec<Array>>,
    /// The constants on the GPU, after the first run there.
    #[cfg(feature = "gpu")]
    pub(super) on_gpu: Mutex<Option<Arc<Vec<Array>>>>,
    pub(super) fetches: Vec<Fetch>,
    /// The values. A value is identified by its position in this list.
    pub(super) values: Vec<PlanValue>,
    pub(super) slots: usize,
    pub(super) counts: Counts,
    /// The plan for known feed shapes, for the sets of shapes that were used last.
    pub(super) bound: Mutex<Vec<Arc<Bound>>>,
}

/// One value of a plan.
pub(super) struct PlanValue {
    pub(super) meta: Meta,
    pub(super) node: Id,
    /// The value that owned its memory first; the value itself if it has its own memory.
    pub(super) root: usize,
    /// The last step that uses it. Fetched values are used after all steps.
    pub(super) last_use: usize,
    pub(super) origin: Origin,
    /// The symbols that are sizes of this value, with their axes.
    pub(super) defines: SmallVec<[(Symbol, usize); 2]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Feed(usize),
    Constant(usize),
    Step(usize),
}

/// One operation of a run.
pub(super) struct Step {
    pub(super) op: AnyOp,
    pub(super) inputs: SmallVec<[usize; 3]>,
    pub(super) args: SmallVec<[Operand; 3]>,
    pub(super) value: usize,
    pub(super) to: usize,
    /// Whether the result may be written into the first input.
    pub(super) in_place: bool,
    /// The feed that owns the memory of the first input, if it is written.
    pub(super) feed: Option<usize>,
    /// Slots that are not read after this step.
    pub(super) frees: SmallVec<[usize; 2]>,
    pub(super) site: Site,
}

/// Where a step finds an input.
#[derive(Clone, Copy)]
pub(super) enum Operand {
    Slot(usize),
    Constant(usize),
}

/// An input of a run.
pub(super) struct Feed {
    pub(super) name: String,
    pub(super) value: usize,
    pub(super) slot: usize,
}

/// A result of a run.
pub(super) struct Fetch {
    pub(super) place: Operand,
    pub(super) value: usize,
    /// The value that a [`Pad`] passes on as this one, if nothing else uses it.
    pub(super) passed: Option<usize>,
    /// The feed whose memory it may share.
    pub(super) feed: Option<usize>,
}

/// Counts of what planning did with the nodes.
#[derive(Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) nodes: usize,
    pub(super) dead: usize,
    pub(super) merged: usize,
    pub(super) folded: usize,
    pub(super) joined: usize,
}

/// For each node, whether `fetch` needs it.
pub(super) fn needed(graph: &Graph, fetch: &[Id]) -> Vec<bool> {
    let mut live = vec![false; graph.nodes.len()];
    let source = |id: Id| graph.source(id) as usize;
    fetch.iter().for_each(|id| live[source(*id)] = true);
    // A node comes after its inputs.
    for id in (0..graph.nodes.len()).rev() {
        if !live[id] {
            continue;
        }
        let node = &graph.nodes[id];
        node.inputs.iter().for_each(|input| live[source(*input)] = true);
        if let What::Op(op) = &node.what {
            for dim in op.sizes() {
                if let Dim::Symbol(symbol) = dim
                    && let Some((definer, _)) = graph.sizes.get(&symbol)
                {
                    live[source(*definer)] = true;
                }
            }
        }
    }
    live
}

/// The state of planning: nodes become values and operations.
pub(super) struct Builder<'g> {
    graph: &'g Graph,
    pub(super) values: Vec<PlanValue>,
    feeds: Vec<Feed>,
    constants: Vec<Array>,
    pub(super) ops: Vec<(AnyOp, SmallVec<[usize; 3]>, usize)>,
    /// The value of each node.
    of: Vec<usize>,
    /// What the symbols of merged and folded nodes became.
    renamed: HashMap<Symbol, Dim>,
    same_op: HashMap<(AnyOp, SmallVec<[usize; 3]>), usize>,
    same_constant: HashMap<(Meta, Vec<u8>), usize>,
    pub(super) counts: Counts,
}

impl Builder<'_> {
    fn value(&mut self, id: Id, origin: Origin) -> usize {
        let (number, node) = (self.values.len(), self.graph.node(id));
        let meta = node.meta.with_shape(self.rename(&node.meta.shape));
        let defines = self.graph.defined_by(id);
        self.values.push(PlanValue { meta, node: id, root: number, last_use: 0, origin, defines });
        number
    }

    fn rename(&self, dims: &[Dim]) -> Dims {
        let renamed = dims.iter().map(|dim| match dim {
            Dim::Symbol(symbol) => self.renamed.get(symbol).copied().unwrap_or(*dim),
            known => *known,
        });
        renamed.collect()
    }

    /// Makes an existing value the value of a node.
    fn merge(&mut self, id: Id, value: usize) -> usize {
        for (symbol, axis) in self.graph.defined_by(id) {
            self.renamed.insert(symbol, self.values[value].meta.shape[axis]);
        }
        value
    }

    fn constant(&mut self, id: Id, array: &Array) -> Result<usize> {
        let small = array.layout.numel().saturating_mul(array.dtype.size()) <= COMPARE;
        let key = if small { Some((array.meta(), device::load_bytes(array)?)) } else { None };
        if let Some(value) = key.as_ref().and_then(|key| self.same_constant.get(key)).copied() {
            return Ok(self.merge(id, value));
        }
        let value = self.value(id, Origin::Constant(self.constants.len()));
        self.constants.push(array.clone());
        // All sizes of a computed constant are known.
        self.values[value].meta = array.meta();
        self.merge(id, value);
        if let Some(key) = key {
            self.same_constant.insert(key, value);
        }
        Ok(value)
    }

    fn op(&mut self, id: Id, op: &AnyOp) -> Result<usize> {
        let inputs = &self.graph.node(id).inputs;
        let inputs: SmallVec<[usize; 3]> = inputs.iter().map(|id| self.of[*id as usize]).collect();
        let sizes = op.sizes();
        let op = match sizes.is_empty() {
            true => op.clone(),
            false => op.with_sizes(&self.rename(&sizes)).unwrap_or_else(|| op.clone()),
        };
        if let Some(array) = self.fold(&op, &inputs) {
            self.counts.folded += 1;
            return self.constant(id, &array);
        }
        if let Some(value) = self.same_op.get(&(op.clone(), inputs.clone())).copied() {
            self.counts.merged += 1;
            return Ok(self.merge(id, value));
        }
        let value = self.value(id, Origin::Step(self.ops.len()));
        self.same_op.insert((op.clone(), inputs.clone()), value);
        self.ops.push((op, inputs, value));
        Ok(value)
    }

    /// Returns the result if all inputs are constants and it is small. Returns `None` if the
    /// operation fails, so that each run reports the error.
    fn fold(&self, op: &AnyOp, inputs: &[usize]) -> Option<Array> {
        let mut arrays: SmallVec<[&Array; 4]> = SmallVec::new();
        for input in inputs {
            let Origin::Constant(k) = self.values[*input].origin else { return None };
            arrays.push(&self.constants[k]);
        }
        if op.sizes().iter().any(|dim| dim.known().is_none()) {
            return None;
        }
        let metas: SmallVec<[Meta; 3]> = arrays.iter().map(|array| array.meta()).collect();
        let checked = op.check(&metas).ok()?;
        let meta = checked.meta();
        let bytes = meta.numel()?.saturating_mul(meta.dtype.size());
        if bytes > FOLD && !op.is_view() {
            return None;
        }
        let run = || checked.run(&arrays, Out::Fresh);
        let result = device::scoped(Device::Cpu, 0, run).ok()?;
        result.expect_meta(op.name(), meta).ok()?;
        let view = arrays.first().is_some_and(|first| result.buffer.same_as(&first.buffer));
        (view || bytes <= FOLD).then_some(result)
    }
}

impl Plan {
    /// Whether a step or a result reads the elements of feed `k`.
    pub(super) fn reads(&self, k: usize) -> bool {
        let value = self.feeds[k].value;
        self.steps.iter().any(|step| step.inputs.contains(&value))
            || self.fetches.iter().any(|fetch| fetch.value == value)
    }

    pub(super) fn new(graph: &Graph, (fetch, donate): &PlanKey) -> Result<Plan> {
        let live = needed(graph, fetch);
        let mut builder = Builder {
            graph,
            values: Vec::new(),
            feeds: Vec::new(),
            constants: Vec::new(),
            ops: Vec::new(),
            of: vec![usize::MAX; graph.nodes.len()],
            renamed: HashMap::new(),
            same_op: HashMap::new(),
            same_constant: HashMap::new(),
            counts: Counts { nodes: graph.nodes.len(), ..Counts::default() },
        };
        for id in 0..graph.nodes.len() as Id {
            let source = graph.source(id);
            if source != id && live[source as usize] {
                builder.of[id as usize] = builder.merge(id, builder.of[source as usize]);
                continue;
            }
            if !live[id as usize] {
                builder.counts.dead += 1;
                continue;
            }
            builder.of[id as usize] = match &graph.node(id).what {
                What::Data(name) => {
                    let value = builder.value(id, Origin::Feed(builder.feeds.len()));
                    builder.feeds.push(Feed { name: name.clone(), value, slot: 0 });
                    value
                }
                What::Constant(array) => builder.constant(id, array)?,
                What::Op(op) => builder.op(id, op)?,
            };
        }
        let fetched: Vec<usize> = fetch.iter().map(|id| builder.of[*id as usize]).collect();
        builder.join_selections(&fetched);
        Ok(Plan::of_values(builder, &fetched, *donate))
    }

    /// Finds lifetimes, slots, and the operations that may write in place.
    fn of_values(builder: Builder<'_>, fetched: &[usize], donate: bool) -> Plan {
        let Builder { graph, mut values, mut feeds, constants, ops, counts, .. } = builder;
        for (at, (_, inputs, value)) in ops.iter().enumerate() {
            inputs.iter().for_each(|input| values[*input].last_use = at);
            values[*value].last_use = at;
        }
        fetched.iter().for_each(|value| values[*value].last_use = usize::MAX);

        let mut slots = Slots::default();
        let mut slot_of = vec![usize::MAX; values.len()];
        for feed in &mut feeds {
            feed.slot = slots.take();
            slot_of[feed.value] = feed.slot;
        }
        let feed_of = |values: &[PlanValue], value: usize| match values[values[value].root].origin {
            Origin::Feed(feed) => Some(feed),
            _ => None,
        };
        // The values that share memory with each root.
        let mut sharing: HashMap<usize, SmallVec<[usize; 2]>> = HashMap::new();
        let mut steps: Vec<Step> = Vec::with_capacity(ops.len());
        for (at, (op, inputs, value)) in ops.into_iter().enumerate() {
            let first = inputs.first().copied();
            let in_place = op.writes()
                && first.is_some_and(|x| {
                    let root = values[x].root;
                    let owned = match values[root].origin {
                        Origin::Constant(_) => false,
                        Origin::Feed(_) => donate,
                        Origin::Step(_) => true,
                    };
                    let others = sharing.get(&root).into_iter().flatten().chain([&root]);
                    owned
                        && values[x].last_use == at
                        && !inputs[1..].contains(&x)
                        && others
                            .filter(|other| **other != x)
                            .all(|other| values[*other].last_use < at && !inputs.contains(other))
                });
            if let Some(x) = first.filter(|_| in_place || op.is_view()) {
                let root = values[x].root;
                values[value].root = root;
                sharing.entry(root).or_default().push(value);
            }
            let place = |value: usize| match values[value].origin {
                Origin::Constant(k) => Operand::Constant(k),
                _ => Operand::Slot(slot_of[value]),
            };
            let args = inputs.iter().map(|input| place(*input)).collect();
            let mut frees: SmallVec<[usize; 2]> = SmallVec::new();
            for input in &inputs {
                let slot = slot_of[*input];
                if values[*input].last_use == at && slot != usize::MAX && !frees.contains(&slot) {
                    frees.push(slot);
                    slots.give(slot);
                }
            }
            let to = slots.take();
            slot_of[value] = to;
            // A result without users is still computed, because the step may fail or define a size.
            if values[value].last_use == at {
                slots.give(to);
            }
            let feed = first.filter(|_| in_place).and_then(|x| feed_of(&values, x));
            let site = graph.node(values[value].node).site.clone();
            steps.push(Step { op, inputs, args, value, to, in_place, feed, frees, site });
        }
        let fetches = fetched.iter().map(|&value| {
            let place = match values[value].origin {
                Origin::Constant(k) => Operand::Constant(k),
                _ => Operand::Slot(slot_of[value]),
            };
            let feed = feed_of(&values, value).filter(|_| donate);
            let passed = match values[value].origin {
                Origin::Step(at) if steps[at].op.downcast::<Pad>().is_some() => {
                    let part = steps[at].inputs[0];
                    (values[part].last_use == at).then_some(part)
                }
                _ => None,
            };
            Fetch { place, value, passed, feed }
        });
        let fetches = fetches.collect();
        let slots = slots.count;
        Plan {
            steps,
            feeds,
            constants: Arc::new(constants),
            #[cfg(feature = "gpu")]
            on_gpu: Mutex::default(),
            fetches,
            values,
            slots,
            counts,
            bound: Mutex::default(),
        }
    }
}

/// Slots for values. A slot is reused after the last use of its value.
#[derive(Default)]
struct Slots {
    count: usize,
    free: Vec<usize>,
}

impl Slots {
    fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }

    fn give(&mut self, slot: usize) {
        self.free.push(slot);
    }
}
