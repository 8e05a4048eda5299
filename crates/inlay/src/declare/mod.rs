//! Declarations: everything about an operation that is not code, stated once, in the file of its
//! code.
//!
//! [`declare!`] turns a signature into an [`Operation`]. The Python functions, methods, signatures
//! and docstrings, the type stubs, the case runners and the table of
//! [`operations`](crate::operations) are made from it.

mod kind;
mod value;

use std::fmt;

use inlay_core::{DType, Error, Reduce, Result};

use crate::Tensor;
use crate::op::Out;

pub(crate) use kind::{Kind, kinds};
pub use value::{Bounds, Value};

/// The declaration of an operation.
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
    /// The name that users call, with which its errors begin.
    pub name: &'static str,
    /// The name of the in-place version, which writes into the first argument.
    pub twin: Option<&'static str>,
    /// The arguments, in order.
    pub arguments: &'static [Argument],
    /// The arguments that have a gradient.
    pub gradients: &'static [&'static str],
    /// What the operation returns.
    pub returns: Returns,
    /// The documentation, with examples in Python. Each line begins with a space.
    pub(crate) text: &'static str,
    /// The advice for a caller who passes an argument without another one that gives it a meaning.
    pub advice: Option<Advice>,
    /// How a call for each item of a batch becomes one call.
    pub(crate) batch: Batch,
    /// The name of the last tensor among the arguments, which holds the values to write.
    pub(crate) source: &'static str,
    /// The code of a call. Operations that only other operations call have no body.
    pub(crate) body: Option<Body>,
}

/// The code of a call. It receives a value for each argument.
pub(crate) type Body = fn(Out, &[Value<'_>]) -> Result<Tensor>;

/// One argument of an operation. It is displayed as in a Python signature.
///
/// ```
/// let pad = inlay::operations().iter().find(|op| op.name == "tril").expect("it is there");
/// let names: Vec<&str> = pad.arguments.iter().map(|argument| argument.name).collect();
/// assert_eq!(names[..2], ["x", "diagonal"]);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Argument {
    /// The name of the argument.
    pub name: &'static str,
    /// The kind of values that the argument takes.
    pub kind: ArgumentKind,
    /// The default. An argument without a default is required.
    pub default: Option<Preset>,
    /// Whether the argument can be passed only by name.
    pub keyword_only: bool,
    /// Other names that this operation accepts for the argument.
    own_aliases: &'static [&'static str],
}

/// Other names of arguments, in every operation. Other libraries use them.
static ALIASES: &[(&str, &[&str])] = &[
    ("axis", &["dim"]),
    ("axis1", &["dim1"]),
    ("axis2", &["dim2"]),
    ("input", &["x"]),
    ("keepdim", &["keepdims"]),
    ("shape", &["size"]),
    ("x", &["input"]),
    ("y", &["other"]),
];

/// The kind of values that an argument takes.
///
/// ```
/// use inlay::ArgumentKind;
///
/// let tril = inlay::operations().iter().find(|op| op.name == "tril").expect("it is there");
/// assert_eq!(tril.arguments[0].kind, ArgumentKind::Tensor);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ArgumentKind {
    /// A tensor.
    Tensor,
    /// A tensor of the dtype of the first one. Plain numbers and lists take that dtype.
    Like,
    /// One of two tensors of the same dtype. A plain number or a list takes the dtype of the other.
    Operand,
    /// A tensor of integers.
    Index,
    /// A bool tensor.
    Mask,
    /// A list of tensors.
    Tensors,
    /// A list of integer tensors, or a list with a single mask.
    Indices,
    /// A 64-bit integer.
    Int,
    /// An integer that is clamped to the range of 64 bits. Values past the range have the same
    /// effect as its ends.
    Bound,
    /// A number of rows or columns.
    Extent,
    /// An axis, or a list of axes.
    AxisList,
    /// A bound of a slice, or a list of bounds with one for each axis.
    BoundList,
    /// An axis, a list of axes, or `None` for all axes.
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
    /// Whether the argument takes one tensor.
    ///
    /// ```
    /// # use inlay::ArgumentKind;
    /// assert!(ArgumentKind::Index.is_tensor() && !ArgumentKind::Tensors.is_tensor());
    /// ```
    pub const fn is_tensor(self) -> bool {
        use ArgumentKind::{Index, Like, Mask, Operand, Tensor};
        matches!(self, Tensor | Like | Operand | Index | Mask)
    }

    /// Whether the argument takes a list of integers.
    const fn is_integers(self) -> bool {
        matches!(self, ArgumentKind::Axes | ArgumentKind::Ints | ArgumentKind::Sizes)
    }

    /// Whether an integer can't be meant for the argument.
    const fn excludes_integers(self) -> bool {
        use ArgumentKind::{DType, Device, Label, Reduce, ReduceOrAssign};
        matches!(self, DType | Device | Label | Reduce | ReduceOrAssign)
    }

    /// Whether the argument takes a tensor or a list of tensors.
    ///
    /// ```
    /// # use inlay::ArgumentKind;
    /// assert!(ArgumentKind::Tensors.has_tensors() && !ArgumentKind::Int.has_tensors());
    /// ```
    pub const fn has_tensors(self) -> bool {
        self.is_tensor() || matches!(self, ArgumentKind::Tensors | ArgumentKind::Indices)
    }
}

/// The default of an argument.
///
/// ```
/// use inlay::Preset;
///
/// let tril = inlay::operations().iter().find(|op| op.name == "tril").expect("it is there");
/// assert_eq!(tril.arguments[1].default, Some(Preset::Int(0)));
/// ```
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
///
/// ```
/// use inlay::Returns;
///
/// let diagonal = inlay::operations().iter().find(|op| op.name == "diagonal");
/// assert_eq!(diagonal.expect("it is there").returns, Returns::View);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Returns {
    /// A fresh tensor. In Python it is a `Tensor` or a NumPy array, as the arguments are.
    Fresh,
    /// A view of the first argument.
    View,
    /// A view if strides can express it, otherwise a copy.
    ViewOrCopy,
    /// A fresh tensor of an operation without tensor arguments. In Python it is always a `Tensor`.
    Tensor,
}

/// How the calls of an operation for the items of a batch become one call on tensors that have the
/// batch as their first axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Batch {
    /// They don't: there is a call for each item.
    Each,
    /// The operation works element by element, and all tensors broadcast together.
    Elements,
    /// Arguments that are axes count from the end, so that they are the same with one more axis.
    Axes,
    /// Like `Axes`, with a 1-D index that all items share. If each item has its own index, the
    /// operation is the one that works along an axis element by element.
    Rows,
}

/// Advice for a call that passes `given` without `without`.
///
/// ```
/// let scatter = inlay::operations().iter().find(|op| op.name == "scatter");
/// let advice = scatter.and_then(|op| op.advice).expect("it has one");
/// assert_eq!((advice.given, advice.without), ("reduce", "overwrite"));
/// ```
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
    /// Returns the documentation, with examples in Python.
    ///
    /// ```
    /// let tril = inlay::operations().iter().find(|op| op.name == "tril").expect("it is there");
    /// assert!(tril.doc().contains(">>> inlay.tril("));
    /// ```
    pub fn doc(&self) -> String {
        let lines = self.text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns the first paragraph of the documentation.
    ///
    /// ```
    /// let add = inlay::operations().iter().find(|op| op.name == "add").expect("it is there");
    /// assert_eq!(add.summary(), "``x + y``, element by element; integers wrap, bools are or-ed.");
    /// ```
    pub fn summary(&self) -> String {
        let lines = self.text.lines().map(str::trim).take_while(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join(" ")
    }

    /// Whether the operation is also a method of a tensor: its first argument is one tensor.
    ///
    /// ```
    /// let find = |name| inlay::operations().iter().find(move |op| op.name == name);
    /// assert!(find("tril").is_some_and(|op| op.is_method()));
    /// assert!(find("zeros").is_some_and(|op| !op.is_method()));
    /// ```
    pub fn is_method(&self) -> bool {
        use ArgumentKind::{Mask, Operand, Tensor};
        self.arguments.first().is_some_and(|x| matches!(x.kind, Tensor | Mask | Operand))
    }

    /// The number of the argument that also takes its integers one by one, as in `zeros(2, 3)`. It
    /// is a list of integers, and the next argument by position can't be an integer.
    ///
    /// ```
    /// let find = |name| inlay::operations().iter().find(move |op| op.name == name);
    /// assert_eq!(find("reshape").and_then(|op| op.gathers()), Some(1));
    /// assert_eq!(find("full").and_then(|op| op.gathers()), None);
    /// ```
    pub fn gathers(&self) -> Option<usize> {
        let mut positional = self.arguments.iter().take_while(|argument| !argument.keyword_only);
        let place = positional.position(|argument| argument.kind.is_integers())?;
        let ends = positional.next().is_none_or(|next| next.kind.excludes_integers());
        ends.then_some(place)
    }

    /// Returns the number of the argument that has this other name.
    ///
    /// ```
    /// let sum = inlay::operations().iter().find(|op| op.name == "sum").expect("it is there");
    /// assert_eq!(sum.alias("dim"), Some(1));
    /// assert_eq!(sum.alias("axis"), None, "this is its own name");
    /// ```
    pub fn alias(&self, name: &str) -> Option<usize> {
        self.arguments.iter().position(|argument| argument.aliases().any(|alias| alias == name))
    }

    /// The name of the first argument, into which the in-place version writes.
    pub(crate) fn target(&self) -> &'static str {
        self.arguments.first().map_or("x", |first| first.name)
    }

    /// Returns the name of input `k`. Only tensors are counted.
    pub(crate) fn input(&self, k: usize) -> String {
        let mut tensors = self.arguments.iter().filter(|argument| argument.kind.has_tensors());
        match tensors.nth(k) {
            Some(argument) => argument.name.into(),
            // The inputs are the items of a list.
            None => match self.arguments.first() {
                Some(list) if list.kind == ArgumentKind::Tensors => format!("{}[{k}]", list.name),
                _ => format!("input {k}"),
            },
        }
    }

    /// Calls the operation with a value for each argument. Trailing arguments may be left out.
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
    /// A value of another kind than declared, too many values, a missing value; also the errors of
    /// the operation.
    #[track_caller]
    pub fn call(&self, values: &[Value<'_>]) -> Result<Tensor> {
        self.invoke(Out::Fresh, values)
    }

    /// Calls the in-place version, which writes into the first argument and returns it.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let fill = inlay::operations().iter().find(|op| op.name == "masked_fill").expect("it is there");
    /// let (x, mask, value) = (Tensor::from([1, 2]), Tensor::from([true, false]), Tensor::from(9));
    /// fill.call_in_place(&[(&x).into(), (&mask).into(), (&value).into()])?;
    /// assert_eq!(x.to_vec::<i32>()?, [9, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Operation::call`]; also an operation without an in-place version.
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
            None => unreachable!("every operation in the table has a body"),
        }
    }

    pub(crate) fn expect(&self, argument: &Argument, value: &Value<'_>) -> Result<()> {
        if value.fits(argument) {
            return Ok(());
        }
        let (got, expected) = (value.describe(), format!("{:?}", argument.kind));
        Err(Error::Argument { op: self.name, arg: argument.name, got, expected })
    }

    /// Calls the operation with values that a binding has converted to the declared kinds, in
    /// order. Trailing values may be left out. With `in_place`, the first argument is written and
    /// returned.
    ///
    /// # Errors
    /// The errors of the operation.
    ///
    /// # Panics
    /// If a value has another kind than declared.
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn call_bound(&self, in_place: bool, values: &[Value<'_>]) -> Result<Tensor> {
        let out = if in_place { Out::InPlace } else { Out::Fresh };
        match self.body {
            Some(body) => body(out, values),
            None => unreachable!("every operation in the table has a body"),
        }
    }
}

impl Argument {
    pub(crate) const fn new<K: Kind>(
        name: &'static str,
        default: Option<Preset>,
        keyword_only: bool,
        own_aliases: &'static [&'static str],
    ) -> Self {
        Argument { name, kind: K::KIND, default, keyword_only, own_aliases }
    }

    /// The other names of the argument: those that it has in every operation, then its own.
    ///
    /// ```
    /// let sum = inlay::operations().iter().find(|op| op.name == "sum").expect("it is there");
    /// assert_eq!(sum.arguments[1].aliases().collect::<Vec<_>>(), ["dim"]);
    /// ```
    pub fn aliases(&self) -> impl Iterator<Item = &'static str> + use<> {
        let shared = ALIASES.iter().find(|(name, _)| *name == self.name);
        let shared = shared.map_or(&[][..], |(_, aliases)| aliases);
        shared.iter().chain(self.own_aliases).copied()
    }

    /// Whether `None` stands for the default: the default is `None`, or other libraries write it
    /// so.
    ///
    /// ```
    /// let scatter = inlay::operations().iter().find(|op| op.name == "scatter");
    /// let [.., axis, _, name, _] = scatter.expect("it is there").arguments else { unreachable!() };
    /// assert!(name.takes_none() && !axis.takes_none());
    /// ```
    pub fn takes_none(&self) -> bool {
        use ArgumentKind::{BoundList, DType, Device, Label};
        let by_kind = matches!(self.kind, BoundList | DType | Device | Label);
        self.default.is_some_and(|default| by_kind || default == Preset::None)
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

/// Displays the default as Python writes it.
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

/// Returns the name of the last tensor among the arguments.
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

/// Converts a default of a declaration to a [`Preset`].
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
    // A negative default is written in parentheses, which makes it one token tree.
    ((-$value:literal)) => {
        $crate::declare::Preset::Int(-$value)
    };
}
pub(crate) use preset;

/// Expands to the first expression, or to the second one if there is no first.
macro_rules! first_or {
    ([$first:expr] $second:expr) => {
        $first
    };
    ([] $second:expr) => {
        $second
    };
}
pub(crate) use first_or;

/// Makes the body of a declared operation, which receives each argument in its own type.
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
///     NAME = "name"(x: Tensor, axis | axes: Int = 0, *, flag: Flag = false)
///         -> View                      // what it returns; Fresh by default
///         gradients [x]                // the arguments that have a gradient
///         batch Axes                   // see `Batch`; Each by default
///         advice Advice::new(...)      // see `Advice`
///         twin out                     // it has an in-place version; `out` says which was called
///         => the result;               // an expression of the arguments
/// }
/// ```
///
/// The kinds of arguments are in [`kinds`]. A name after `|` is another name of the argument in this
/// operation; those in all operations are in `ALIASES`. An operation without `=>` is called only by other
/// operations. It is declared so that errors can name it and its arguments.
macro_rules! declare {
    ($(
        $(#[doc = $doc:literal])*
        $static:ident = $name:literal (
            $($arg:ident $(| $alias:ident)*: $kind:ident $(= $default:tt)?),*
            $(, *, $($keyword:ident: $keyword_kind:ident = $keyword_default:tt),+)? $(,)?
        )
        $(-> $returns:ident)?
        $(gradients [$($gradient:ident),*])?
        $(batch $batch:ident)?
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
                        &[$(stringify!($alias)),*],
                    ),)*
                    $($($crate::declare::Argument::new::<$crate::declare::kinds::$keyword_kind>(
                        stringify!($keyword),
                        Some($crate::declare::preset!($keyword_default)),
                        true,
                        &[],
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
                batch: $crate::declare::first_or!(
                    [$($crate::declare::Batch::$batch)?] $crate::declare::Batch::Each
                ),
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
