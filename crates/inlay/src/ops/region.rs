//! Regions: parts of a tensor that a layout can name. Reading one is a view; writing one is a copy
//! to that view. Slices, diagonals and single positions differ in their layout alone.

use std::fmt;

use inlay_core::{Dim, Dims, Layout, Meta, Result, expect_shape};
use inlay_cpu::tuning::{SHORT_RUN, SMALL_REGION, WIDE_TOOTH};
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use super::operation::Operation;
use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::device::{self, Comb};
use crate::funnel::{Op, Out, apply};

/// A part of a tensor.
pub(crate) trait Region: Clone + fmt::Debug + Send + Sync + 'static {
    /// What reading it is called.
    fn read_name(&self) -> &'static str;
    /// What writing it is called, and its two arguments.
    fn write_name(&self) -> (&'static str, &'static str, &'static str);
    /// Its shape, or why `x` has no such part; `op` and the name of `x` are for the error.
    fn shape(&self, op: &'static str, arg: &'static str, x: &Meta) -> Result<Dims>;
    /// Where it lies, for a layout whose shape has passed `shape`.
    fn layout(&self, x: &Layout) -> Result<Layout>;
    /// Where the rest lies: layouts that cover every element outside of the region, and may cover
    /// some inside of it if they are few.
    fn rest(&self, x: &Layout) -> Result<SmallVec<[Layout; 4]>> {
        Ok(smallvec![x.clone()])
    }
    /// The region as a comb over a contiguous `x`, if it is one, its elements in row-major order.
    fn comb(&self, _x: &Layout) -> Result<Option<Comb>> {
        Ok(None)
    }
    /// As [`Op::sizes`].
    fn sizes(&self) -> Dims {
        Dims::new()
    }
    /// As [`Op::with_sizes`].
    fn with_sizes(&self, _sizes: &[Dim]) -> Option<Self> {
        None
    }
}

/// Reads a region, as a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Read<R>(pub(crate) R);

impl<R: Region> Op for Read<R>
where
    Read<R>: Into<Operation>,
    Write<R>: Into<Operation>,
{
    fn name(&self) -> &'static str {
        self.0.read_name()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        Ok(x.with_shape(self.0.shape(self.name(), "x", x)?))
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x] = inputs else { unreachable!("one input") };
        Ok(x.with_layout(self.0.layout(&x.layout)?))
    }

    fn is_view(&self) -> bool {
        true
    }

    fn sizes(&self) -> Dims {
        self.0.sizes()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Operation> {
        self.0.with_sizes(sizes).map(|region| Read(region).into())
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|k| apply(Write(self.0.clone()), &[&rule.zeros(k)?, rule.g()]).map(Some))
    }
}

/// How many bytes of a layout of elements of `size` follow each other.
fn run_bytes(layout: &Layout, size: usize) -> usize {
    let mut run = size;
    for (&len, &stride) in layout.shape().iter().zip(layout.strides()).rev() {
        if len != 1 && stride != run as isize {
            break;
        }
        run *= len;
    }
    run
}

/// Writes a region.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Write<R>(pub(crate) R);

impl<R: Region> Op for Write<R>
where
    Read<R>: Into<Operation>,
    Write<R>: Into<Operation>,
{
    fn name(&self) -> &'static str {
        self.0.write_name().0
    }

    fn target(&self) -> &'static str {
        self.0.write_name().1
    }

    fn arg(&self, k: usize) -> String {
        let (_, x, source) = self.0.write_name();
        [x, source][k].into()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x, source] = inputs else { unreachable!("two inputs") };
        let (op, target, arg) = self.0.write_name();
        let expected = self.0.shape(op, target, x)?;
        source.expect_dtype_of(op, arg, x, target)?;
        expect_shape(op, arg, &source.shape, &expected)?;
        Ok(x.clone())
    }

    fn run(&self, inputs: &[&Array], out: Out) -> Result<Array> {
        let [x, source] = inputs else { unreachable!("two inputs") };
        let (to, base) = out.of(self.name(), x)?;
        let region = self.0.layout(&to.layout)?;
        let few = region.numel() <= to.layout.numel() / SMALL_REGION.get();
        let Some(base) = base.filter(|_| to.buffer.len() > device::copied_whole(&to, few)) else {
            device::copy_over(&to, base, &region, source)?;
            return Ok(to);
        };
        if device::interleaves(&to)
            && base.is_contiguous()
            && source.is_contiguous()
            && let Some(comb) = self.0.comb(&to.layout)?
            && comb.width.saturating_mul(to.dtype.size()) < WIDE_TOOTH.get()
        {
            device::interleave(&to, base, source, comb)?;
            return Ok(to);
        }
        let mut parts = SmallVec::<[(Layout, Array); 5]>::new();
        if run_bytes(&region, to.dtype.size()) < SHORT_RUN.get() {
            parts.push((to.layout.clone(), base.clone()));
        } else {
            let rest = self.0.rest(&to.layout)?.into_iter().zip(self.0.rest(&base.layout)?);
            parts.extend(rest.map(|(to_part, from)| (to_part, base.with_layout(from))));
        }
        parts.push((region, (*source).clone()));
        device::overlay(&to, &parts)?;
        Ok(to)
    }

    fn writes(&self) -> bool {
        true
    }

    fn sizes(&self) -> Dims {
        self.0.sizes()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Operation> {
        self.0.with_sizes(sizes).map(|region| Write(region).into())
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        let g = rule.g();
        rule.each(|k| match k {
            0 => apply(Write(self.0.clone()), &[g, &rule.zeros(1)?]).map(Some),
            _ => apply(Read(self.0.clone()), &[g]).map(Some),
        })
    }
}
