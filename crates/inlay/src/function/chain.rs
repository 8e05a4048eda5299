//! Chains of functions: the result of each is the first input of the next.

use inlay_core::Result;
use smallvec::SmallVec;

use super::{Form, Function, problem};
use crate::Tensor;
use crate::graph::Program;

impl Function {
    /// The function that applies `steps` one after the other. The first input of each step but the
    /// first is the result of the step before it. The inputs of the chain are all others, in order.
    ///
    /// A chain is one program: its intermediate results are written in place where that is
    /// possible, so it moves fewer bytes than its steps. A step whose elements no other step reads
    /// (`zeros_like` follows it) is not computed, and its errors are not found.
    ///
    /// ```
    /// # use inlay::{Function, Tensor};
    /// let patch = Function::parse("slice_scatter(@, @, start=0, stop=1)")?;
    /// let chain = Function::chain(&[patch, Function::parse("diagonal_scatter(@, @)")?])?;
    /// assert_eq!(chain.text(), "chain(slice_scatter(@, @, start=0, stop=1); diagonal_scatter(@, @))");
    ///
    /// let x = Tensor::from([[1.0f32, 1.0], [1.0, 1.0]]);
    /// let (row, diagonal) = (Tensor::from([[0.0f32, 0.0]]), Tensor::from([7.0f32, 8.0]));
    /// let results = chain.call(&[&x, &row, &diagonal])?;
    /// assert_eq!(results[0].to_vec::<f32>()?, [7.0, 0.0, 1.0, 8.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// No steps, and a step without inputs or with several results.
    pub fn chain(steps: &[Function]) -> Result<Function> {
        let Some(first) = steps.first() else {
            return Err(problem("function", "a chain needs a step"));
        };
        for step in steps {
            if step.inputs() == 0 || step.outputs() != 1 {
                let text = "a step of a chain has inputs and one result";
                return Err(problem(step.operation().name, text));
            }
            step.expect_shallow()?;
        }
        match steps {
            [_] => Ok(first.clone()),
            _ => Ok(Function::intern(Form::Chain { steps: steps.to_vec() })),
        }
    }
}

/// For each step, the position of its first own input among those of the chain, and their number.
fn shares(steps: &[Function]) -> impl Iterator<Item = (&Function, std::ops::Range<usize>)> {
    let mut from = 0;
    steps.iter().enumerate().map(move |(k, step)| {
        let count = step.inputs() - usize::from(k > 0);
        from += count;
        (step, from - count..from)
    })
}

/// For each input of a chain, whether it may have a gradient.
pub(super) fn differentiable(steps: &[Function]) -> Vec<bool> {
    let each = steps.iter().enumerate().flat_map(|(k, step)| {
        let own = step.differentiable();
        own.into_iter().skip(usize::from(k > 0))
    });
    each.collect()
}

/// Applies the steps to the inputs of a chain.
pub(super) fn evaluate(
    steps: &[Function],
    inputs: &[Tensor],
    mut apply: impl FnMut(&Function, &[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    let mut last: Vec<Tensor> = Vec::new();
    for (step, own) in shares(steps) {
        let given: SmallVec<[Tensor; 4]> =
            last.drain(..).chain(inputs[own].iter().cloned()).collect();
        last = apply(step, &given)?;
    }
    Ok(last)
}

/// Applies the steps over a batch, whose axis is the first of each batched input.
pub(super) fn evaluate_batch(
    steps: &[Function],
    inputs: &[Tensor],
    batched: &[bool],
    program: Option<&Program>,
) -> Result<Vec<Tensor>> {
    let mut last: Vec<Tensor> = Vec::new();
    let mut is_batch = false;
    for (step, own) in shares(steps) {
        let axis = |batched: &bool| batched.then_some(0);
        let before = last.first().map(|_| is_batch);
        let axes: SmallVec<[Option<usize>; 4]> =
            before.iter().chain(&batched[own.clone()]).map(axis).collect();
        let given: SmallVec<[Tensor; 4]> =
            last.drain(..).chain(inputs[own].iter().cloned()).collect();
        is_batch = axes.iter().any(Option::is_some);
        last = match is_batch {
            true => step.vmap(&axes)?.evaluate(&given, program)?,
            false => step.evaluate(&given, program)?,
        };
    }
    Ok(last)
}
