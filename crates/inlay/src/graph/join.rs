//! Operations of a plan that are done at once, without what is between them.

use inlay_core::{DType, Meta};
use smallvec::smallvec;

use super::plan::{Builder, Origin};
use crate::Scatter;
use crate::op::AnyOp;
use crate::ops::{Block, IndexSelect, SelectedScatter, WriteRegion};

impl Builder<'_> {
    /// Lets rows that are selected for one scatter alone be read by it, where they are.
    pub(super) fn join_selections(&mut self, fetched: &[usize]) {
        let mut uses = vec![0; self.values.len()];
        let inputs = self.ops.iter().flat_map(|(_, inputs, _)| inputs);
        inputs.chain(fetched).for_each(|value| uses[*value] += 1);
        let mut gone = vec![false; self.values.len()];
        for at in 0..self.ops.len() {
            if let Some(pad) = self.join_selection(at, &uses) {
                self.counts.joined += 1;
                pad.into_iter().for_each(|value| gone[value] = true);
            }
        }
        self.ops.retain(|(_, _, value)| !gone[*value]);
        for (at, (_, _, value)) in self.ops.iter().enumerate() {
            self.values[*value].origin = Origin::Step(at);
        }
    }

    /// Joins the scatter that stands at `at`, if it is one, to the selection of its updates; gives the
    /// value between them that is not needed any more, if there is one.
    fn join_selection(&mut self, at: usize, uses: &[usize]) -> Option<Option<usize>> {
        let scatter = self.ops[at].0.downcast::<Scatter>()?;
        let &[x, index, updates] = &self.ops[at].1[..] else { return None };
        // The operation whose result is used here alone.
        let only = |value: usize| match self.values[value].origin {
            Origin::Step(step) if uses[value] == 1 => Some(step),
            _ => None,
        };
        let mut step = only(updates)?;
        let pad = self.ops[step].0.downcast::<WriteRegion<Block>>();
        let pad = pad.map(|pad| (pad, self.ops[step].1[0]));
        if pad.is_some() {
            step = only(self.ops[step].1[1])?;
        }
        let select = self.ops[step].0.downcast::<IndexSelect>()?;
        let &[rows, selector] = &self.ops[step].1[..] else { return None };
        // Read later, the rows could not be written in place before.
        let mut between = self.ops[step + 1..at].iter();
        if between.any(|(op, inputs, _)| op.writes() && inputs.first() == Some(&rows)) {
            return None;
        }
        let of_rows = &self.values[rows].meta;
        let (check, joined) =
            SelectedScatter::join(select, pad.map(|(pad, _)| pad), scatter, of_rows)?;
        let selected = self.ops[step].2;
        let base = pad.map(|(_, base)| base);
        self.ops[at].0 = AnyOp::new(joined);
        self.ops[at].1 = [x, index, rows, selected].into_iter().chain(base).collect();
        // The check stays where the selection was: what is wrong with it is told there.
        self.ops[step].0 = AnyOp::new(check);
        self.ops[step].1 = smallvec![selector];
        let shape = self.values[selector].meta.shape.clone();
        self.values[selected].meta = Meta { dtype: DType::I64, shape };
        Some(base.map(|_| updates))
    }
}
