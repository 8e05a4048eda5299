//! The fifteen element types in WGSL: how each is read and written, and what it is computed in.

use inlay_core::DType;

use crate::shader::Kernel;

const PAIRS: &str = include_str!("pairs.wgsl");

/// In what a dtype is computed: its name, its text, the order's text, and its bytes.
fn class(dtype: DType) -> (&'static str, &'static str, &'static str, usize) {
    let (order, no_order) = (include_str!("order.wgsl"), include_str!("no_order.wgsl"));
    match dtype {
        DType::Bool => ("bool", include_str!("bool.wgsl"), order, 4),
        DType::U8 | DType::U16 | DType::U32 => ("u32", include_str!("u32.wgsl"), order, 4),
        DType::I8 | DType::I16 | DType::I32 => ("i32", include_str!("i32.wgsl"), order, 4),
        DType::U64 | DType::I64 => ("int64", include_str!("int64.wgsl"), order, 8),
        DType::F16 | DType::BF16 | DType::F32 => ("f32", include_str!("f32.wgsl"), order, 4),
        DType::F64 => ("f64", include_str!("f64.wgsl"), order, 8),
        DType::C64 => ("c64", include_str!("c64.wgsl"), no_order, 8),
        DType::C128 => ("c128", include_str!("c128.wgsl"), no_order, 16),
    }
}

/// Bytes of what a dtype is computed in.
pub(crate) fn wide_size(dtype: DType) -> usize {
    class(dtype).3
}

fn encoding(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => include_str!("as_bool.wgsl"),
        DType::U8 => include_str!("as_u8.wgsl"),
        DType::U16 => include_str!("as_u16.wgsl"),
        DType::I8 => include_str!("as_i8.wgsl"),
        DType::I16 => include_str!("as_i16.wgsl"),
        DType::F16 => include_str!("as_f16.wgsl"),
        DType::BF16 => include_str!("as_bf16.wgsl"),
        DType::I64 => concat!(include_str!("as_wide.wgsl"), include_str!("i64.wgsl")),
        DType::U64 => concat!(include_str!("as_wide.wgsl"), include_str!("u64.wgsl")),
        _ => include_str!("as_wide.wgsl"),
    }
}

impl Kernel<'_> {
    /// Lets the body compute with numbers of `dtype`: `num` and `raw` for elements, `N` and what is
    /// done with it.
    pub(crate) fn numbers(self, dtype: DType) -> Self {
        let (name, text, order, _) = class(dtype);
        self.with("", PAIRS).with(name, text).with("", order).with(dtype.name(), encoding(dtype))
    }
}
