//! Regions: parts of a tensor that a layout can describe. Reading a region makes a view, and
//! writing one copies to that view. Slices, diagonals and single positions differ only in their
//! layout.

use std::fmt;
use std::hash::Hash;

use inlay_core::{Dim, Dims, Layout, Meta, Result, expect_shape};
use inlay_cpu::tuning::{SHORT_RUN, SMALL_REGION, WIDE_TOOTH};
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use crate::array::Array;
use crate::declare::Operation;
use crate::device::{self, Comb};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule};

/// A part of a tensor that a layout can describe.
pub(crate) trait Region: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {
    /// What the tensor's rank and sizes determine about the region, for example its axes counted
    /// from the front.
    type Found: fmt::Debug + Send + Sync + 'static;

    /// The operation that reads the region.
    fn reader(&self) -> &'static Operation;
    /// The operation that writes the region. Its first input is the tensor, its second the values.
    fn writer(&self) -> &'static Operation;
    /// Returns the shape of the region, or an error if `x` has no such part. Errors name the
    /// operation `op` and call `x` `arg`.
    fn shape(&self, op: &'static str, arg: &'static str, x: &Meta) -> Result<(Dims, Self::Found)>;
    /// Returns the layout of the region in `x`, whose shape has passed `shape`.
    fn layout(&self, found: &Self::Found, x: &Layout) -> Layout;
    /// Returns layouts that together cover every element outside of the region. They may also cover
    /// elements of the region, which are then copied needlessly.
    fn rest(&self, _found: &Self::Found, x: &Layout) -> SmallVec<[Layout; 4]> {
        smallvec![x.clone()]
    }
    /// Returns the region as a comb over a contiguous `x`, if it is one whose elements are in
    /// row-major order.
    fn comb(&self, _found: &Self::Found, _x: &Layout) -> Option<Comb> {
        None
    }
    /// See [`Op::sizes`].
    fn sizes(&self) -> Dims {
        Dims::new()
    }
    /// See [`Op::with_sizes`].
    fn with_sizes(&self, _sizes: &[Dim]) -> Option<Self> {
        None
    }
}

/// Reads a region as a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct ReadRegion<R>(pub(crate) R);

impl<R: Region> Op for ReadRegion<R> {
    type Inputs = Inputs<1>;
    type Found = R::Found;
    const IS_VIEW: bool = true;

    fn operation(&self) -> &'static Operation {
        self.0.reader()
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<R::Found>> {
        let (shape, found) = self.0.shape(self.name(), "x", x)?;
        Inferred::new(x.with_shape(shape), found)
    }

    fn run(&self, [x]: &[&Array; 1], inferred: &Inferred<R::Found>, _out: Out) -> Result<Array> {
        Ok(x.with_layout(self.0.layout(&inferred.found, &x.layout)))
    }

    fn sizes(&self) -> Dims {
        self.0.sizes()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        self.0.with_sizes(sizes).map(ReadRegion)
    }

    fn grad(&self, rule: &Rule<'_>, _found: &R::Found) -> Result<Grads> {
        let write = || WriteRegion(self.0.clone());
        rule.each(|k| apply(write(), &[&rule.zeros(k)?, rule.g()]).map(Some))
    }
}

/// Returns the length in bytes of the contiguous runs of a layout. Elements have `size` bytes.
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
pub(crate) struct WriteRegion<R>(pub(crate) R);

impl<R: Region> Op for WriteRegion<R> {
    type Inputs = Inputs<2>;
    type Found = R::Found;
    const WRITES: bool = true;

    fn operation(&self) -> &'static Operation {
        self.0.writer()
    }

    fn infer(&self, [x, source]: &[Meta; 2]) -> Result<Inferred<R::Found>> {
        let operation = self.operation();
        let (op, target, arg) = (operation.name, operation.target(), operation.source);
        let (expected, found) = self.0.shape(op, target, x)?;
        source.expect_dtype_of(op, arg, x, target)?;
        expect_shape(op, arg, &source.shape, &expected)?;
        Inferred::new(x.clone(), found)
    }

    fn run(
        &self,
        [x, source]: &[&Array; 2],
        Inferred { found, .. }: &Inferred<R::Found>,
        out: Out,
    ) -> Result<Array> {
        let (to, base) = out.of(self.name(), x)?;
        let region = self.0.layout(found, &to.layout);
        let few = region.numel() <= to.layout.numel() / SMALL_REGION.get();
        let Some(base) = base.filter(|_| to.buffer.len() > device::copied_whole(&to, few)) else {
            device::copy_over(&to, base, &region, source)?;
            return Ok(to);
        };
        if device::interleaves(&to)
            && base.is_contiguous()
            && source.is_contiguous()
            && let Some(comb) = self.0.comb(found, &to.layout)
            && comb.width.saturating_mul(to.dtype.size()) < WIDE_TOOTH.get()
        {
            device::interleave(&to, base, source, comb)?;
            return Ok(to);
        }
        let mut parts = SmallVec::<[(Layout, Array); 5]>::new();
        if run_bytes(&region, to.dtype.size()) < SHORT_RUN.get() {
            parts.push((to.layout.clone(), base.clone()));
        } else {
            let rest = self.0.rest(found, &to.layout).into_iter();
            let rest = rest.zip(self.0.rest(found, &base.layout));
            parts.extend(rest.map(|(to_part, from)| (to_part, base.with_layout(from))));
        }
        parts.push((region, (*source).clone()));
        device::overlay(&to, &parts)?;
        Ok(to)
    }

    fn sizes(&self) -> Dims {
        self.0.sizes()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        self.0.with_sizes(sizes).map(WriteRegion)
    }

    fn grad(&self, rule: &Rule<'_>, _found: &R::Found) -> Result<Grads> {
        let g = rule.g();
        rule.each(|k| match k {
            0 => apply(WriteRegion(self.0.clone()), &[g, &rule.zeros(1)?]).map(Some),
            _ => apply(ReadRegion(self.0.clone()), &[g]).map(Some),
        })
    }
}
