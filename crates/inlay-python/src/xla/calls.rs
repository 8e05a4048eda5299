//! Calls of functions that are given by their texts.

use inlay::{Tensor, Value, operations};

use super::buffers::Tensors;
use super::handler::Failure;

/// Calls a function and writes its results into `outputs`.
pub(super) fn call(text: &str, inputs: Tensors, outputs: Tensors) -> Result<(), Failure> {
    let name = text.split('(').next().unwrap_or("");
    let op = operations()
        .iter()
        .find(|op| op.name == name)
        .ok_or_else(|| Failure::invalid(format!("no operation {name}")))?;
    if op.twin.is_some() && inputs[0].data_ptr() == outputs[0].data_ptr() {
        let mut values: Vec<Value<'_>> = inputs.iter().map(Value::from).collect();
        values[0] = (&outputs[0]).into();
        op.call_in_place(&values)?;
        return Ok(());
    }
    let values: Vec<Value<'_>> = inputs.iter().map(Value::from).collect();
    let result: Tensor = op.call(&values)?;
    outputs[0].assign(&[inlay::Item::Ellipsis], &result)?;
    Ok(())
}
