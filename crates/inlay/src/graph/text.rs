//! The text of programs and plans.

use std::fmt;

use inlay_core::Meta;

use super::attributes::attributes;
use super::bind::{Bound, text};
use super::plan::{Origin, Plan};
use super::program::{Graph, Program, What};
use crate::lock::lock;
use crate::symbolic::Id;

/// The name of a node in a listing.
pub(super) fn name(graph: &Graph, id: Id) -> String {
    match &graph.node(id).what {
        What::Data(name) => name.clone(),
        _ => format!("%{id}"),
    }
}

fn line(graph: &Graph, id: Id) -> String {
    let node = graph.node(id);
    let what = match &node.what {
        What::Data(_) => "data".to_owned(),
        What::Constant(_) => "constant".to_owned(),
        What::Op(op) => {
            let inputs = node.inputs.iter().map(|input| name(graph, *input));
            let attributes = Some(attributes(op)).filter(|text| !text.is_empty());
            let arguments: Vec<String> = inputs.chain(attributes).collect();
            format!("{}({})", op.name(), arguments.join(", "))
        }
    };
    let site = node.site.text().map(|site| format!("  # {site}")).unwrap_or_default();
    format!("{}: {} = {what}{site}", name(graph, id), text(&node.meta))
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let graph = self.graph();
        writeln!(f, "program of {} nodes", graph.nodes.len())?;
        for id in 0..graph.nodes.len() as Id {
            writeln!(f, "  {}", line(&graph, id))?;
        }
        for (output, id) in &graph.outputs {
            writeln!(f, "  -> {output}: {}", name(&graph, *id))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program of {} nodes", self.len())
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan of {} steps", self.steps.len())
    }
}

fn bytes(meta: &Meta) -> Option<usize> {
    Some(meta.numel()?.saturating_mul(meta.dtype.size()))
}

impl Plan {
    /// The number of copies of a whole tensor that writing in place avoids.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// let written = y.slice_scatter(&Tensor::from([0.0f32]), (0, ..1))?;
    /// assert_eq!(program.plan(&[&written], false)?.copies_saved(), 1);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn copies_saved(&self) -> usize {
        self.steps.iter().filter(|step| step.in_place).count()
    }

    /// The peak memory of a run in bytes, without feeds, constants and scratch memory of
    /// operations. It is for the feed shapes of the last run, or for declared shapes. `None` if
    /// sizes are not known yet.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// let plan = program.plan(&[&y], false)?;
    /// assert_eq!(plan.peak_memory(), None);
    /// plan.run(&[("x", &Tensor::from([1.0f32; 8]))])?;
    /// assert_eq!(plan.peak_memory(), Some(32));
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn peak_memory(&self) -> Option<usize> {
        let last = lock(&self.bound).last().cloned();
        self.peak(last.as_deref())
    }

    fn peak(&self, bound: Option<&Bound>) -> Option<usize> {
        let meta = |value: usize| match bound {
            Some(bound) => &bound.metas[value],
            None => &self.values[value].meta,
        };
        // Memory is held from the step that allocates it to the last use of any value in it.
        let mut ends = vec![0; self.values.len()];
        for value in &self.values {
            ends[value.root] = ends[value.root].max(value.last_use);
        }
        let mut leaving = vec![0usize; self.steps.len()];
        let (mut held, mut peak) = (0usize, 0usize);
        for (at, step) in self.steps.iter().enumerate() {
            let value = &self.values[step.value];
            if value.root == step.value {
                let size = bytes(meta(step.value))?;
                held = held.saturating_add(size);
                if let Some(leaving) = leaving.get_mut(ends[step.value]) {
                    *leaving += size;
                }
            }
            peak = peak.max(held);
            held -= leaving[at];
        }
        Some(peak)
    }

    fn name(&self, value: usize) -> String {
        match self.values[value].origin {
            Origin::Feed(feed) => self.feeds[feed].name.clone(),
            Origin::Constant(k) => format!("constant {k}"),
            Origin::Step(_) => format!("%{}", self.values[value].node),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (counts, last) = (self.counts, lock(&self.bound).last().cloned());
        writeln!(
            f,
            "plan: {} steps of {} nodes ({} not needed, {} equal to others, {} known beforehand, {} \
             joined to the next)",
            self.steps.len(),
            counts.nodes,
            counts.dead,
            counts.merged,
            counts.folded,
            counts.joined
        )?;
        for step in &self.steps {
            let inputs: Vec<String> = step.inputs.iter().map(|input| self.name(*input)).collect();
            let meta = match &last {
                Some(bound) => &bound.metas[step.value],
                None => &self.values[step.value].meta,
            };
            let first = inputs.first().map_or("", String::as_str);
            let how = match (step.in_place, step.op.is_view()) {
                (true, _) => format!("in place of {first}"),
                (_, true) => format!("a view of {first}"),
                _ => "fresh".to_owned(),
            };
            let name = self.name(step.value);
            let call = format!("{}({})", step.op.name(), inputs.join(", "));
            writeln!(f, "  {name}: {} = {call}, {how}", text(meta))?;
        }
        for fetch in &self.fetches {
            writeln!(f, "  -> {}", self.name(fetch.value))?;
        }
        writeln!(f, "copies saved: {}", self.copies_saved())?;
        match self.peak(last.as_deref()) {
            Some(peak) => writeln!(f, "peak memory: {peak} bytes beside feeds and constants"),
            None => writeln!(f, "peak memory: depends on sizes that are not known yet"),
        }
    }
}
