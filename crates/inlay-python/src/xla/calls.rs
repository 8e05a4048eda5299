//! Calls of functions that are given by their texts.
//!
//! The text of a call is the text of a function. A line follows for each input that the call leaves
//! out, because the function reads only its shape: `\n3:float32:2,4`.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use inlay::{DType, Function, Tensor};
use smallvec::SmallVec;

use super::buffers::Tensors;
use super::handler::Failure;

/// A call that was read from its text.
struct Call {
    function: Function,
    /// The positions of the inputs that are left out, in order, with tensors of their shapes.
    left_out: Vec<(usize, Tensor)>,
}

/// The number of calls that are kept. A program has a fixed set of calls, so when there are more,
/// most of them are no longer used.
const KEPT: usize = 4096;

static KNOWN: LazyLock<RwLock<HashMap<String, Arc<Call>>>> = LazyLock::new(RwLock::default);

/// Calls a function and writes its results into `outputs`.
pub(super) fn call(text: &str, mut inputs: Tensors, outputs: Tensors) -> Result<(), Failure> {
    let call = known(text)?;
    // XLA lets the result take the place of the first input. The function then writes in place.
    if let ([first, ..], [output, ..]) = (&mut inputs[..], &outputs[..])
        && first.data_ptr() == output.data_ptr()
        && output.numel() > 0
    {
        *first = output.clone();
    }
    for (position, stand_in) in &call.left_out {
        if *position > inputs.len() {
            return Err(Failure::invalid(format!("too few inputs for {text:?}")));
        }
        inputs.insert(*position, stand_in.clone());
    }
    let inputs: SmallVec<[&Tensor; 8]> = inputs.iter().collect();
    let outputs: SmallVec<[&Tensor; 2]> = outputs.iter().collect();
    Ok(call.function.call_into(&inputs, &outputs)?)
}

/// Returns the call of a text, which is read once.
fn known(text: &str) -> Result<Arc<Call>, Failure> {
    let found = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(text).cloned();
    if let Some(call) = found {
        return Ok(call);
    }
    let call = Arc::new(Call::read(text)?);
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= KEPT {
        known.clear();
    }
    known.insert(text.to_owned(), Arc::clone(&call));
    Ok(call)
}

impl Call {
    fn read(text: &str) -> Result<Self, Failure> {
        let mut lines = text.split('\n');
        let function = Function::parse(lines.next().unwrap_or_default())?;
        let left_out = lines.map(|line| {
            stand_in(line)
                .ok_or_else(|| Failure::invalid(format!("{line:?} in the text is no input")))
        });
        Ok(Call { function, left_out: left_out.collect::<Result<_, _>>()? })
    }
}

/// Returns the position and a tensor for an input that is left out. Its only element is repeated.
fn stand_in(line: &str) -> Option<(usize, Tensor)> {
    let mut parts = line.split(':');
    let (position, dtype, sizes) = (parts.next()?, parts.next()?, parts.next()?);
    let position = position.parse().ok()?;
    let dtype = DType::from_str(dtype).ok()?;
    let sizes = sizes.split(',').filter(|size| !size.is_empty()).map(str::parse);
    let shape = sizes.collect::<Result<Vec<usize>, _>>().ok()?;
    let one = Tensor::zeros([0usize; 0], dtype).ok()?;
    Some((position, one.broadcast_to(shape).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_that_are_left_out_have_their_shape() {
        let (position, stand_in) = stand_in("3:float32:2,4").expect("it is valid");
        assert_eq!((position, stand_in.dtype()), (3, DType::F32));
        assert_eq!(stand_in.shape(), [2, 4]);
        assert_eq!(super::stand_in("0:int8:").expect("it is valid").1.rank(), 0);
    }

    #[test]
    fn bad_lines_are_refused() {
        for line in
            ["", "0", "0:float32", "x:float32:1", "0:float33:1", "0:float32:-1", "0:bool:9,x"]
        {
            assert!(stand_in(line).is_none(), "{line}");
        }
    }
}
