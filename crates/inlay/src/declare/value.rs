//! The values of arguments, as bindings and tests pass them to a declared operation.

use std::borrow::Cow;

use inlay_core::{DType, Reduce};

use super::{Argument, ArgumentKind};
use crate::{Device, Scalar, Tensor};

/// The value of an argument.
///
/// ```
/// use inlay::{Tensor, Value};
///
/// let tril = inlay::operations().iter().find(|op| op.name == "tril").expect("it is there");
/// let x = Tensor::from([[1, 2], [3, 4]]);
/// let lower = tril.call(&[(&x).into(), Value::Int(-1)])?;
/// assert_eq!(lower.to_vec::<i32>()?, [0, 0, 3, 0]);
/// # Ok::<(), inlay::Error>(())
/// ```
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each name is its own documentation")]
pub enum Value<'a> {
    /// The argument was left out.
    Absent,
    Tensor(Cow<'a, Tensor>),
    Tensors(Vec<Cow<'a, Tensor>>),
    Int(i64),
    Flag(bool),
    /// A reduction, or `None` for an assignment.
    Reduce(Option<Reduce>),
    DType(DType),
    Device(Device),
    Scalar(Scalar),
    Ints(Vec<i64>),
    Bounds(Bounds),
}

/// Bounds of slices, or axes.
///
/// ```
/// use inlay::{Bounds, Value};
///
/// let every_second = Value::Bounds(Bounds::One(2));
/// let of_two_axes = Value::Bounds(Bounds::List(vec![Some(1), None]));
/// # drop((every_second, of_two_axes));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bounds {
    /// A single number.
    One(i64),
    /// A list with a number for each axis. `None` is an open end.
    List(Vec<Option<i64>>),
}

impl Bounds {
    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        match self {
            Bounds::One(_) => 1,
            Bounds::List(items) => items.len(),
        }
    }

    /// Returns the entry for axis `k`.
    pub(crate) fn get(&self, k: usize) -> Option<i64> {
        match self {
            Bounds::One(value) => Some(*value),
            Bounds::List(items) => items.get(k).copied().flatten(),
        }
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self, Bounds::List(_))
    }
}

impl Value<'_> {
    /// Whether the value is of the declared kind.
    pub(super) fn fits(&self, argument: &Argument) -> bool {
        use ArgumentKind as Kind;
        match self {
            Value::Absent => argument.default.is_some(),
            Value::Tensor(_) => argument.kind.is_tensor(),
            Value::Tensors(_) => matches!(argument.kind, Kind::Tensors | Kind::Indices),
            Value::Int(_) => matches!(argument.kind, Kind::Int | Kind::Bound | Kind::Extent),
            Value::Flag(_) => argument.kind == Kind::Flag,
            Value::Reduce(Some(_)) => {
                matches!(argument.kind, Kind::Reduce | Kind::ReduceOrAssign)
            }
            Value::Reduce(None) => argument.kind == Kind::ReduceOrAssign,
            Value::DType(_) => argument.kind == Kind::DType,
            Value::Device(_) => argument.kind == Kind::Device,
            Value::Scalar(_) => argument.kind == Kind::Scalar,
            Value::Ints(_) => matches!(argument.kind, Kind::Ints | Kind::Sizes | Kind::Axes),
            Value::Bounds(_) => matches!(argument.kind, Kind::AxisList | Kind::BoundList),
        }
    }

    /// Returns the name of the variant, for an error.
    pub(super) fn describe(&self) -> String {
        let whole = format!("{self:?}");
        whole.split(['(', '{']).next().unwrap_or_default().trim().to_owned()
    }
}

impl<'a> From<&'a Tensor> for Value<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Value::Tensor(Cow::Borrowed(tensor))
    }
}

impl From<Tensor> for Value<'_> {
    fn from(tensor: Tensor) -> Self {
        Value::Tensor(Cow::Owned(tensor))
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Flag(value)
    }
}

impl From<Reduce> for Value<'_> {
    fn from(value: Reduce) -> Self {
        Value::Reduce(Some(value))
    }
}

impl From<DType> for Value<'_> {
    fn from(value: DType) -> Self {
        Value::DType(value)
    }
}
