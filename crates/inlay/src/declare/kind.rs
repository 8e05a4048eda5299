//! The kinds of arguments: the name of each in declarations, and the type in which a body receives
//! it.

use inlay_core::{DType, Reduce};
use smallvec::SmallVec;

use super::{ArgumentKind, Bounds, Preset, Value};
use crate::{Device, Scalar};

/// A kind of argument.
pub(crate) trait Kind {
    /// The kind in the table of operations.
    const KIND: ArgumentKind;
    /// The type in which a body receives the argument.
    type Arrives<'a>;

    /// Returns the argument from its value, or from its default if it was left out.
    fn take<'a>(value: Option<&'a Value<'_>>, default: Option<Preset>) -> Self::Arrives<'a>;
}

/// Panics. The caller of a body has checked the kinds of its values.
#[cold]
fn mismatch(kind: ArgumentKind) -> ! {
    unreachable!("a value of another kind than {kind:?}")
}

/// Defines kinds. Each has a name in declarations, a variant of [`ArgumentKind`], the type in which
/// a body receives it, and patterns that convert a value and a default to this type. A kind whose
/// name begins with `Maybe` is received as `None` if it was left out.
macro_rules! kind {
    ($(
        $(#[$doc:meta])*
        $name:ident($kind:ident) $type:ty: $($pattern:pat => $arrives:expr),+
        $(; | $($preset:pat => $stands:expr),+)?;
    )+) => {
        /// The names of the kinds in declarations.
        pub(crate) mod kinds {
            use super::*;

            $($(#[$doc])*
            pub(crate) struct $name;

            impl Kind for $name {
                const KIND: ArgumentKind = ArgumentKind::$kind;
                type Arrives<'a> = $type;

                #[inline]
                fn take<'a>(
                    value: Option<&'a Value<'_>>,
                    default: Option<Preset>,
                ) -> Self::Arrives<'a> {
                    let _ = default;
                    match value {
                        $(Some($pattern) => $arrives,)+
                        $(Some(Value::Absent) | None => match default {
                            $(Some($preset) => $stands,)+
                            _ => mismatch(ArgumentKind::$kind),
                        },)?
                        _ => mismatch(ArgumentKind::$kind),
                    }
                }
            })+
        }
    };
}

kind! {
    /// A tensor.
    Tensor(Tensor) &'a crate::Tensor: Value::Tensor(tensor) => tensor;
    /// A tensor of the dtype of the first one.
    Like(Like) &'a crate::Tensor: Value::Tensor(tensor) => tensor;
    /// One of two tensors of the same dtype.
    Operand(Operand) &'a crate::Tensor: Value::Tensor(tensor) => tensor;
    /// A tensor of integers.
    Index(Index) &'a crate::Tensor: Value::Tensor(tensor) => tensor;
    /// A bool tensor.
    Mask(Mask) &'a crate::Tensor: Value::Tensor(tensor) => tensor;
    /// A list of tensors.
    Tensors(Tensors) SmallVec<[&'a crate::Tensor; 4]>:
        Value::Tensors(tensors) => tensors.iter().map(|tensor| &**tensor).collect();
    /// A list of integer tensors, or a list with a single mask.
    Indices(Indices) SmallVec<[&'a crate::Tensor; 4]>:
        Value::Tensors(tensors) => tensors.iter().map(|tensor| &**tensor).collect();
    /// An integer.
    Int(Int) i64: Value::Int(value) => *value; | Preset::Int(value) => value;
    /// An integer that is clamped to the range of 64 bits.
    Bound(Bound) i64: Value::Int(value) => *value; | Preset::Int(value) => value;
    /// A number of rows or columns.
    Extent(Extent) i64: Value::Int(value) => *value;
    /// The same, but it may be left out.
    MaybeExtent(Extent) Option<i64>: Value::Int(value) => Some(*value); | _ => None;
    /// An axis, or a list of axes.
    MaybeAxisList(AxisList) Option<&'a Bounds>:
        Value::Bounds(bounds) => Some(bounds); | _ => None;
    /// A bound of a slice, or a list of bounds.
    MaybeBoundList(BoundList) Option<&'a Bounds>:
        Value::Bounds(bounds) => Some(bounds); | _ => None;
    /// Axes, or `None` for all axes.
    Axes(Axes) Option<&'a [i64]>: Value::Ints(axes) => Some(&axes[..]); | Preset::None => None;
    /// Integers.
    Ints(Ints) &'a [i64]: Value::Ints(values) => &values[..];
    /// A shape.
    Sizes(Sizes) SmallVec<[usize; 6]>:
        Value::Ints(sizes) => sizes.iter().map(|&size| size.max(0) as usize).collect();
    /// A truth value.
    Flag(Flag) bool: Value::Flag(value) => *value; | Preset::Flag(value) => value;
    /// A reduction.
    Reduction(Reduce) Reduce: Value::Reduce(Some(reduce)) => *reduce;
        | Preset::Reduce(reduce) => reduce;
    /// A reduction, or `None` to assign.
    ReduceOrAssign(ReduceOrAssign) Option<Reduce>: Value::Reduce(reduce) => *reduce;
        | Preset::Reduce(reduce) => Some(reduce), Preset::Assign => None;
    /// A dtype.
    Type(DType) DType: Value::DType(dtype) => *dtype; | Preset::DType(dtype) => dtype;
    /// The same, but it may be left out.
    MaybeType(DType) Option<DType>: Value::DType(dtype) => Some(*dtype); | _ => None;
    /// A device. The current device is used if it is left out.
    MaybeDevice(Device) Option<Device>: Value::Device(device) => Some(*device); | _ => None;
    /// A plain number.
    Number(Scalar) Scalar: Value::Scalar(number) => *number;
    /// The same, but it may be left out.
    MaybeNumber(Scalar) Option<Scalar>: Value::Scalar(number) => Some(*number); | _ => None;
    /// The label of nodes in a program. The caller of the body has set it already, so the body
    /// receives nothing.
    Label(Label) (): Value::Flag(_) => (); | _ => ();
}
