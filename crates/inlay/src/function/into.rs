//! Calls whose results go into memory that the caller gives.

use inlay_core::{Error, Result, ShapeText};
use smallvec::SmallVec;

use super::{Form, Function};
use crate::array::Destination;
use crate::{NoGrad, Tensor, device};

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
        {
            let same = first.data_ptr() == output.data_ptr()
                && first.dtype() == output.dtype()
                && first.array().layout == output.array().layout;
            if same && operation.twin.is_some() && output.numel() > 0 {
                return self.write(inputs);
            }
        }
        for output in outputs {
            output.array().expect_target(op, "the output")?;
        }
        // Memory that is read must not be written before the results are complete.
        let shared = outputs.iter().any(|output| inputs.iter().any(|input| input.overlaps(output)));
        let offered: &[&Tensor] = if shared { &[] } else { outputs };
        let results = self.call_offered(inputs, offered)?;
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
        for (result, output) in results.iter().zip(outputs) {
            if result.data_ptr() != output.data_ptr() {
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
        results.map(SmallVec::from_vec).map_err(|error| error.root().clone())
    }
}
