//! Folds over axes. They use the same tree as on the CPU: lanes within a block, then pairs of
//! blocks.

use inlay_core::{DType, Error, FOLD_BLOCK, FOLD_FEW_LANES, FOLD_LANES, Fold, Layout, Result};

use super::accumulator::{Accumulator, is_whole};
use super::expect;
use crate::View;
use crate::layout::count;
use crate::memory::Buffer;
use crate::shader::{Access, Kernel, Wgsl, wgsl, wgsl_file};

// Shaders count in 32 bits.
const BLOCK: u32 = FOLD_BLOCK as u32;
const LANES: u32 = FOLD_LANES as u32;
const FEW_LANES: u32 = FOLD_FEW_LANES as u32;

/// The WGSL of `identity()`, the initial value of a lane, and of `of_none()`, the fold of no
/// elements.
fn identity(how: Fold, dtype: DType) -> &'static Wgsl {
    macro_rules! identity {
        ($identity:literal, $none:literal) => {
            wgsl!(
                concat!("fn identity() -> A { return ", $identity, "; }\n"),
                concat!("fn of_none() -> A { return ", $none, "; }\n")
            )
        };
    }
    match (how, is_whole(dtype)) {
        (Fold::Sum | Fold::Mean, true) => identity!("A()", "A()"),
        (Fold::Prod, true) => identity!("A(1u, 0u)", "A(1u, 0u)"),
        (Fold::Sum | Fold::Mean, false) => identity!("minus_zero()", "zero()"),
        (Fold::Prod, false) => identity!("one()", "one()"),
        (Fold::Amax, _) => identity!("least()", "zero()"),
        (Fold::Amin, _) => identity!("most()", "zero()"),
    }
}

/// Writes to `to` the fold of `from` over the axes for which `over` is true. `to` has the dtype of
/// `from`, but sums and products of integers are 64-bit integers.
///
/// # Errors
/// The views don't fit, or the device can't compute with the dtype, is lost or refuses the call.
pub fn fold(how: Fold, to: View<'_>, from: View<'_>, over: &[bool]) -> Result<()> {
    let op = "sum";
    let rank = from.layout.rank();
    if over.len() != rank {
        return Err(Error::Rank {
            op,
            arg: "over",
            got: over.len(),
            expected: "one for each axis",
        });
    }
    if !(matches!(how, Fold::Sum | Fold::Prod) && is_whole(from.dtype)) {
        expect::dtype(op, "to", to, from.dtype)?;
    } else if !matches!(to.dtype, DType::I64 | DType::U64) {
        return Err(Error::DType { op, arg: "to", got: to.dtype, expected: "a 64-bit integer" });
    }
    from.expect_inside()?;
    let gpu = to.buffer.gpu();
    gpu.expect_arithmetic(op, from.dtype)?;
    let part = |folded: bool, offset| {
        let axes = (0..rank).filter(|&axis| over[axis] == folded);
        let sizes = axes.map(|axis| (from.layout.shape()[axis], from.layout.strides()[axis]));
        let (shape, strides): (Vec<usize>, Vec<isize>) = sizes.unzip();
        Layout::over(&shape, &strides, offset)
    };
    let (kept, folded) = (part(false, from.layout.offset()), part(true, 0));
    expect::elements(op, "to", to.layout.numel(), kept.numel())?;
    let (outer, inner) = (count(kept.numel())?, count(folded.numel())?);
    let mut blocks = inner.div_ceil(BLOCK).max(1);
    let acc = Accumulator::of_fold(how, from.dtype);
    let room = |blocks: u32| -> Result<(u32, Buffer)> {
        let count = count(outer as usize * blocks as usize)?;
        Ok((count, Buffer::on(gpu, count as usize * acc.size)?))
    };
    let (threads, mut partial) = room(blocks)?;
    Kernel::new("fold_blocks", wgsl_file!("fold_blocks.wgsl"), to.buffer)
        .accumulates(&acc, from.dtype)
        .with(identity(how, from.dtype))
        .constant("BLOCK", BLOCK)
        .constant("LANES", LANES)
        .constant("FEW_LANES", FEW_LANES)
        .params(&[blocks, inner])
        .operand("a", from.buffer, from.size(), Access::Read)
        .layout("kept", &kept, from.size())?
        .layout("folded", &folded, from.size())?
        .operand("partial", &partial, acc.size, Access::Write)
        .run(threads)?;
    while blocks > 1 {
        let fewer = blocks.div_ceil(2);
        let (threads, joined) = room(fewer)?;
        Kernel::new("fold_pairs", wgsl_file!("fold_pairs.wgsl"), to.buffer)
            .accumulates(&acc, from.dtype)
            .params(&[blocks, fewer])
            .operand("a", &partial, acc.size, Access::Read)
            .operand("joined", &joined, acc.size, Access::Write)
            .run(threads)?;
        (partial, blocks) = (joined, fewer);
    }
    let body =
        wgsl!("fn value(i: u32) -> Stored { return finish(acc_num(load_a(i)), param(0u)); }\n");
    Kernel::new("fold_end", body, to.buffer)
        .accumulates(&acc, from.dtype)
        .finishes(&acc)
        .params(&[inner])
        .operand("a", &partial, acc.size, Access::Read)
        .to(to)
}
