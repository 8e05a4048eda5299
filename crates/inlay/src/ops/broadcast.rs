//! Broadcasting rules that operations share.

use std::borrow::Cow;

use inlay_core::{Error, Meta, Result, ShapeText, broadcast_dims, expect_shape, may_equal};

use crate::array::Array;

/// Fails unless `mask` is bool and broadcasts to the shape of `x`.
pub(super) fn expect_mask_for(op: &'static str, mask: &Meta, x: &Meta) -> Result<()> {
    mask.expect_mask(op, "mask")?;
    expect_stretch(op, "mask", mask, x)
}

/// Fails unless `meta` broadcasts to the shape of `x`.
pub(super) fn expect_stretch(
    op: &'static str,
    arg: &'static str,
    meta: &Meta,
    x: &Meta,
) -> Result<()> {
    if meta.shape == x.shape {
        return Ok(());
    }
    match broadcast_dims(&[&x.shape, &meta.shape]) {
        Some(shape) if may_equal(&shape, &x.shape) => Ok(()),
        _ => {
            let (got, to) = (ShapeText::of(&meta.shape), ShapeText::of(&x.shape));
            Err(Error::Broadcast { op, arg, got, to })
        }
    }
}

/// Returns `array` broadcast to `shape`, as a view.
pub(super) fn stretch<'a>(
    op: &'static str,
    arg: &'static str,
    array: &'a Array,
    shape: &[usize],
) -> Result<Cow<'a, Array>> {
    if array.shape() == shape {
        return Ok(Cow::Borrowed(array));
    }
    let layout = array.layout.broadcast_to(shape).ok_or_else(|| Error::Broadcast {
        op,
        arg,
        got: ShapeText::of(array.shape()),
        to: ShapeText::of(shape),
    })?;
    Ok(Cow::Owned(array.with_layout(layout)))
}

/// Fails unless `value` is 0-D.
pub(super) fn expect_single(op: &'static str, value: &Meta) -> Result<()> {
    expect_shape(op, "value", &value.shape, &[])
}

/// Returns the common dtype and shape of two operands.
pub(super) fn common(op: &'static str, a: &Meta, b: &Meta) -> Result<Meta> {
    b.expect_dtype_of(op, "y", a, "x")?;
    let shape = broadcast_dims(&[&a.shape, &b.shape]).ok_or_else(|| Error::BroadcastTogether {
        op,
        a: ShapeText::of(&a.shape),
        b: ShapeText::of(&b.shape),
    })?;
    Ok(a.with_shape(shape))
}
