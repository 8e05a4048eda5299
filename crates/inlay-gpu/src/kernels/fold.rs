//! Folds over axes, by the CPU's tree: lanes of a block, then blocks pairwise.

use inlay_core::{DType, FOLD_BLOCK, FOLD_FEW_LANES, FOLD_LANES, Fold, Kind, Layout, Result};

use crate::View;
use crate::layout::count;
use crate::memory::Buffer;
use crate::numbers::wide_size;
use crate::shader::{Access, Kernel};

// Shaders count in 32 bits.
const BLOCK: u32 = FOLD_BLOCK as u32;
const LANES: u32 = FOLD_LANES as u32;
const FEW_LANES: u32 = FOLD_FEW_LANES as u32;

/// What is accumulated: its name, bytes and text.
fn accumulator(how: Fold, dtype: DType) -> (&'static str, usize, &'static str) {
    /// Numbers themselves.
    macro_rules! plain {
        ($nothing:literal, $empty:literal, $join:literal, $end:literal) => {
            concat!(
                "alias A = N;\nalias AW = W;\n",
                "fn lift(n: N) -> A { return n; }\n",
                "fn acc_num(w: AW) -> A { return wide_num(w); }\n",
                "fn acc_raw(a: A) -> AW { return wide_raw(a); }\n",
                "fn nothing() -> A { return ",
                $nothing,
                "(); }\nfn empty() -> A { return ",
                $empty,
                "(); }\nfn meet(a: A, b: A) -> A { return ",
                $join,
                "(a, b); }\nfn finish(a: A, count: u32) -> W2 { return ",
                $end,
                "; }\n"
            )
        };
    }
    /// Integers of 64 bits.
    macro_rules! pair {
        ($one:literal, $join:literal) => {
            concat!(
                "alias A = vec2<u32>;\nalias AW = vec2<u32>;\n",
                "fn lift(n: N) -> A { return pair_of(n); }\n",
                "fn acc_num(w: AW) -> A { return w; }\n",
                "fn acc_raw(a: A) -> AW { return a; }\n",
                "fn nothing() -> A { return A(",
                $one,
                ", 0u); }\nfn empty() -> A { return nothing(); }\n",
                "fn meet(a: A, b: A) -> A { return ",
                $join,
                "(a, b); }\nfn finish(a: A, count: u32) -> W2 { return a; }\n"
            )
        };
    }
    let whole = matches!(dtype.kind(), Kind::Integer | Kind::Bool);
    let wide = wide_size(dtype);
    match how {
        Fold::Sum if whole => ("sum64", 8, pair!("0u", "pair_add")),
        Fold::Prod if whole => ("prod64", 8, pair!("1u", "pair_mul")),
        Fold::Mean if whole => (
            "mean128",
            16,
            "alias A = M;\nalias AW = M;\n\
             fn lift(n: N) -> A { return mean_lift(n); }\n\
             fn acc_num(w: AW) -> A { return w; }\n\
             fn acc_raw(a: A) -> AW { return a; }\n\
             fn nothing() -> A { return M(0u); }\n\
             fn empty() -> A { return nothing(); }\n\
             fn meet(a: A, b: A) -> A { return mean_add(a, b); }\n\
             fn finish(a: A, count: u32) -> W2 { return raw(mean_end(a, count)); }\n",
        ),
        Fold::Sum => ("sum", wide, plain!("minus_zero", "zero", "add", "raw(a)")),
        Fold::Mean => {
            ("mean", wide, plain!("minus_zero", "zero", "add", "raw(mean_end(a, count))"))
        }
        Fold::Prod => ("prod", wide, plain!("one", "one", "mul", "raw(a)")),
        Fold::Amax => ("amax", wide, plain!("least", "zero", "larger", "raw(a)")),
        Fold::Amin => ("amin", wide, plain!("most", "zero", "smaller", "raw(a)")),
    }
}

/// What a stored element is made of.
fn stored(size: usize) -> &'static str {
    match size {
        16 => "alias W2 = vec4<u32>;\n",
        8 => "alias W2 = vec2<u32>;\n",
        _ => "alias W2 = u32;\n",
    }
}

/// `to` is the fold of `from` over the axes for which `over` is true.
///
/// # Errors
/// A device that can't compute with the dtype, is gone, or refuses.
pub fn fold(how: Fold, to: View<'_>, from: View<'_>, over: &[bool]) -> Result<()> {
    let gpu = to.buffer.gpu();
    gpu.expect_arithmetic("sum", from.dtype)?;
    let part = |summed: bool, offset| {
        let axes = (0..from.layout.rank()).filter(|&axis| over[axis] == summed);
        let sizes = axes.map(|axis| (from.layout.shape()[axis], from.layout.strides()[axis]));
        let (shape, strides): (Vec<usize>, Vec<isize>) = sizes.unzip();
        Layout::over(&shape, &strides, offset)
    };
    let (kept, summed) = (part(false, from.layout.offset()), part(true, 0));
    let (outer, inner) = (count(kept.numel())?, count(summed.numel())?);
    let mut blocks = inner.div_ceil(BLOCK).max(1);
    let (name, size, text) = accumulator(how, from.dtype);
    let room =
        |blocks: u32| Buffer::on(gpu, count(outer as usize * blocks as usize)? as usize * size);
    let mut partial = room(blocks)?;
    Kernel::new("fold_blocks", include_str!("fold_blocks.wgsl"), to.buffer)
        .numbers(from.dtype)
        .with("", stored(to.size()))
        .with(name, text)
        .constant("BLOCK", BLOCK)
        .constant("LANES", LANES)
        .constant("FEW_LANES", FEW_LANES)
        .constant("STORED", to.size() as u32)
        .params(&[blocks, inner])
        .operand("a", from.buffer, from.size(), Access::Read)
        .block("kept", View { layout: &kept, ..from })?
        .block("summed", View { layout: &summed, ..from })?
        .operand("partial", &partial, size, Access::Write)
        .run(count(outer as usize * blocks as usize)?)?;
    while blocks > 1 {
        let fewer = blocks.div_ceil(2);
        let joined = room(fewer)?;
        Kernel::new("fold_pairs", include_str!("fold_pairs.wgsl"), to.buffer)
            .numbers(from.dtype)
            .with("", stored(to.size()))
            .with(name, text)
            .constant("STORED", to.size() as u32)
            .params(&[blocks, fewer])
            .operand("a", &partial, size, Access::Read)
            .operand("joined", &joined, size, Access::Write)
            .run(outer * fewer)?;
        (partial, blocks) = (joined, fewer);
    }
    let body = "fn value(i: u32) -> Word { return finish(acc_num(load_a(i)), own(0u)); }\n";
    Kernel::new("fold_end", body, to.buffer)
        .numbers(from.dtype)
        .with("", stored(to.size()))
        .with(name, text)
        .constant("STORED", to.size() as u32)
        .params(&[inner])
        .operand("a", &partial, size, Access::Read)
        .to(to)
}
