//! What a gradient rule sees, and what it gives.

use std::sync::Arc;

use inlay_core::{DType, Error, Meta, Result};
use smallvec::SmallVec;

use super::history::History;
use super::node::{Link, Node, Saved};
use crate::Tensor;
use crate::array::Array;

/// The gradients of the inputs, in their order; `None` where there is none.
pub(crate) type Grads = SmallVec<[Option<Tensor>; 3]>;

/// Which values an operation's rule reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Saves {
    /// Bit i for input i.
    pub(crate) inputs: u32,
    pub(crate) output: bool,
}

impl Saves {
    /// The rule needs the gradient alone.
    pub(crate) const NOTHING: Saves = Saves { inputs: 0, output: false };

    /// The rule reads these inputs.
    pub(crate) const fn inputs(which: &[usize]) -> Saves {
        let (mut inputs, mut k) = (0, 0);
        while k < which.len() {
            inputs |= 1 << which[k];
            k += 1;
        }
        Saves { inputs, output: false }
    }

    /// And the result.
    pub(crate) const fn and_output(self) -> Saves {
        Saves { output: true, ..self }
    }
}

/// One step of backward.
pub(crate) struct Rule<'a> {
    pub(super) node: &'a Arc<Node>,
    pub(super) saved: &'a Saved,
    pub(super) upstream: &'a Tensor,
    /// For each input, whether anyone wants its gradient.
    pub(super) wanted: &'a [bool],
}

impl Rule<'_> {
    /// The gradient of the result.
    pub(crate) fn g(&self) -> &Tensor {
        self.upstream
    }

    /// Whether anyone wants the gradient of input `k`.
    pub(crate) fn wants(&self, k: usize) -> bool {
        self.wanted[k]
    }

    /// What input `k` was.
    pub(crate) fn meta(&self, k: usize) -> &Meta {
        &self.node.metas[k]
    }

    /// The sizes of input `k`.
    pub(crate) fn shape(&self, k: usize) -> Vec<usize> {
        self.meta(k).shape.iter().filter_map(|dim| dim.known()).collect()
    }

    /// How many inputs there were.
    pub(crate) fn arity(&self) -> usize {
        self.node.metas.len()
    }

    /// Zeros like input `k`.
    pub(crate) fn zeros(&self, k: usize) -> Result<Tensor> {
        Tensor::zeros(&self.shape(k), self.meta(k).dtype)
    }

    /// Input `k`, which the operation has said it saves.
    pub(crate) fn input(&self, k: usize) -> Result<Tensor> {
        match &self.saved.inputs[k] {
            Some((tensor, version)) => {
                self.expect_unchanged(tensor.array(), *version)?;
                Ok(tensor.clone())
            }
            None => unreachable!("{} reads what it does not save", self.node.op.name()),
        }
    }

    /// The result, which the operation has said it saves.
    pub(crate) fn output(&self) -> Result<Tensor> {
        match &self.saved.output {
            Some((array, version)) => {
                self.expect_unchanged(array, *version)?;
                let history = History::of_node(Link::to(self.node), None);
                Ok(Tensor::with_history(array.clone(), history))
            }
            None => unreachable!("{} reads what it does not save", self.node.op.name()),
        }
    }

    fn expect_unchanged(&self, array: &Array, version: u64) -> Result<()> {
        if array.buffer.version() == version {
            return Ok(());
        }
        Err(Error::Modified { op: self.node.op.name() })
    }

    /// One gradient for each input, made only if it is wanted.
    pub(crate) fn each(&self, make: impl Fn(usize) -> Result<Option<Tensor>>) -> Result<Grads> {
        (0..self.arity()).map(|k| if self.wants(k) { make(k) } else { Ok(None) }).collect()
    }
}

impl Tensor {
    /// The sum over the axes along which `shape` was stretched to this one.
    pub(crate) fn shrink_to(&self, shape: &[usize]) -> Result<Tensor> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        let extra = self.rank() - shape.len();
        let stretched =
            |axis: &usize| *axis < extra || (shape[axis - extra] == 1 && self.shape()[*axis] != 1);
        let axes: Vec<i64> = (0..self.rank()).filter(stretched).map(|axis| axis as i64).collect();
        self.sum(Some(&axes), false)?.shaped(shape)
    }

    /// In a dtype that holds sums and products of many: 16-bit floats in 32 bits.
    pub(crate) fn widened(&self) -> Result<Tensor> {
        match self.dtype() {
            DType::F16 | DType::BF16 => self.cast(DType::F32),
            _ => Ok(self.clone()),
        }
    }

    /// Back from [`Tensor::widened`].
    pub(crate) fn narrowed(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype { Ok(self.clone()) } else { self.cast(dtype) }
    }
}
