//! One run of a plan: steps run in order, and each result stays in its slot until its last use.

use std::borrow::Cow;
use std::sync::Arc;

use inlay_core::{Error, Meta, Result};
use smallvec::SmallVec;

use super::bind::{Bound, Ready, SymbolSizes, learn, sized};
use super::plan::{Fetch, Operand, Origin, Plan, Step};
use crate::array::{Array, Destination};
#[cfg(feature = "gpu")]
use crate::lock::lock;
use crate::op::{Checked, Out};
use crate::placement::goes_along;
use crate::{Device, Tensor, current_device, device};

/// The values of one run.
struct State<'p> {
    plan: &'p Plan,
    constants: &'p [Array],
    bound: &'p Bound,
    slots: Vec<Option<Array>>,
    /// SymbolSizes that steps of this run have computed.
    late: Cow<'p, SymbolSizes>,
    /// For each feed, whether its memory may be written.
    donated: SmallVec<[bool; 8]>,
    /// Memory into which the results may be written; empty if there is none.
    outputs: &'p [&'p Tensor],
    /// Whether a result that is a feed is returned as it is. Otherwise it is copied.
    shares: bool,
}

impl Plan {
    /// Runs the plan on the values of `feed` and returns the values that the plan fetches.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// let plan = program.plan(&[&y], false)?;
    /// let results = plan.run(&[("x", &Tensor::from([3.0f32]))])?;
    /// assert_eq!(results[0].to_vec::<f32>()?, [6.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Inputs that are missing or have another dtype or shape, and errors of operations. Feeds that
    /// were not donated are unchanged.
    pub fn run(&self, feed: &[(&str, &Tensor)]) -> Result<Vec<Tensor>> {
        let mut fed: SmallVec<[&Tensor; 8]> = SmallVec::new();
        for wanted in &self.feeds {
            let found = feed.iter().find(|(name, _)| *name == wanted.name);
            let Some((name, tensor)) = found else {
                let given: Vec<&str> = feed.iter().map(|(name, _)| *name).collect();
                let want = super::bind::text(&self.values[wanted.value].meta);
                let problem = format!("is missing, expected {want}; got {given:?}");
                return Err(Error::Feed { arg: "feed", name: wanted.name.clone(), problem });
            };
            if tensor.is_symbolic() {
                let problem = "is a symbolic tensor, expected one with elements".into();
                return Err(Error::Feed { arg: "feed", name: (*name).into(), problem });
            }
            fed.push(tensor);
        }
        self.run_in_order(&fed, &[], false)
    }

    /// The names of the inputs that the plan needs, in the order in which they were added.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// let plan = program.plan(&[&y], false)?;
    /// assert_eq!(plan.inputs().collect::<Vec<_>>(), ["x"]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.feeds.iter().map(|feed| feed.name.as_str())
    }

    /// Like [`Plan::run`], with the feeds in the order of [`Plan::inputs`].
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// let plan = program.plan(&[&y], false)?;
    /// assert_eq!(plan.call(&[&Tensor::from([3.0f32])])?[0].to_vec::<f32>()?, [6.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Plan::run`].
    pub fn call(&self, feed: &[&Tensor]) -> Result<Vec<Tensor>> {
        if feed.len() != self.feeds.len() {
            let (op, arg, got) = ("run", "the number of feeds", feed.len().to_string());
            return Err(Error::Argument { op, arg, got, expected: self.feeds.len().to_string() });
        }
        feed.iter().try_for_each(|tensor| tensor.expect_elements("run"))?;
        self.run_in_order(feed, &[], false)
    }

    /// Like [`Plan::call`], but each result may be written into the memory of its output. The
    /// outputs overlap no feed.
    pub(crate) fn call_into(&self, feed: &[&Tensor], outputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.run_in_order(feed, outputs, false)
    }

    /// Like [`Plan::call`], but a result that is a feed is that feed itself, not a copy.
    pub(crate) fn call_shared(&self, feed: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.run_in_order(feed, &[], true)
    }

    fn run_in_order(
        &self,
        feed: &[&Tensor],
        outputs: &[&Tensor],
        shares: bool,
    ) -> Result<Vec<Tensor>> {
        let metas: SmallVec<[Meta; 8]> = feed.iter().map(|tensor| tensor.array().meta()).collect();
        let bound = self.bind(&metas)?;
        let device = self.place(feed)?;
        let constants = self.constants_on(device)?;
        let mut slots = vec![None; self.slots];
        for (wanted, tensor) in self.feeds.iter().zip(feed) {
            slots[wanted.slot] = Some(match tensor.device() == device {
                true => tensor.array().clone(),
                false => device::to_device("run", tensor.array(), device)?,
            });
        }
        let takes = self.steps.iter().any(|step| step.feed.is_some())
            || self.fetches.iter().any(|fetch| fetch.feed.is_some());
        let donated = feed.iter().map(|tensor| {
            let array = tensor.array();
            // Memory that two feeds share must not be written: the other feed is still read.
            let overlaps = |other: &&&Tensor| array.overlaps(other.array());
            takes
                && feed.iter().filter(overlaps).count() == 1
                && array.expect_target("run", "feed").is_ok()
        });
        let donated = donated.collect();
        let late = Cow::Borrowed(&bound.sizes);
        let state = State {
            plan: self,
            constants: &constants,
            bound: &bound,
            slots,
            late,
            donated,
            outputs,
            shares,
        };
        let locate = |at: usize, error| match self.steps.get(at) {
            Some(step) => step.site.locate(error),
            None => error,
        };
        device::marked(device, locate, |mark| state.run(mark))
    }

    /// Returns the device of a run, which is that of its feeds. Plain numbers are copied to it.
    fn place(&self, feed: &[&Tensor]) -> Result<Device> {
        let Some(first) = feed.iter().position(|tensor| !goes_along(tensor)) else {
            let numbers = feed.first().map(|tensor| tensor.device());
            return Ok(numbers.unwrap_or_else(current_device));
        };
        let device = feed[first].device();
        let stray = feed.iter().position(|tensor| tensor.device() != device && !goes_along(tensor));
        match stray {
            None => Ok(device),
            Some(at) => {
                let name = |at: usize| format!("feed {:?}", self.feeds[at].name);
                feed[at].expect_device_of("run", &name(at), feed[first], &name(first))?;
                Ok(device)
            }
        }
    }

    /// Returns the constants on the device of a run.
    fn constants_on(&self, device: Device) -> Result<Arc<Vec<Array>>> {
        #[cfg(feature = "gpu")]
        if device == Device::Gpu {
            let current = inlay_gpu::current()?;
            let mut kept = lock(&self.on_gpu);
            // Constants of a lost device are uploaded again.
            let valid = |array: &Array| Arc::ptr_eq(array.buffer.gpu().gpu(), &current);
            if let Some(constants) = kept.as_ref().filter(|kept| kept.iter().all(valid)) {
                return Ok(Arc::clone(constants));
            }
            let copy = |array: &Array| device::to_device("run", array, device);
            let copies = self.constants.iter().map(copy).collect::<Result<Vec<_>>>()?;
            return Ok(Arc::clone(kept.insert(Arc::new(copies))));
        }
        let _ = device;
        Ok(Arc::clone(&self.constants))
    }
}

impl State<'_> {
    /// Runs all steps, and calls `mark` with the number of each step before it runs.
    fn run(mut self, mark: &dyn Fn(usize) -> Result<()>) -> Result<Vec<Tensor>> {
        for (at, step) in self.plan.steps.iter().enumerate() {
            mark(at)?;
            self.step(at, step)?;
        }
        mark(self.plan.steps.len())?;
        self.fetch()
    }

    fn get(&self, place: Operand) -> &Array {
        match place {
            Operand::Constant(k) => &self.constants[k],
            Operand::Slot(slot) => match &self.slots[slot] {
                Some(array) => array,
                None => unreachable!("a value is there until its last use"),
            },
        }
    }

    fn step(&mut self, at: usize, step: &Step) -> Result<()> {
        let late;
        let (op, expected): (&dyn Checked, &Meta) = match &self.bound.steps[at] {
            Ready::Checked(op) => (&**op, &self.bound.metas[step.value]),
            Ready::Late => {
                let metas: SmallVec<[Meta; 3]> =
                    step.args.iter().map(|place| self.get(*place).meta()).collect();
                let op = sized(&step.op, &self.late)
                    .unwrap_or_else(|| unreachable!("sizes come before what needs them"));
                late = op.check(&metas)?;
                (&*late, late.meta())
            }
        };
        let result = {
            let arrays: SmallVec<[&Array; 4]> =
                step.args.iter().map(|place| self.get(*place)).collect();
            let out = match arrays.first() {
                Some(x) if step.in_place && self.may_write(step, x) => Out::InPlace,
                _ => Out::Fresh,
            };
            let _offered = self.offer(step.value, out);
            op.run(&arrays, out)?
        };
        // Later steps were checked against the inferred shape.
        result.expect_meta(op.name(), expected)?;
        for slot in &step.frees {
            self.slots[*slot] = None;
        }
        let value = &self.plan.values[step.value];
        let unknown = |(symbol, _): &(_, _)| !self.late.contains_key(symbol);
        if value.defines.iter().any(unknown) {
            learn(self.late.to_mut(), value, &result.meta().shape);
        }
        // A result without users is dropped at once.
        self.slots[step.to] = (value.last_use != at).then_some(result);
        Ok(())
    }

    /// Offers the memory of an output to the step that computes it.
    fn offer(&self, value: usize, out: Out) -> Option<Destination> {
        if self.outputs.is_empty() || out == Out::InPlace {
            return None;
        }
        let is_made = |fetch: &Fetch| fetch.value == value || fetch.passed == Some(value);
        let at = self.plan.fetches.iter().position(is_made)?;
        let output = self.outputs[at].array();
        // A value in this memory may be an input of the step.
        let is_used = self.slots.iter().flatten().any(|held| held.buffer.same_as(&output.buffer));
        (!is_used).then(|| Destination::offer(output))
    }

    /// Whether this run may write the memory of `x`: it allocated the memory, or it was donated.
    fn may_write(&self, step: &Step, x: &Array) -> bool {
        let given = step.feed.is_some_and(|feed| self.donated[feed]);
        if given {
            x.buffer.count_write(false);
        }
        (given || x.buffer.is_sole()) && x.expect_target("run", "x").is_ok()
    }

    /// Returns the results, none of which shares memory with a feed, a constant or another result.
    fn fetch(mut self) -> Result<Vec<Tensor>> {
        let fetches = &self.plan.fetches;
        let mut results: Vec<Array> =
            fetches.iter().map(|fetch| self.get(fetch.place).clone()).collect();
        self.slots.clear();
        for (at, (fetch, result)) in fetches.iter().zip(&mut results).enumerate() {
            // Donated memory becomes the memory of one result only.
            let given = fetch.feed.is_some_and(|feed| std::mem::take(&mut self.donated[feed]));
            let output = self
                .outputs
                .get(at)
                .is_some_and(|output| result.buffer.same_as(&output.array().buffer));
            let feed =
                self.shares && matches!(self.plan.values[fetch.value].origin, Origin::Feed(_));
            if !given && !output && !feed && !result.buffer.is_sole() {
                *result = device::to_contiguous("run", result)?;
            }
        }
        Ok(results.into_iter().map(Tensor::from_array).collect())
    }
}
