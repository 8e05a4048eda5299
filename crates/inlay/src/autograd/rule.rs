//! The arguments and the results of a gradient rule.

use std::sync::Arc;

use inlay_core::{DType, Dim, Error, Meta, Result};
use smallvec::SmallVec;

use super::history::History;
use super::node::{Link, Node, Saved};
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

    /// The rule also reads the result.
    pub(crate) const fn and_output(self) -> Saves {
        Saves { output: true, ..self }
    }
}

/// The arguments of a rule.
pub(crate) struct Rule<'a> {
    pub(super) node: &'a Arc<Node>,
    pub(super) saved: &'a Saved,
    pub(super) upstream: &'a Tensor,
    /// For each input, whether its gradient is needed.
    pub(super) wanted: &'a [bool],
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

    /// Zeros like input `k`.
    pub(crate) fn zeros(&self, k: usize) -> Result<Tensor> {
        self.upstream.stretched(self.shape(k), false, self.meta(k).dtype)
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
                Ok(tensor.again(History::of_node(Link::to(self.node), None)))
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

    /// One gradient for each input; `make` is called only for those that are needed.
    pub(crate) fn each(&self, make: impl Fn(usize) -> Result<Option<Tensor>>) -> Result<Grads> {
        (0..self.arity()).map(|k| if self.wants(k) { make(k) } else { Ok(None) }).collect()
    }
}

impl Tensor {
    /// The tensor in a dtype for sums and products of many elements: 16-bit floats become 32-bit
    /// ones.
    pub(crate) fn widened(&self) -> Result<Tensor> {
        match self.dtype() {
            DType::F16 | DType::BF16 => self.cast(DType::F32),
            _ => Ok(self.clone()),
        }
    }

    /// Undoes [`Tensor::widened`].
    pub(crate) fn narrowed(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype { Ok(self.clone()) } else { self.cast(dtype) }
    }
}
