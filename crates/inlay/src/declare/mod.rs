//! Declarations: everything about an operation that is not code, stated once, beside its code.
//!
//! [`declare!`] turns a signature into an [`Operation`]. Python's functions, methods, signatures and
//! docstrings, the type stubs, the case runners and the table of [`operations`](crate::operations)
//! are made from it.

mod kind;
mod value;

use std::fmt;

use inlay_core::{DType, Error, Reduce, Result};

use crate::Tensor;
use crate::op::Out;

pub(crate) use kind::{Kind, kinds};
pub use value::{Bounds, Value};

/// An operation as it is declared.
///
/// ```
/// let scatter = inlay::operations().iter().find(|op| op.name == "scatter").expect("it is there");
/// assert_eq!(scatter.twin, Some("scatter_"));
/// assert_eq!(scatter.gradients, ["x", "updates"]);
/// assert_eq!(scatter.arguments[4].to_string(), "axis=0");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Operation {
    /// The name that users call it by, and that its errors begin with.
    pub name: &'static str,
    /// The name of the twin that writes into the first argument.
    pub twin: Option<&'static str>,
    /// The arguments, in order.
    pub arguments: &'static [Argument],
    /// The arguments that have a gradient.
    pub gradients: &'static [&'static str],
    /// What comes back.
    pub returns: Returns,
    /// What it does, with examples in Python; each line begins with a space.
    pub(crate) text: &'static str,
    /// What to say to a caller who passes one argument without the other that gives it a meaning.
    pub advice: Option<Advice>,
    /// The name of the last tensor, which holds what is written.
    pub(crate) source: &'static str,
    /// What a call does. Operations that only other operations call have no body.
    pub(crate) body: Option<Body>,
}

/// What a call does, given a value for each argument.
pub(crate) type Body = fn(Out, &[Value<'_>]) -> Result<Tensor>;

/// One argument of an operation. Its text is that of a Python signature.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Argument {
    /// The name.
    pub name: &'static str,
    /// What it takes.
    pub kind: ArgumentKind,
    /// What stands for it when it is left out; without one it is required.
    pub default: Option<Preset>,
    /// Whether it is passed by name only.
    pub keyword_only: bool,
}

/// What an argument takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ArgumentKind {
    /// A tensor.
    Tensor,
    /// A tensor of the dtype of the first one. Plain numbers and lists take that dtype.
    Like,
    /// One of two tensors of one dtype. A plain number or a list takes that of the other.
    Operand,
    /// A tensor of integers.
    Index,
    /// A bool tensor.
    Mask,
    /// A list of tensors.
    Tensors,
    /// A list of integer tensors, or of one mask.
    Indices,
    /// A 64-bit integer.
    Int,
    /// An integer that ends at the ends of 64 bits, past which nothing changes.
    Bound,
    /// A number of rows or columns.
    Extent,
    /// An axis, or a list of axes.
    AxisList,
    /// A bound of a slice, or a list of bounds with one for each axis.
    BoundList,
    /// An axis, a list of axes, or `None` for all.
    Axes,
    /// A list of integers.
    Ints,
    /// A shape.
    Sizes,
    /// A truth value.
    Flag,
    /// The name of a reduction.
    Reduce,
    /// The name of a reduction, or `assign`.
    ReduceOrAssign,
    /// A dtype.
    DType,
    /// A device.
    Device,
    /// A plain number.
    Scalar,
    /// The label of the nodes that the call adds to a program.
    Label,
}

impl ArgumentKind {
    /// Whether it takes one tensor.
    pub const fn is_tensor(self) -> bool {
        use ArgumentKind::{Index, Like, Mask, Operand, Tensor};
        matches!(self, Tensor | Like | Operand | Index | Mask)
    }

    /// Whether it takes a tensor or a list of them.
    pub const fn has_tensors(self) -> bool {
        self.is_tensor() || matches!(self, ArgumentKind::Tensors | ArgumentKind::Indices)
    }
}

/// A default.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each name is its own documentation")]
pub enum Preset {
    None,
    Int(i64),
    Flag(bool),
    Reduce(Reduce),
    Assign,
    DType(DType),
}

/// What an operation returns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Returns {
    /// A fresh tensor, in the form in which the arguments came.
    Fresh,
    /// A view of the first argument.
    View,
    /// A view where strides allow it, else a copy.
    ViewOrCopy,
    /// A fresh tensor that no argument gave a form: always a `Tensor`.
    Tensor,
}

/// Advice for a call that passes `given` without `without`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the type says what they are")]
pub struct Advice {
    pub given: &'static str,
    pub without: &'static str,
    pub text: &'static str,
}

impl Advice {
    pub(crate) const fn new(
        given: &'static str,
        without: &'static str,
        text: &'static str,
    ) -> Self {
        Advice { given, without, text }
    }
}

impl Operation {
    /// What it does, with examples in Python.
    pub fn doc(&self) -> String {
        let lines = self.text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The first paragraph of the documentation.
    pub fn summary(&self) -> String {
        let lines = self.text.lines().map(str::trim).take_while(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join(" ")
    }

    /// Whether it is also a method of a tensor: its first argument is one tensor.
    pub fn is_method(&self) -> bool {
        let first = self.arguments.first();
        first.is_some_and(|x| {
            matches!(x.kind, ArgumentKind::Tensor | ArgumentKind::Mask)
                || x.kind == ArgumentKind::Operand
        })
    }

    /// The name of the first argument, into which the twin writes.
    pub(crate) fn target(&self) -> &'static str {
        self.arguments.first().map_or("x", |first| first.name)
    }

    /// The name of input `k`, counting tensors only.
    pub(crate) fn input(&self, k: usize) -> String {
        let mut tensors = self.arguments.iter().filter(|argument| argument.kind.has_tensors());
        match tensors.nth(k) {
            Some(argument) => argument.name.into(),
            // The inputs are those of a list.
            None => match self.arguments.first() {
                Some(list) if list.kind == ArgumentKind::Tensors => format!("{}[{k}]", list.name),
                _ => format!("input {k}"),
            },
        }
    }

    /// Calls the operation with a value for each argument. The last ones may be left out.
    ///
    /// ```
    /// use inlay::{Tensor, Value};
    ///
    /// let find = |name| inlay::operations().iter().find(move |op| op.name == name);
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
    /// let index = Tensor::from_slice(&[2i64, 0], &[2])?;
    /// let rows = find("index_select").expect("it is there").call(&[(&x).into(), (&index).into()])?;
    /// assert_eq!(rows.to_vec::<f32>()?, [3.0, 1.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A value of another kind than is declared, too many of them, one that is missing; and whatever
    /// the operation reports.
    #[track_caller]
    pub fn call(&self, values: &[Value<'_>]) -> Result<Tensor> {
        self.invoke(Out::Fresh, values)
    }

    /// Calls the twin, which writes into the first argument and returns it.
    ///
    /// # Errors
    /// As [`Operation::call`]; also an operation without a twin.
    #[track_caller]
    pub fn call_in_place(&self, values: &[Value<'_>]) -> Result<Tensor> {
        if self.twin.is_none() {
            let (got, expected) = ("absent".into(), "an operation that has one".into());
            return Err(Error::Argument { op: self.name, arg: "the twin", got, expected });
        }
        self.invoke(Out::InPlace, values)
    }

    fn invoke(&self, out: Out, values: &[Value<'_>]) -> Result<Tensor> {
        if values.len() > self.arguments.len() {
            let (got, expected) = (values.len().to_string(), self.arguments.len().to_string());
            let arg = "the number of arguments";
            return Err(Error::Argument { op: self.name, arg, got, expected });
        }
        let mut all: Vec<Value<'_>> = Vec::with_capacity(self.arguments.len());
        for (k, argument) in self.arguments.iter().enumerate() {
            all.push(match values.get(k) {
                Some(value) if !matches!(value, Value::Absent) => {
                    self.expect(argument, value)?;
                    value.clone()
                }
                _ if argument.default.is_some() => Value::Absent,
                _ => {
                    let (got, expected) = ("missing".into(), "a value".into());
                    let (op, arg) = (self.name, argument.name);
                    return Err(Error::Argument { op, arg, got, expected });
                }
            });
        }
        match self.body {
            Some(body) => body(out, &all),
            None => unreachable!("the table has operations with bodies only"),
        }
    }

    fn expect(&self, argument: &Argument, value: &Value<'_>) -> Result<()> {
        if value.fits(argument) {
            return Ok(());
        }
        let (got, expected) = (value.describe(), format!("{:?}", argument.kind));
        Err(Error::Argument { op: self.name, arg: argument.name, got, expected })
    }

    /// Calls the operation with values that a binding has made of the declared kinds, in order; the last
    /// ones may be left out. In place, the first argument is written and returned.
    ///
    /// # Errors
    /// Whatever the operation reports.
    ///
    /// # Panics
    /// Values of other kinds than are declared.
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn call_bound(&self, in_place: bool, values: &[Value<'_>]) -> Result<Tensor> {
        let out = if in_place { Out::InPlace } else { Out::Fresh };
        match self.body {
            Some(body) => body(out, values),
            None => unreachable!("the table has operations with bodies only"),
        }
    }
}

impl Argument {
    pub(crate) const fn new<K: Kind>(
        name: &'static str,
        default: Option<Preset>,
        keyword_only: bool,
    ) -> Self {
        Argument { name, kind: K::KIND, default, keyword_only }
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.default {
            Some(default) => write!(f, "{}={default}", self.name),
            None => f.write_str(self.name),
        }
    }
}

/// As Python writes it.
impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Preset::None => f.write_str("None"),
            Preset::Int(value) => value.fmt(f),
            Preset::Flag(value) => f.write_str(if *value { "True" } else { "False" }),
            Preset::Reduce(reduce) => write!(f, "'{reduce}'"),
            Preset::Assign => f.write_str("'assign'"),
            Preset::DType(dtype) => write!(f, "'{dtype}'"),
        }
    }
}

/// The name of the last tensor among arguments.
pub(crate) const fn source(arguments: &[(&'static str, ArgumentKind)]) -> &'static str {
    let (mut source, mut k) = ("x", 0);
    while k < arguments.len() {
        if arguments[k].1.has_tensors() {
            source = arguments[k].0;
        }
        k += 1;
    }
    source
}

/// A default as it is written in a declaration.
macro_rules! preset {
    (None) => {
        $crate::declare::Preset::None
    };
    (true) => {
        $crate::declare::Preset::Flag(true)
    };
    (false) => {
        $crate::declare::Preset::Flag(false)
    };
    (sum) => {
        $crate::declare::Preset::Reduce(inlay_core::Reduce::Sum)
    };
    (assign) => {
        $crate::declare::Preset::Assign
    };
    (float32) => {
        $crate::declare::Preset::DType(inlay_core::DType::F32)
    };
    ($value:literal) => {
        $crate::declare::Preset::Int($value)
    };
}
pub(crate) use preset;

/// The first of two, or the second if there is no first.
macro_rules! first_or {
    ([$first:expr] $second:expr) => {
        $first
    };
    ([] $second:expr) => {
        $second
    };
}
pub(crate) use first_or;

/// The body of a declared operation: takes each argument in its own type.
macro_rules! body {
    ([] [] [$($arg:ident: $kind:ident = [$($default:tt)?],)*]) => {
        None
    };
    ([$body:expr] [$($out:ident)?] [$($arg:ident: $kind:ident = [$($default:tt)?],)*]) => {
        Some({
            #[track_caller]
            fn body(
                place: $crate::op::Out,
                values: &[$crate::declare::Value<'_>],
            ) -> inlay_core::Result<$crate::Tensor> {
                use $crate::declare::Kind;
                $(let $out = place;)?
                let _ = place;
                let mut values = values.iter();
                $(
                    let default = $crate::declare::first_or!(
                        [$(Some($crate::declare::preset!($default)))?] None
                    );
                    let $arg = $crate::declare::kinds::$kind::take(values.next(), default);
                    let _ = &$arg;
                )*
                let _ = values;
                $body
            }
            body
        })
    };
}
pub(crate) use body;

/// Declares the operations of a file.
///
/// ```text
/// declare! {
///     /// What it does.
///     ///
///     /// >>> an example in Python
///     NAME = "name"(x: Tensor, axis: Int = 0, *, flag: Flag = false)
///         -> View                      // or Tensor; fresh without
///         gradients [x]                // the arguments that have one
///         advice Advice::new(...)      // see there
///         twin out                     // it has a twin; `out` says which of both was called
///         => the result;               // an expression of the arguments
/// }
/// ```
///
/// The kinds of arguments are in [`kinds`]. An operation without `=>` is called by other operations
/// only; it is declared for its name and its arguments' names in errors.
macro_rules! declare {
    ($(
        $(#[doc = $doc:literal])*
        $static:ident = $name:literal (
            $($arg:ident: $kind:ident $(= $default:tt)?),*
            $(, *, $($keyword:ident: $keyword_kind:ident = $keyword_default:tt),+)? $(,)?
        )
        $(-> $returns:ident)?
        $(gradients [$($gradient:ident),*])?
        $(advice $advice:expr;)?
        $(twin $out:ident)?
        $(=> $body:expr)?;
    )*) => {
        /// The operations of this file.
        pub(super) static OPERATIONS: &[&$crate::declare::Operation] = &[$(&$static),*];

        $(
            $(#[doc = $doc])*
            pub(crate) static $static: $crate::declare::Operation = $crate::declare::Operation {
                name: $name,
                twin: $crate::declare::first_or!(
                    [$(Some({ let _ = stringify!($out); concat!($name, "_") }))?] None
                ),
                arguments: &[
                    $($crate::declare::Argument::new::<$crate::declare::kinds::$kind>(
                        stringify!($arg),
                        $crate::declare::first_or!(
                            [$(Some($crate::declare::preset!($default)))?] None
                        ),
                        false,
                    ),)*
                    $($($crate::declare::Argument::new::<$crate::declare::kinds::$keyword_kind>(
                        stringify!($keyword),
                        Some($crate::declare::preset!($keyword_default)),
                        true,
                    ),)+)?
                ],
                source: $crate::declare::source(&[
                    $((stringify!($arg), <$crate::declare::kinds::$kind as $crate::declare::Kind>::KIND),)*
                ]),
                gradients: &[$($(stringify!($gradient)),*)?],
                returns: $crate::declare::first_or!(
                    [$($crate::declare::Returns::$returns)?] $crate::declare::Returns::Fresh
                ),
                text: concat!($($doc, "\n"),*),
                advice: $crate::declare::first_or!([$(Some($advice))?] None),
                body: $crate::declare::body!(
                    [$($body)?] [$($out)?]
                    [
                        $($arg: $kind = [$($default)?],)*
                        $($($keyword: $keyword_kind = [$keyword_default],)+)?
                    ]
                ),
            };
        )*
    };
}
pub(crate) use declare;
