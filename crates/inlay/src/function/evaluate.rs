//! Evaluation of a function on tensors. On symbolic tensors it records a program.

use std::borrow::Cow;

use inlay_core::Result;
use smallvec::SmallVec;

use super::{Form, Function, Slot};
use crate::declare::Value;
use crate::graph::Program;
use crate::{GradOptions, NoGrad, Tensor};

/// Returns the values of a call: `inputs` in the places of tensors.
pub(super) fn values<'a>(arguments: &'a [Slot], inputs: &[&'a Tensor]) -> SmallVec<[Value<'a>; 8]> {
    let mut inputs = inputs.iter();
    let mut next = || match inputs.next() {
        Some(input) => Cow::Borrowed(*input),
        None => unreachable!("the number of inputs was checked"),
    };
    let value = |slot: &'a Slot| match slot {
        Slot::Tensor => Value::Tensor(next()),
        Slot::Tensors(count) => Value::Tensors((0..*count).map(|_| next()).collect()),
        Slot::Value(value) => value.clone(),
    };
    arguments.iter().map(value).collect()
}

impl Function {
    /// Returns the results for these inputs. If they are symbolic, the results are nodes of
    /// `program`.
    pub(super) fn evaluate(
        &self,
        inputs: &[Tensor],
        program: Option<&Program>,
    ) -> Result<Vec<Tensor>> {
        match &self.0.form {
            Form::Call { operation, arguments } => {
                let inputs: SmallVec<[&Tensor; 4]> = inputs.iter().collect();
                Ok(vec![operation.call_bound(false, &values(arguments, &inputs))?])
            }
            Form::Vjp { of, wanted } => gradients(of, wanted, inputs, program),
            Form::Vmap { of, axes } => super::batch::evaluate(of, axes, inputs, program),
            Form::Chain { steps } => {
                super::chain::evaluate(steps, inputs, |step, inputs| step.evaluate(inputs, program))
            }
        }
    }
}

/// Returns the gradients of the wanted inputs of a function.
fn gradients(
    of: &Function,
    wanted: &[bool],
    inputs: &[Tensor],
    program: Option<&Program>,
) -> Result<Vec<Tensor>> {
    let (inputs, others) = inputs.split_at(of.inputs());
    let (given, upstream) = others.split_at(of.outputs());
    let _on = NoGrad::set(true);
    let tracked = |(input, wanted): (&Tensor, &bool)| match *wanted && input.stop_gradient() {
        true => input.detach().with_gradient(),
        // A tensor that an outer derivative tracks keeps its history.
        false => Ok(input.clone()),
    };
    let inputs: Vec<Tensor> = inputs.iter().zip(wanted).map(tracked).collect::<Result<_>>()?;
    let outputs = of.evaluate(&inputs, program)?;
    // Where the gradients read a result, they read the one that was given.
    if let Some(program) = program {
        for (output, given) in outputs.iter().zip(given) {
            program.substitute(output, given)?;
        }
    }
    let roots = outputs.iter().zip(upstream).filter(|(output, _)| !output.stop_gradient());
    let (roots, seeds): (Vec<&Tensor>, Vec<Option<&Tensor>>) =
        roots.map(|(output, seed)| (output, Some(seed))).unzip();
    let leaves: Vec<&Tensor> =
        inputs.iter().zip(wanted).filter(|(_, wanted)| **wanted).map(|(input, _)| input).collect();
    let options = GradOptions { create_graph: true, allow_unused: true, ..Default::default() };
    let grads = match roots.is_empty() {
        true => vec![None; leaves.len()],
        false => Tensor::grad_of(&roots, &leaves, &seeds, options)?,
    };
    let or_zeros = |(grad, leaf): (Option<Tensor>, &&Tensor)| match grad {
        Some(grad) => Ok(grad),
        None => leaf.zeros_like(),
    };
    grads.into_iter().zip(&leaves).map(or_zeros).collect()
}
