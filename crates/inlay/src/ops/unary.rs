//! `negative`, `conjugate`, and the parts of complex numbers: `real`, `imag`.

use inlay_core::{DType, Error, Kind, Layout, Meta, Result, Unary};
use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::site::within;
use crate::tape::{Grads, Rule};
use crate::{Complex64, Scalar, Tensor, device};

declare! {
    /// Every number with the opposite sign. Integers wrap.
    ///
    /// >>> import inlay
    /// >>> inlay.negative([1, -2])
    /// array([-1,  2])
    NEGATIVE = "negative"(x: Tensor, name: Label = None) gradients [x]
        batch Elements => x.negative();

    CONJUGATE = "conjugate"(x: Tensor);

    /// The real part, as a view. A real tensor is its own real part.
    ///
    /// >>> import inlay
    /// >>> inlay.real([1 + 2j, 3 - 4j])
    /// array([1., 3.])
    REAL = "real"(x: Tensor, name: Label = None) -> View gradients [x]
        batch Elements => x.real();

    /// The imaginary part, as a view. That of a real tensor is zeros.
    ///
    /// >>> import inlay
    /// >>> inlay.imag([1 + 2j, 3 - 4j])
    /// array([ 2., -4.])
    IMAG = "imag"(x: Tensor, name: Label = None) -> ViewOrCopy gradients [x]
        batch Elements => x.imag();
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Pointwise(Unary);

impl Op for Pointwise {
    type Inputs = Inputs<1>;
    type Found = ();

    fn operation(&self) -> &'static Operation {
        match self.0 {
            Unary::Negative => &NEGATIVE,
            Unary::Conjugate => &CONJUGATE,
        }
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
        if x.dtype == DType::Bool && self.0 == Unary::Negative {
            let what = "a sign".into();
            return Err(Error::Undefined { op: self.name(), what, dtype: x.dtype });
        }
        Inferred::only(x.clone())
    }

    fn run(&self, [x]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        let to = x.new_like(self.name())?;
        device::unary(&to, x, self.0)?;
        Ok(to)
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        rule.each(|_| apply(Pointwise(self.0), &[rule.g()]).map(Some))
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Real;

impl Op for Real {
    type Inputs = Inputs<1>;
    type Found = ();
    const IS_VIEW: bool = true;

    fn operation(&self) -> &'static Operation {
        &REAL
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
        Inferred::only(Meta { dtype: real_dtype(x.dtype), shape: x.dims() })
    }

    /// A complex number stores its real part first, so the real part of a tensor is a view.
    fn run(&self, [x]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        Ok(Array { dtype: real_dtype(x.dtype), ..(*x).clone() })
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        rule.each(|k| rule.g().narrowed(rule.meta(k).dtype).map(Some))
    }
}

/// The imaginary part of a complex tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Imag;

impl Op for Imag {
    type Inputs = Inputs<1>;
    type Found = ();
    const IS_VIEW: bool = true;

    fn operation(&self) -> &'static Operation {
        &IMAG
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
        if x.dtype.kind() != Kind::Complex {
            let (op, expected) = (self.name(), "a complex dtype");
            return Err(Error::DType { op, arg: "x", got: x.dtype, expected });
        }
        Inferred::only(Meta { dtype: real_dtype(x.dtype), shape: x.dims() })
    }

    /// A complex number stores its imaginary part second, so that of a tensor is a view.
    fn run(&self, [x]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        let dtype = real_dtype(x.dtype);
        let shift = if x.layout.numel() == 0 { 0 } else { dtype.size() };
        let layout = Layout::over(x.shape(), x.layout.strides(), x.layout.offset() + shift);
        Ok(Array { dtype, layout, ..(*x).clone() })
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        rule.each(|k| {
            let dtype = rule.meta(k).dtype;
            let unit = Scalar::Complex(Complex64::new(0.0, 1.0));
            let unit = Tensor::number(self.name(), "x", unit, dtype)?;
            rule.g().narrowed(dtype)?.multiply(&unit).map(Some)
        })
    }
}

fn real_dtype(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        real => real,
    }
}

impl Tensor {
    /// Returns every number with the opposite sign. Integers wrap.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// assert_eq!(Tensor::from([1, -2]).negative()?.to_vec::<i32>()?, [-1, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A bool tensor, because bools have no sign.
    #[track_caller]
    pub fn negative(&self) -> Result<Tensor> {
        apply(Pointwise(Unary::Negative), &[self])
    }

    /// Returns the complex conjugate. A real tensor is returned unchanged.
    ///
    /// ```
    /// # use inlay::{Complex32, Tensor};
    /// let x = Tensor::from(Complex32::new(1.0, 2.0));
    /// assert_eq!(x.conjugate()?.item::<Complex32>()?, Complex32::new(1.0, -2.0));
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is not enough memory.
    #[track_caller]
    pub fn conjugate(&self) -> Result<Tensor> {
        match self.dtype().kind() {
            Kind::Complex => apply(Pointwise(Unary::Conjugate), &[self]),
            _ => Ok(self.clone()),
        }
    }

    /// Returns the real part as a view. A real tensor is its own real part.
    ///
    /// ```
    /// # use inlay::{Complex32, Tensor};
    /// let x = Tensor::from(Complex32::new(1.0, 2.0));
    /// assert_eq!(x.real()?.item::<f32>()?, 1.0);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// None that input can cause.
    #[track_caller]
    pub fn real(&self) -> Result<Tensor> {
        apply(Real, &[self])
    }

    /// Returns the imaginary part: a view, or zeros for a real tensor.
    ///
    /// ```
    /// # use inlay::{Complex64, Tensor};
    /// let x = Tensor::from_slice(&[Complex64::new(1.0, 2.0)], &[1])?;
    /// assert_eq!(x.imag()?.to_vec::<f64>()?, [2.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is not enough memory.
    #[track_caller]
    pub fn imag(&self) -> Result<Tensor> {
        match self.dtype().kind() {
            Kind::Complex => apply(Imag, &[self]),
            _ => {
                let all = Tensor::number(IMAG.name, "x", true, DType::Bool)?;
                within(IMAG.name, || self.masked_fill(&all, false))
            }
        }
    }
}
