//! Calls whose results go into memory that the caller gives.

use inlay_core::{Error, Result, ShapeText};
use smallvec::SmallVec;

use super::{Form, Function};
use crate::array::Destination;
use crate::{NoGrad, Tensor, device};

/// Whether a tensor has exactly the elements of an output.
fn in_place(tensor: &Tensor, output: &Tensor) -> bool {
    tensor.data_ptr() == output.data_ptr()
        && tensor.dtype() == output.dtype()
        && tensor.array().layout == output.array().layout
}

impl Function {
    /// Like [`Function::call`], but writes the results into `outputs`, which don't overlap each
    /// other. A result is written there at once where its kernel allows it, and copied otherwise.
    ///
    /// If the first output is the memory of the first input, the in-place form of the operation is
    /// used. Outputs may overlap inputs in other ways, too: then the results are made first.
    ///
    /// ```
    /// # use inlay::{DType, Function, Tensor};
    /// let sum = Function::parse("add(@, @)")?;
    /// let (x, y) = (Tensor::from([1, 2]), Tensor::from([3, 4]));
    /// let out = Tensor::zeros([2], DType::I32)?;
    /// sum.call_into(&[&x, &y], &[&out])?;
    /// assert_eq!(out.to_vec::<i32>()?, [4, 6]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Outputs of other dtypes or shapes than the results; the errors of [`Function::call`]. The
    /// elements of the outputs are then unspecified, unless they are those of an input.
    pub fn call_into(&self, inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<()> {
        let op = self.operation().name;
        self.expect_inputs(inputs.len())?;
        if outputs.len() != self.outputs() {
            let text = format!("{} has {} results", self.text(), self.outputs());
            return Err(super::problem(op, &text));
        }
        if let (Form::Call { operation, .. }, [output], [first, ..]) =
            (&self.0.form, outputs, inputs)
            && operation.twin.is_some()
            && in_place(first, output)
            && output.numel() > 0
        {
            return self.write(inputs);
        }
        for output in outputs {
            output.array().expect_target(op, "the output")?;
        }
        // Memory that is read must not be written before the results are complete.
        let shared = outputs.iter().any(|output| inputs.iter().any(|input| input.overlaps(output)));
        let offered: &[&Tensor] = if shared { &[] } else { outputs };
        let mut results = self.call_offered(inputs, offered)?;
        for (result, output) in results.iter().zip(outputs) {
            let (got, want) = (result.dtype(), output.dtype());
            if got != want {
                let text = format!("the result has dtype {got}, its memory is for {want}");
                return Err(super::problem(op, &text));
            }
            if result.shape() != output.shape() {
                let (got, expected) =
                    (ShapeText::of(result.shape()), ShapeText::of(output.shape()));
                return Err(Error::Shape { op, arg: "the result", got, expected });
            }
        }
        // A result may be a view of an input that is about to be written. It also may be a view of
        // something else that was made in the memory of its output.
        for (result, output) in results.iter_mut().zip(outputs) {
            let written = outputs.iter().any(|other| other.overlaps(result));
            if written && !in_place(result, output) {
                *result = Tensor::from_array(device::to_contiguous(op, result.array())?);
            }
        }
        for (result, output) in results.iter().zip(outputs) {
            if !in_place(result, output) {
                device::copy(output.array(), result.array())?;
            }
        }
        Ok(())
    }

    /// Calls the function. Each result may be in the memory of its output.
    fn call_offered(
        &self,
        inputs: &[&Tensor],
        outputs: &[&Tensor],
    ) -> Result<SmallVec<[Tensor; 2]>> {
        let _off = NoGrad::new();
        if let (Form::Call { .. }, [output]) = (&self.0.form, outputs) {
            let _offered = Destination::offer(output.array());
            return self.call(inputs).map(SmallVec::from_vec);
        }
        if let Form::Call { .. } = &self.0.form {
            return self.call(inputs).map(SmallVec::from_vec);
        }
        let results = self.traced(inputs)?.trace.call_into(inputs, outputs);
        results.map(SmallVec::from_vec).map_err(|error| self.blame(&error))
    }
}

#[cfg(test)]
mod tests {
    use inlay_core::DType;

    use super::*;

    /// Fails unless each result is made in the memory of its output.
    fn assert_direct(text: &str, inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<()> {
        let function = Function::parse(text)?;
        let expected = function.call(inputs)?;
        let results = function.call_offered(inputs, outputs)?;
        assert_eq!(results.len(), outputs.len());
        for ((result, output), expected) in results.iter().zip(outputs).zip(&expected) {
            assert!(in_place(result, output), "{text}: {:?}", result.array().layout);
            assert_eq!(output.to_vec::<f32>()?, expected.to_vec::<f32>()?, "{text}");
        }
        Ok(())
    }

    #[test]
    fn results_are_made_where_they_belong() -> Result<()> {
        let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
        let (index, updates) = (Tensor::from([2i64, 0]), Tensor::from([[7.0f32, 8.0], [9.0, 1.0]]));
        let y = Tensor::full([3, 2], -1.0f32, DType::F32)?;
        let w = Tensor::zeros([2, 2], DType::F32)?;
        assert_direct("scatter(@, @, @)", &[&x, &index, &updates], &[&y])?;
        assert_direct("scatter(@, @, @, overwrite=False)", &[&x, &index, &updates], &[&y])?;
        assert_direct("add(@, @)", &[&x, &x], &[&y])?;
        assert_direct("tril(@)", &[&x], &[&y])?;
        // Both gradients of a write.
        let inputs = [&x, &index, &updates, &x, &x];
        assert_direct("vjp(101; scatter(@, @, @))", &inputs, &[&y, &w])?;
        let (xs, many) = (x.reshape([1, 3, 2])?, y.reshape([1, 3, 2])?);
        let (indices, sources) = (index.reshape([1, 2])?, updates.reshape([1, 2, 2])?);
        assert_direct("vmap(0, 0, 0; scatter(@, @, @))", &[&xs, &indices, &sources], &[&many])
    }

    #[test]
    fn memory_that_does_not_fit_is_not_offered() -> Result<()> {
        let x = Tensor::from([1.0f32, 2.0]);
        let sum = Function::parse("add(@, @)")?;
        let wide = Tensor::zeros([4], DType::F32)?;
        let half = wide.i(..2)?;
        let results = sum.call_offered(&[&x, &x], &[&half])?;
        assert_ne!(results[0].data_ptr(), half.data_ptr());
        // The offer ends with the call.
        let y = Tensor::zeros([2], DType::F32)?;
        sum.call_offered(&[&x, &x], &[&y])?;
        assert_ne!(x.add(&x)?.data_ptr(), y.data_ptr());
        Ok(())
    }
}
