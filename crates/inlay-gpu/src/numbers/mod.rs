//! The arithmetic of the fifteen dtypes in WGSL.
//!
//! Each dtype has a WGSL type `N` in which it is computed, and a type `W` that holds the bits of
//! `N` as words. `wide_num` and `wide_raw` convert between `W` and `N`. `num` and `raw` convert
//! between a stored element and `N`. `M` is the type in which a mean is summed. Complex types have
//! no `less`, so a kernel that orders them does not compile.

use inlay_core::DType;

use crate::shader::{Kernel, Wgsl, wgsl, wgsl_file};

/// The arithmetic of 64-bit and 128-bit integers.
pub(crate) const PAIRS: &Wgsl = wgsl_file!("pairs.wgsl");
const SCALAR: &Wgsl = wgsl_file!("scalar.wgsl");
const WHOLE: &Wgsl = wgsl_file!("whole.wgsl");
const FLOAT: &Wgsl = wgsl_file!("float.wgsl");
const COMPLEX: &Wgsl = wgsl_file!("complex.wgsl");
const ORDER: &Wgsl = wgsl_file!("order.wgsl");

/// The pieces of WGSL that define `N` for a dtype. They need [`PAIRS`].
fn arithmetic(dtype: DType) -> &'static [&'static Wgsl] {
    match dtype {
        DType::Bool => const { &[WHOLE, SCALAR, ORDER, wgsl_file!("bool.wgsl")] },
        DType::U8 | DType::U16 | DType::U32 => {
            const { &[WHOLE, SCALAR, ORDER, wgsl_file!("u32.wgsl")] }
        }
        DType::I8 | DType::I16 | DType::I32 => {
            const { &[WHOLE, SCALAR, ORDER, wgsl_file!("i32.wgsl")] }
        }
        DType::U64 | DType::I64 => const { &[WHOLE, ORDER, wgsl_file!("int64.wgsl")] },
        DType::F16 | DType::BF16 | DType::F32 => {
            const { &[FLOAT, SCALAR, ORDER, wgsl_file!("f32.wgsl")] }
        }
        DType::F64 => const { &[FLOAT, SCALAR, ORDER, wgsl_file!("f64.wgsl")] },
        DType::C64 => const { &[COMPLEX, wgsl_file!("c64.wgsl")] },
        DType::C128 => const { &[COMPLEX, wgsl_file!("c128.wgsl")] },
    }
}

/// The piece of WGSL that converts between stored elements and `N`.
fn encoding(dtype: DType) -> &'static Wgsl {
    match dtype {
        DType::Bool => wgsl_file!("as_bool.wgsl"),
        DType::U8 => wgsl_file!("as_u8.wgsl"),
        DType::U16 => wgsl_file!("as_u16.wgsl"),
        DType::I8 => wgsl_file!("as_i8.wgsl"),
        DType::I16 => wgsl_file!("as_i16.wgsl"),
        DType::F16 => wgsl_file!("as_f16.wgsl"),
        DType::BF16 => wgsl_file!("as_bf16.wgsl"),
        DType::I64 => wgsl!(include_str!("as_wide.wgsl"), include_str!("i64.wgsl")),
        DType::U64 => wgsl!(include_str!("as_wide.wgsl"), include_str!("u64.wgsl")),
        _ => wgsl_file!("as_wide.wgsl"),
    }
}

/// The number of bytes of `W` for a dtype.
pub(crate) fn wide_size(dtype: DType) -> usize {
    dtype.size().max(4)
}

impl Kernel<'_> {
    /// Adds the arithmetic of `dtype` for the body.
    pub(crate) fn computes_in(self, dtype: DType) -> Self {
        self.with_all(&[PAIRS, encoding(dtype)]).with_all(arithmetic(dtype))
    }
}
