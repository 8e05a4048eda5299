//! Pairs of operations that become one step, so that the value between them is not stored.

use inlay_core::{DType, Meta};
use smallvec::smallvec;

use super::plan::{Builder, Origin};
use crate::Scatter;
use crate::op::AnyOp;
use crate::ops::{IndexSelect, Pad, SelectedScatter};

impl Builder<'_> {
    /// Joins a selection of rows to the scatter that is its only user. The scatter then reads the
    /// rows in place.
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

    /// If the operation at `at` is a scatter whose updates are a selection, joins the two. Returns
    /// the value between them if it is no longer needed.
    fn join_selection(&mut self, at: usize, uses: &[usize]) -> Option<Option<usize>> {
        let scatter = self.ops[at].0.downcast::<Scatter>()?;
        let &[x, index, updates] = &self.ops[at].1[..] else { return None };
        // An operation whose result has no other user.
        let only = |value: usize| match self.values[value].origin {
            Origin::Step(step) if uses[value] == 1 => Some(step),
            _ => None,
        };
        let mut step = only(updates)?;
        let pad = self.ops[step].0.downcast::<Pad>();
        if pad.is_some() {
            step = only(self.ops[step].1[0])?;
        }
        let select = self.ops[step].0.downcast::<IndexSelect>()?;
        let &[rows, selector] = &self.ops[step].1[..] else { return None };
        // After joining, the rows are read later. A write into them before that would then need a
        // copy.
        let mut between = self.ops[step + 1..at].iter();
        if between.any(|(op, inputs, _)| op.writes() && inputs.first() == Some(&rows)) {
            return None;
        }
        let of_rows = &self.values[rows].meta;
        let (check, joined) = SelectedScatter::join(select, pad, scatter, of_rows)?;
        let padded = pad.map(|_| updates);
        let selected = self.ops[step].2;
        self.ops[at].0 = AnyOp::new(joined);
        self.ops[at].1 = smallvec![x, index, rows, selected];
        // The index is checked where the selection was, so an error names its line.
        self.ops[step].0 = AnyOp::new(check);
        self.ops[step].1 = smallvec![selector];
        let shape = self.values[selector].meta.shape.clone();
        self.values[selected].meta = Meta { dtype: DType::I64, shape };
        Some(padded)
    }
}
