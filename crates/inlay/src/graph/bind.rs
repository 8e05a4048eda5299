//! A plan for known feed shapes: symbols become numbers, and shapes are checked once for each set
//! of feed shapes.

use std::collections::HashMap;
use std::sync::Arc;

use inlay_core::{Dim, Dims, Error, Meta, Result, ShapeText, Symbol, may_equal};

use super::plan::{Plan, PlanValue, Step};
use crate::lock::lock;
use crate::op::{AnyOp, Checked};

/// The number of sets of feed shapes that are kept for a plan.
const KEPT: usize = 8;

/// The sizes that symbols stand for.
pub(super) type SymbolSizes = HashMap<Symbol, usize>;

/// A plan for feeds of certain shapes.
pub(super) struct Bound {
    feeds: Vec<Meta>,
    pub(super) steps: Vec<Ready>,
    /// The sizes that are known before any step has run.
    pub(super) sizes: SymbolSizes,
    /// The dtype and the known sizes of each value.
    pub(super) metas: Vec<Meta>,
}

/// What is known of a step before the run.
pub(super) enum Ready {
    /// Its sizes are known, and its inputs have passed inference.
    Checked(Box<dyn Checked>),
    /// It depends on sizes of values that earlier steps compute.
    Late,
}

/// Returns the operation with numbers for its symbols, or `None` if one is not known.
pub(super) fn sized(op: &AnyOp, sizes: &SymbolSizes) -> Option<AnyOp> {
    let dims = op.sizes();
    if dims.is_empty() {
        return Some(op.clone());
    }
    let dims: Option<Dims> = dims
        .iter()
        .map(|dim| match dim {
            Dim::Known(_) => Some(*dim),
            Dim::Symbol(symbol) => sizes.get(symbol).copied().map(Dim::Known),
        })
        .collect();
    dims.map(|dims| op.with_sizes(&dims).unwrap_or_else(|| op.clone()))
}

/// Records the sizes of a value.
pub(super) fn learn(sizes: &mut SymbolSizes, value: &PlanValue, shape: &[Dim]) {
    for (symbol, axis) in &value.defines {
        if let Some(size) = shape.get(*axis).and_then(|dim| dim.known()) {
            sizes.insert(*symbol, size);
        }
    }
}

impl Plan {
    /// Returns the plan for feeds of these dtypes and shapes, in the order of the plan's inputs.
    pub(super) fn bind(&self, metas: &[Meta]) -> Result<Arc<Bound>> {
        let mut kept = lock(&self.bound);
        if let Some(at) = kept.iter().position(|bound| bound.feeds == metas) {
            return Ok(Arc::clone(&kept[at]));
        }
        let bound = Arc::new(self.bind_anew(metas)?);
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(Arc::clone(&bound));
        Ok(bound)
    }

    fn bind_anew(&self, feeds: &[Meta]) -> Result<Bound> {
        let mut sizes = SymbolSizes::new();
        let mut metas: Vec<Meta> = self.values.iter().map(|value| value.meta.clone()).collect();
        for (feed, meta) in self.feeds.iter().zip(feeds) {
            let declared = &self.values[feed.value].meta;
            if meta.dtype != declared.dtype {
                let (name, got, expected) = (feed.name.clone(), meta.dtype, declared.dtype);
                return Err(Error::FeedDType { name, got, expected });
            }
            if !may_equal(&meta.shape, &declared.shape) {
                let (want, got) = (text(declared), text(meta));
                let problem = format!("is {got}, expected {want}");
                return Err(Error::Feed { arg: "feed", name: feed.name.clone(), problem });
            }
            learn(&mut sizes, &self.values[feed.value], &meta.shape);
            metas[feed.value] = meta.clone();
        }
        let mut steps = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            steps.push(self.prepare(step, &mut metas, &mut sizes)?);
        }
        Ok(Bound { feeds: feeds.to_vec(), steps, sizes, metas })
    }

    fn prepare(&self, step: &Step, metas: &mut [Meta], sizes: &mut SymbolSizes) -> Result<Ready> {
        let inputs: Vec<Meta> = step.inputs.iter().map(|input| metas[*input].clone()).collect();
        let known = |meta: &Meta| meta.shape.iter().all(|dim| dim.known().is_some());
        let op = sized(&step.op, sizes).filter(|_| inputs.iter().all(known));
        let Some(op) = op else {
            // Its shape was inferred as far as possible when the program was built.
            return Ok(Ready::Late);
        };
        let checked = op.check(&inputs).map_err(|error| step.site.locate(error))?;
        learn(sizes, &self.values[step.value], &checked.meta().shape);
        metas[step.value] = checked.meta().clone();
        Ok(Ready::Checked(checked))
    }
}

/// Returns a text such as `float32 [2, ?]`.
pub(super) fn text(meta: &Meta) -> String {
    format!("{} {}", meta.dtype, ShapeText::of(&meta.shape))
}
