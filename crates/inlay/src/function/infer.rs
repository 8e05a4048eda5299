//! Shapes and dtypes of results without values, and what a function reads of its inputs.

use inlay_core::{DType, Dim, Meta, Result};

use super::{Form, Function};
use crate::Tensor;
use crate::graph::{Program, Trace};
use crate::site::without_lines;

/// How a function uses an input.
///
/// ```
/// use inlay::Need;
///
/// assert!(Need::Shape < Need::Elements);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Need {
    /// Not at all.
    Nothing,
    /// Only its shape.
    Shape,
    /// Its elements.
    Elements,
}

/// One size of a result, as [`Function::infer`] finds it.
///
/// ```
/// use inlay::Extent;
///
/// assert_ne!(Extent::Known(3), Extent::Of { input: 0, axis: 3 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// A number.
    Known(usize),
    /// The size of an axis of an input, which was not given.
    Of {
        /// The number of the input.
        input: usize,
        /// The axis.
        axis: usize,
    },
    /// It depends on values, or on a computation with sizes that were not given.
    Open,
}

impl Function {
    /// Returns how the function uses each input, for inputs of these dtypes and shapes.
    ///
    /// ```
    /// # use inlay::{DType, Function, Meta, Need};
    /// // The gradient of a sum reads neither its input nor its result.
    /// let gradient = Function::parse("vjp(1; sum(@, axis=[0]))")?;
    /// let metas = [[2, 3], [3, 1], [3, 1]].map(|shape| Meta::known(DType::F32, &shape));
    /// let metas = [metas[0].clone(), Meta::known(DType::F32, &[3]), Meta::known(DType::F32, &[3])];
    /// assert_eq!(gradient.needs(&metas)?, [Need::Shape, Need::Nothing, Need::Elements]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Inputs that the operation does not take.
    pub fn needs(&self, inputs: &[Meta]) -> Result<Vec<Need>> {
        self.expect_inputs(inputs.len())?;
        if let Form::Call { .. } = &self.0.form {
            return Ok(vec![Need::Elements; inputs.len()]);
        }
        let is_open = |meta: &Meta| meta.shape.iter().any(|dim| dim.known().is_none());
        if inputs.iter().any(is_open)
            && let Ok(needs) = without_lines(|| self.needs_in(&Program::new(), inputs))
        {
            return Ok(needs);
        }
        // A loop over an open number of items needs what it needs for one item.
        let kinds = inputs.iter().map(|meta| (meta.dtype, meta.rank())).collect();
        let sizes = || {
            let sizes =
                |meta: &Meta| meta.shape.iter().map(|dim| dim.known().unwrap_or(1)).collect();
            inputs.iter().map(sizes).collect()
        };
        Ok(self.trace_for(&kinds, sizes)?.needs.to_vec())
    }

    /// The needs of a function that must know some sizes, while others are open.
    fn needs_in(&self, program: &Program, inputs: &[Meta]) -> Result<Vec<Need>> {
        let results = self.evaluate(&feeds(program, inputs)?, Some(program));
        let trace = results.and_then(|results| Trace::finish(program, &results, false));
        program.close();
        Ok(trace?.needs(inputs.len()).to_vec())
    }

    /// Returns the dtype and the shape of each result. Sizes of inputs may be open (symbols).
    ///
    /// ```
    /// # use inlay::{DType, Dim, Extent, Function, Meta};
    /// let select = Function::parse("index_select(@, @)")?;
    /// let open = |dtype, shape: &[Dim]| Meta { dtype, shape: shape.iter().copied().collect() };
    /// let x = open(DType::F32, &[Dim::unknown(), Dim::Known(4)]);
    /// let index = open(DType::I64, &[Dim::unknown()]);
    /// let results = select.infer(&[x, index])?;
    /// assert_eq!(results[0].0, DType::F32);
    /// assert_eq!(results[0].1, [Extent::Of { input: 1, axis: 0 }, Extent::Known(4)]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Inputs that the operation does not take; an open size that it must know.
    pub fn infer(&self, inputs: &[Meta]) -> Result<Vec<(DType, Vec<Extent>)>> {
        self.expect_inputs(inputs.len())?;
        without_lines(|| self.infer_in(&Program::new(), inputs))
    }

    fn infer_in(&self, program: &Program, inputs: &[Meta]) -> Result<Vec<(DType, Vec<Extent>)>> {
        let fed = feeds(program, inputs)?;
        let results = self.evaluate(&fed, Some(program));
        program.close();
        let of = |dim: &Dim| match dim {
            Dim::Known(size) => Extent::Known(*size),
            Dim::Symbol(_) => {
                let same = |(input, fed): (usize, &Tensor)| {
                    let axis = fed.dims().iter().position(|other| other == dim)?;
                    Some(Extent::Of { input, axis })
                };
                fed.iter().enumerate().find_map(same).unwrap_or(Extent::Open)
            }
        };
        let results = results.map_err(|error| self.blame(&error))?;
        Ok(results
            .iter()
            .map(|result| (result.dtype(), result.dims().iter().map(of).collect()))
            .collect())
    }
}

/// Adds an input to a program for each input of a function, with the names that traces give them.
fn feeds(program: &Program, inputs: &[Meta]) -> Result<Vec<Tensor>> {
    let feed = |(k, meta): (usize, &Meta)| {
        let shape: Vec<Option<usize>> = meta.shape.iter().map(|dim| dim.known()).collect();
        program.data(&format!("arg{k}"), &shape, meta.dtype)
    };
    inputs.iter().enumerate().map(feed).collect()
}
