//! An `index_select` joined with the `scatter` that uses its rows. Plans join them.

use inlay_core::{Dim, Dims, Meta, ResolvedSlice, Result, axis_of};
use smallvec::SmallVec;

use super::block::Pad;
use super::flat::CheckedIndex;
use super::index_select::IndexSelect;
use super::scatter::Scatter;
use crate::array::Array;
use crate::declare::Operation;
use crate::device;
use crate::op::{Inferred, Inputs, Op, Out};

/// Selects rows of a tensor by one index and reduces them at the places that another index names,
/// like messages along the edges of a graph. The selected rows are never written to memory. (A
/// training step that selects 200,000 rows of 256 bytes out of 20,000 takes 9 ms instead of 21 ms,
/// and on two threads 5 ms instead of 17 ms.)
///
/// The inputs are those of the scatter, with two inputs in place of its updates: the tensor of rows
/// and the index that selects them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SelectedScatter {
    select: IndexSelect,
    /// The operation between the two in a gradient, where there may be more updates than entries.
    pad: Option<Pad>,
    scatter: Scatter,
    axis: usize,
}

/// What inference found for each of the joined operations.
#[derive(Debug)]
pub(crate) struct Joined {
    select: Inferred<usize>,
    pad: Option<Inferred<()>>,
    scatter: Inferred<usize>,
}

impl SelectedScatter {
    /// Joins the two operations. `rows` is the tensor from which rows are selected. Also returns
    /// the check of the selecting index, which stays at the position of the selection. Returns
    /// `None` if the operations use different axes.
    pub(crate) fn join(
        select: &IndexSelect,
        pad: Option<&Pad>,
        scatter: &Scatter,
        rows: &Meta,
    ) -> Option<(CheckedIndex, Self)> {
        let axis = axis_of(scatter.name(), "axis", scatter.axis, rows.rank()).ok()?;
        if axis_of(select.name(), "axis", select.axis, rows.rank()) != Ok(axis) {
            return None;
        }
        let check = CheckedIndex { name: select.name, axis, size: rows.shape[axis], number: None };
        let (select, pad) = (select.clone(), pad.cloned());
        Some((check, SelectedScatter { select, pad, scatter: *scatter, axis }))
    }
}

impl Op for SelectedScatter {
    type Inputs = Inputs<4>;
    type Found = Joined;
    const WRITES: bool = true;
    // Plans are made from programs that already contain their gradients.
    const HAS_GRADIENT: bool = false;

    fn operation(&self) -> &'static Operation {
        self.scatter.operation()
    }

    fn infer(&self, [x, index, rows, selected]: &[Meta; 4]) -> Result<Inferred<Joined>> {
        let select = self.select.infer(&[rows.clone(), selected.clone()])?;
        let mut updates = select.meta.clone();
        let mut padded = None;
        if let Some(pad) = &self.pad {
            let inferred = pad.infer(&[updates])?;
            updates = inferred.meta.clone();
            padded = Some(inferred);
        }
        let scatter = self.scatter.infer(&[x.clone(), index.clone(), updates])?;
        Inferred::new(scatter.meta.clone(), Joined { select, pad: padded, scatter })
    }

    fn run(
        &self,
        [x, index, rows, selected]: &[&Array; 4],
        inferred: &Inferred<Joined>,
        out: Out,
    ) -> Result<Array> {
        let (op, axis) = (self.name(), self.axis);
        let (entries, have) = (index.layout.numel(), selected.layout.numel());
        // A pad may add rows past the index, which are ignored. A pad that makes each row longer
        // needs the separate operations.
        let whole = (0..x.shape().len()).all(|k| k == axis || x.shape()[k] == rows.shape()[k]);
        let enough = index.shape().len() == 1 && entries <= have;
        if whole && enough && device::selects(x, axis, entries, rows) {
            let used = ResolvedSlice::run(0, entries);
            let selected = selected.with_layout(selected.layout.slice(0, used));
            let (to, old) = out.of(op, x)?;
            let updates = (*rows, (self.select.name(), "index", &selected));
            let combine = self.scatter.combine;
            device::scatter_selected(&to, old, axis, (op, "index", index), updates, combine)?;
            return Ok(to);
        }
        let Joined { select, pad, scatter } = &inferred.found;
        let mut updates = self.select.run(&[rows, selected], select, Out::Fresh)?;
        if let (Some(op), Some(pad)) = (&self.pad, pad) {
            updates = op.run(&[&updates], pad, Out::Fresh)?;
        }
        self.scatter.run(&[x, index, &updates], scatter, out)
    }

    fn sizes(&self) -> Dims {
        self.pad.as_ref().map_or_else(SmallVec::new, Op::sizes)
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        let pad = self.pad.as_ref()?.with_sizes(sizes)?;
        Some(SelectedScatter { pad: Some(pad), ..self.clone() })
    }
}
