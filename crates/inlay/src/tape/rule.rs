//! The arguments and the results of a gradient rule.

use std::sync::Arc;

use inlay_core::{Dim, Error, Meta, Result};
use smallvec::SmallVec;

use super::history::History;
use super::node::{Link, Saved, TapeNode};
use crate::Tensor;
use crate::array::Array;

/// The gradient of each input, or `None`.
pub(crate) type Grads = SmallVec<[Option<Tensor>; 3]>;

/// The values that the rule of an operation reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Saves {
    /// Bit `i` stands for input `i`.
    pub(crate) inputs: u32,
    pub(crate) output: bool,
}

impl Saves {
    /// The rule reads only the gradient.
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

    /// Whether the rule reads input `k`.
    pub(crate) const fn reads(self, k: usize) -> bool {
        self.inputs >> k & 1 == 1
    }

    /// Adds the result to the values that the rule reads.
    pub(crate) const fn and_output(self) -> Saves {
        Saves { output: true, ..self }
    }
}

/// The arguments of a rule.
pub(crate) struct Rule<'a> {
    pub(crate) node: &'a Arc<TapeNode>,
    pub(crate) saved: &'a Saved,
    pub(crate) upstream: &'a Tensor,
    /// For each input, whether its gradient is needed.
    pub(crate) wanted: &'a [bool],
}

impl Rule<'_> {
    /// The gradient of the result.
    pub(crate) fn g(&self) -> &Tensor {
        self.upstream
    }

    /// Whether the gradient of input `k` is needed.
    pub(crate) fn wants(&self, k: usize) -> bool {
        self.wanted[k]
    }

    /// Dtype and shape of input `k`.
    pub(crate) fn meta(&self, k: usize) -> &Meta {
        &self.node.metas[k]
    }

    /// The sizes of input `k`.
    pub(crate) fn shape(&self, k: usize) -> &[Dim] {
        &self.meta(k).shape
    }

    /// The number of inputs.
    pub(crate) fn arity(&self) -> usize {
        self.node.metas.len()
    }

    /// Input `k`. The operation must declare that its rule reads it.
    pub(crate) fn input(&self, k: usize) -> Result<Tensor> {
        match &self.saved.inputs[k] {
            Some((tensor, version)) => {
                self.expect_unchanged(tensor.array(), *version)?;
                Ok(tensor.clone())
            }
            None => unreachable!("{} reads what it does not save", self.node.op.name()),
        }
    }

    /// The result. The operation must declare that its rule reads it.
    pub(crate) fn output(&self) -> Result<Tensor> {
        match &self.saved.output {
            Some((tensor, version)) => {
                self.expect_unchanged(tensor.array(), *version)?;
                Ok(tensor.again(History::new(Some(Link::to(self.node)), None)))
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

    /// Returns one gradient for each input. `make` is called only for those that are needed.
    pub(crate) fn each(&self, make: impl Fn(usize) -> Result<Option<Tensor>>) -> Result<Grads> {
        (0..self.arity()).map(|k| if self.wants(k) { make(k) } else { Ok(None) }).collect()
    }
}
