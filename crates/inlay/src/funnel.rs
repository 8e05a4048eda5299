//! The one way into every operation: infer, then run; out of place or in place.

use std::fmt;

use inlay_core::{Meta, Result};
use smallvec::SmallVec;

use crate::array::Array;
use crate::{Tensor, device};

/// An operation: a small value that says what it accepts and what it does.
///
/// The rules about shapes and dtypes live in `infer` alone and work on sizes that are not known
/// yet; `run` is called only with what `infer` has accepted.
pub(crate) trait Op: fmt::Debug + Send + Sync {
    /// The name that users call it by, and that its errors begin with.
    fn name(&self) -> &'static str;

    /// What its first argument is called, for errors about an in-place target.
    fn target(&self) -> &'static str {
        "x"
    }

    /// Dtype and shape of the result, or why there is none.
    fn infer(&self, inputs: &[Meta]) -> Result<Meta>;

    /// The result. With [`Out::InPlace`] it is written into the first input. Whatever can fail
    /// fails before the first write.
    fn run(&self, inputs: &[&Array], out: Out) -> Result<Array>;
}

/// Where a result goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Out {
    /// Into fresh memory, or for a view nowhere.
    Fresh,
    /// Into the first input, which is writable, overlaps itself nowhere, and no other input.
    InPlace,
}

impl Out {
    /// Where to write a changed `x`, and where the unchanged one is to be taken from when that is
    /// somewhere else.
    pub(crate) fn of<'x>(
        self,
        op: &'static str,
        x: &'x Array,
    ) -> Result<(Array, Option<&'x Array>)> {
        match self {
            Out::Fresh => Ok((x.new_like(op)?, Some(x))),
            Out::InPlace => Ok((x.clone(), None)),
        }
    }
}

type Metas = SmallVec<[Meta; 3]>;
type Arrays<'a> = SmallVec<[&'a Array; 4]>;

/// Runs `op` on `inputs`; the result is fresh, or a view for operations that make views.
pub(crate) fn apply(op: &dyn Op, inputs: &[&Tensor]) -> Result<Tensor> {
    let arrays: Arrays<'_> = inputs.iter().map(|tensor| tensor.array()).collect();
    let metas: Metas = arrays.iter().map(|array| array.meta()).collect();
    op.infer(&metas)?;
    op.run(&arrays, Out::Fresh).map(Tensor::from_array)
}

/// Runs `op` on `target` and `inputs`, and writes the result into `target`.
///
/// When it fails, `target` is what it was. Inputs that overlap the target in memory are copied
/// first, so that they are read as they were.
pub(crate) fn apply_in_place(op: &dyn Op, target: &Tensor, inputs: &[&Tensor]) -> Result<()> {
    let target = target.array();
    let all = || std::iter::once(target).chain(inputs.iter().map(|tensor| tensor.array()));
    let metas: Metas = all().map(|array| array.meta()).collect();
    let result = op.infer(&metas)?;
    debug_assert_eq!(result, metas[0], "{} keeps dtype and shape", op.name());
    target.expect_target(op.name(), op.target())?;

    let copies: SmallVec<[Option<Array>; 3]> = inputs
        .iter()
        .map(|input| {
            let array = input.array();
            target.overlaps(array).then(|| device::to_contiguous(op.name(), array)).transpose()
        })
        .collect::<Result<_>>()?;
    let inputs = inputs.iter().zip(&copies).map(|(input, copy)| match copy {
        Some(copy) => copy,
        None => input.array(),
    });
    let arrays: Arrays<'_> = std::iter::once(target).chain(inputs).collect();
    op.run(&arrays, Out::InPlace).map(drop)
}
