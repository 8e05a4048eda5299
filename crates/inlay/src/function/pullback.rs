//! The derivative of a call, ready to run.

use std::sync::{Arc, Weak};

use inlay_core::{Meta, Result};
use smallvec::SmallVec;

use super::{Function, Inner, Need, Traced};
use crate::lock::lock;
use crate::{NoGrad, Tensor};

/// The derivative of a function for inputs of certain dtypes and shapes. Its program was found, so
/// that a call does not look for it again.
///
/// It takes the inputs of the function, its results and the gradient of each result, and returns the
/// gradients of the wanted inputs. [`Function::pullback`] makes it.
///
/// ```
/// # use inlay::{Function, Tensor};
/// let x = Tensor::from([2.0f32, 3.0]);
/// let square = Function::parse("multiply(@, @)")?;
/// let meta = x.meta();
/// let pullback = square.pullback(&[true, true], &[meta.clone(), meta.clone()], &[meta])?;
/// let ones = Tensor::from([1.0f32, 1.0]);
/// let gradients = pullback.call_shared(&[&x, &x, &x, &ones])?;
/// assert_eq!(gradients[0].to_vec::<f32>()?, [2.0, 3.0]);
/// # Ok::<(), inlay::Error>(())
/// ```
pub struct Pullback {
    vjp: Function,
    traced: Arc<Traced>,
}

/// The derivatives of a function that were asked for. They hold the function, so it does not hold
/// them.
pub(super) type Derivatives = SmallVec<[(SmallVec<[bool; 4]>, Weak<Inner>); 1]>;

impl Function {
    /// Returns the derivative for inputs and results of these dtypes and shapes.
    ///
    /// ```
    /// # use inlay::{Function, Need, Tensor};
    /// let scatter = Function::parse("scatter(@, @, @, overwrite=False, include_self=True)")?;
    /// let (x, index) = (Tensor::from([1.0f32, 2.0]), Tensor::from([1i64]));
    /// let updates = Tensor::from([5.0f32]);
    /// let inputs = [x.meta(), index.meta(), updates.meta()];
    /// let pullback = scatter.pullback(&[true, false, true], &inputs, &[x.meta()])?;
    /// assert_eq!(pullback.needs()[..3], [Need::Nothing, Need::Elements, Need::Shape]);
    ///
    /// let upstream = Tensor::from([10.0f32, 20.0]);
    /// let gradients = pullback.call_shared(&[&x, &index, &updates, &x, &upstream])?;
    /// assert_eq!(gradients[1].to_vec::<f32>()?, [20.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Function::vjp`], and of the shape rules.
    pub fn pullback(&self, wanted: &[bool], inputs: &[Meta], outputs: &[Meta]) -> Result<Pullback> {
        let vjp = self.derivative(wanted)?;
        let all = || inputs.iter().chain(outputs).chain(outputs);
        vjp.expect_inputs(all().count())?;
        let kinds = all().map(|meta| (meta.dtype, meta.rank())).collect();
        let sizes = |meta: &Meta| meta.shape.iter().map(|dim| dim.known().unwrap_or(1)).collect();
        let traced = vjp.trace_for(&kinds, || all().map(sizes).collect())?;
        Ok(Pullback { vjp, traced })
    }

    /// [`Function::vjp`], without making its text if it was asked for before.
    fn derivative(&self, wanted: &[bool]) -> Result<Function> {
        let same = |(mask, _): &&(SmallVec<[bool; 4]>, Weak<Inner>)| mask[..] == *wanted;
        let found = lock(&self.0.derivatives).iter().find(same).and_then(|(_, vjp)| vjp.upgrade());
        if let Some(found) = found {
            return Ok(Function(found));
        }
        let made = self.vjp(wanted)?;
        let mut derivatives = lock(&self.0.derivatives);
        derivatives.retain(|(mask, _)| mask[..] != *wanted);
        derivatives.push((wanted.into(), Arc::downgrade(&made.0)));
        Ok(made)
    }
}

impl Pullback {
    /// The function of gradients.
    ///
    /// ```
    /// # use inlay::{Function, Tensor};
    /// let x = Tensor::from([[1.0f32]]).meta();
    /// let pullback = Function::parse("tril(@)")?.pullback(&[true], &[x.clone()], &[x])?;
    /// assert_eq!(pullback.function().text(), "vjp(1; tril(@))");
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn function(&self) -> &Function {
        &self.vjp
    }

    /// What it reads of each of its inputs.
    ///
    /// ```
    /// # use inlay::{Function, Need, Tensor};
    /// let x = Tensor::from([[1.0f32]]).meta();
    /// let pullback = Function::parse("tril(@)")?.pullback(&[true], &[x.clone()], &[x])?;
    /// assert_eq!(pullback.needs().last(), Some(&Need::Elements));
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn needs(&self) -> &[Need] {
        &self.traced.needs
    }

    /// Returns the gradients, like [`Function::call_shared`]. The inputs must have the dtypes and
    /// shapes that it was made for. One that it needs nothing of may be any tensor.
    ///
    /// ```
    /// # use inlay::{Function, Tensor};
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// let tril = Function::parse("tril(@)")?;
    /// let pullback = tril.pullback(&[true], &[x.meta()], &[x.meta()])?;
    /// let gradients = pullback.call_shared(&[&x, &x, &x])?;
    /// assert_eq!(gradients[0].to_vec::<f32>()?, [1.0, 0.0, 3.0, 4.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the operations.
    pub fn call_shared(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.vjp.expect_inputs(inputs.len())?;
        let _off = NoGrad::new();
        self.traced.trace.call_shared(inputs).map_err(|error| error.root().clone())
    }
}

impl std::fmt::Debug for Pullback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pullback of {}", self.vjp.text())
    }
}
