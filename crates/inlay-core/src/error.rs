//! The error type: typed fields, and a message that a user can act on.

use std::fmt;
use std::path::PathBuf;

use crate::{Cause, DType, Dim};

/// The result of every call that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The category of an error, named after Python's exceptions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each name is its own documentation")]
#[non_exhaustive]
pub enum ErrorKind {
    Type,
    Value,
    Index,
    Runtime,
    Memory,
    Os,
}

/// A shape as messages print it: `[2, ?, 3]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShapeText(Vec<Dim>);

impl ShapeText {
    /// Takes known or symbolic sizes.
    pub fn of<D: Copy + Into<Dim>>(shape: &[D]) -> Self {
        ShapeText(shape.iter().map(|&dim| dim.into()).collect())
    }

    /// The sizes.
    pub fn dims(&self) -> &[Dim] {
        &self.0
    }
}

impl fmt::Display for ShapeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, dim) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{dim}")?;
        }
        f.write_str("]")
    }
}

/// Everything that can fail. `op` is the operation, `arg` the argument that is wrong.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message beside each variant says what its fields mean")]
pub enum Error {
    // Dtypes
    #[error("{op}: {arg} has dtype {got}, {other} has dtype {want}")]
    DTypeMismatch {
        op: &'static str,
        arg: &'static str,
        got: DType,
        other: &'static str,
        want: DType,
    },
    #[error("{op}: {arg} has dtype {got}, expected {expected}")]
    DType { op: &'static str, arg: &'static str, got: DType, expected: &'static str },
    #[error("{op}: {what} is not defined for {dtype}")]
    Undefined { op: &'static str, what: String, dtype: DType },
    #[error("{op}: {arg} is a {got}, which a {dtype} tensor does not take without a cast")]
    Scalar { op: &'static str, arg: &'static str, got: &'static str, dtype: DType },

    // Shapes
    #[error("{op}: {arg} has shape {got}, expected {expected}")]
    Shape { op: &'static str, arg: &'static str, got: ShapeText, expected: ShapeText },
    #[error("{op}: {arg} has shape {got}, which does not broadcast to {to}")]
    Broadcast { op: &'static str, arg: &'static str, got: ShapeText, to: ShapeText },
    #[error("{op}: shapes {a} and {b} do not broadcast together")]
    BroadcastTogether { op: &'static str, a: ShapeText, b: ShapeText },
    #[error("{op}: {arg} has {got} dimensions, expected {expected}")]
    Rank { op: &'static str, arg: &'static str, got: usize, expected: &'static str },
    #[error("{op}: {arg} has shape {got}, expected at least {least} on axis {axis}")]
    TooShort { op: &'static str, arg: &'static str, got: ShapeText, axis: usize, least: usize },
    #[error("{op}: x has shape {from} of {have} elements, which shape {to:?} can't hold")]
    Reshape { op: &'static str, from: ShapeText, have: usize, to: Vec<i64> },

    // Functions
    #[error("{op}: {problem}")]
    Function { op: &'static str, problem: String },

    // Values
    #[error("{op}: {source_arg} has {have} elements, mask selects {need}", source_arg = arg)]
    SourceTooShort { op: &'static str, arg: &'static str, have: usize, need: usize },
    #[error("{op}: {arg} is {got}, expected {expected}")]
    Argument { op: &'static str, arg: &'static str, got: String, expected: String },
    #[error("{op}: shape {shape:?} needs more memory than can be addressed")]
    TooLarge { op: &'static str, shape: Vec<usize> },

    // Indices and axes
    #[error("{op}: {arg}{at} is {value}, out of range for axis {axis} of size {size}", at = at_text(position))]
    Index {
        op: &'static str,
        arg: &'static str,
        /// The position of the value in the index. Empty for a 0-D index or a plain number.
        position: Vec<usize>,
        value: i128,
        axis: usize,
        size: usize,
    },
    #[error("{op}: {arg} {axis} is out of range for rank {rank}")]
    Axis { op: &'static str, arg: &'static str, axis: i64, rank: usize },

    #[error("{op}: {got} in the index expression, expected {expected}")]
    TooManyIndices { op: &'static str, got: usize, expected: String },

    // Memory
    #[error("{op}: {arg} is read-only and can't be written in place")]
    ReadOnly { op: &'static str, arg: &'static str },
    #[error("{op}: {arg} has elements that overlap in memory and can't be written in place")]
    SelfOverlap { op: &'static str, arg: &'static str },
    #[error("{op}: {arg} is borrowed by with_slice or with_bytes and can't be written in place")]
    Borrowed { op: &'static str, arg: &'static str },
    #[error("out of memory: could not allocate {bytes} bytes")]
    OutOfMemory { bytes: usize },
    #[error("a tensor of {bytes} bytes is too large for {device}: its limit is {limit} bytes")]
    DeviceLimit { device: String, bytes: usize, limit: u64 },
    #[error("{what} lies outside of the {len} bytes of its memory")]
    OutOfBounds { what: &'static str, len: usize },

    // Devices
    #[error("no GPU: {reason}")]
    NoDevice { reason: String },
    #[error("{op}: {arg} is on {got}, {other} is on {want}; move one of them with .to()")]
    DeviceMismatch {
        op: &'static str,
        arg: String,
        got: &'static str,
        other: String,
        want: &'static str,
    },
    #[error("{op}: the tensor is on {got}; copy it to the CPU with .cpu() first")]
    NotOnCpu { op: &'static str, got: &'static str },
    #[error("{op}: {device} can't compute with {dtype}: it lacks {feature}")]
    Unsupported { op: &'static str, dtype: DType, device: String, feature: &'static str },
    #[error("the GPU is gone: {reason}")]
    DeviceLost { reason: String },
    #[error("the GPU refused a call: {reason}")]
    Device { reason: String },

    // Gradients
    #[error(
        "{op}: {arg} is a leaf that wants a gradient and can't be written in place while gradients \
         are recorded: write it under no_grad, or use the operation that returns a new tensor"
    )]
    InPlaceLeaf { op: &'static str, arg: &'static str },
    #[error(
        "{op}: {arg} is a view, and a gradient is wanted: write to the tensor itself, as in \
         x[...] = value"
    )]
    InPlaceView { op: &'static str, arg: &'static str },
    #[error(
        "{op}: an input is a view of memory that was written in place since; take the view again"
    )]
    StaleView { op: &'static str },
    #[error("backward: a value that {op} needs for its gradient was written in place since")]
    Modified { op: &'static str },
    #[error(
        "backward: what {op} kept was freed by an earlier backward; pass retain_graph to keep it"
    )]
    GraphFreed { op: &'static str },
    #[error("backward: a hook failed: {text}")]
    Hook { text: String, source: Option<Cause> },

    // Programs
    #[error(
        "{op}: the tensor is symbolic: its values are known only when its program runs. Fetch or \
         return it to see them; to choose by values, use where or a masked operation"
    )]
    Symbolic { op: &'static str },
    #[error(
        "{op}: {arg} is a view in a program and can't be written in place: write to the tensor \
         itself, as in x[...] = value"
    )]
    SymbolicView { op: &'static str, arg: &'static str },
    #[error("{op}: the tensors belong to different programs")]
    OtherProgram { op: &'static str },
    #[error(
        "{op}: an input wants a gradient but is no input of the program, which takes it as a \
         constant; pass it as one, or detach it"
    )]
    Captured { op: &'static str },
    #[error("{op}: axis {axis} of {arg} must have a size that is known when the program is built")]
    OpenSize { op: &'static str, arg: &'static str, axis: usize },
    #[error(
        "jit: the function reads a size that depends on values, which is known only when the \
         program runs; use where or a masked operation, or call the function without jit"
    )]
    LateSize,
    #[error("{error} (at {node})")]
    AtNode {
        node: String,
        #[source]
        error: Cause<Error>,
    },
    #[error("run: {arg} {name:?} {problem}")]
    Feed { arg: &'static str, name: String, problem: String },
    #[error("run: feed {name:?} has dtype {got}, expected {expected}")]
    FeedDType { name: String, got: DType, expected: DType },
    #[error("{op}: {problem}")]
    File { op: &'static str, problem: String },
    #[error("{op}: {}: {source}", path.display())]
    Io { op: &'static str, path: PathBuf, source: Cause<std::io::Error> },
}

fn at_text(position: &[usize]) -> String {
    if position.is_empty() { String::new() } else { format!("{position:?}") }
}

impl Error {
    /// Returns the error of a hook that failed for a reason of its own, which becomes the
    /// [`source`](std::error::Error::source).
    ///
    /// ```
    /// # use inlay_core::Error;
    /// let error = Error::hook("not a number".parse::<f32>().unwrap_err());
    /// assert_eq!(error.to_string(), "backward: a hook failed: invalid float literal");
    /// ```
    pub fn hook(cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Error::Hook { text: cause.to_string(), source: Some(cause.into()) }
    }

    /// Whether the error says that a program must know a size that is open.
    pub fn is_open_size(&self) -> bool {
        matches!(self.root(), Error::OpenSize { .. })
    }

    /// The Python exception that this error becomes.
    pub fn kind(&self) -> ErrorKind {
        use Error::*;
        match self {
            DTypeMismatch { .. }
            | DType { .. }
            | Undefined { .. }
            | Scalar { .. }
            | Unsupported { .. }
            | FeedDType { .. }
            | NotOnCpu { .. } => ErrorKind::Type,
            DeviceMismatch { .. } => ErrorKind::Value,
            NoDevice { .. } | DeviceLost { .. } | Device { .. } => ErrorKind::Runtime,
            Shape { .. }
            | Broadcast { .. }
            | BroadcastTogether { .. }
            | Rank { .. }
            | TooShort { .. }
            | Reshape { .. }
            | SourceTooShort { .. }
            | Argument { .. }
            | TooLarge { .. }
            | Function { .. }
            | ReadOnly { .. }
            | SelfOverlap { .. } => ErrorKind::Value,
            OpenSize { .. } | LateSize | Feed { .. } | File { .. } | OtherProgram { .. } => {
                ErrorKind::Value
            }
            AtNode { error, .. } => error.kind(),
            Index { .. } | Axis { .. } | TooManyIndices { .. } => ErrorKind::Index,
            OutOfMemory { .. } | DeviceLimit { .. } => ErrorKind::Memory,
            Io { .. } => ErrorKind::Os,
            Borrowed { .. }
            | OutOfBounds { .. }
            | InPlaceLeaf { .. }
            | InPlaceView { .. }
            | StaleView { .. }
            | Modified { .. }
            | GraphFreed { .. }
            | Hook { .. }
            | Symbolic { .. }
            | Captured { .. }
            | SymbolicView { .. } => ErrorKind::Runtime,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_operation_argument_expected_and_got() {
        let short = Error::SourceTooShort { op: "masked_scatter", arg: "source", have: 2, need: 3 };
        assert_eq!(short.to_string(), "masked_scatter: source has 2 elements, mask selects 3");
        let at = |position| Error::Index {
            op: "scatter",
            arg: "index",
            position,
            value: 7,
            axis: 0,
            size: 3,
        };
        let text = "is 7, out of range for axis 0 of size 3";
        assert_eq!(at(vec![1]).to_string(), format!("scatter: index[1] {text}"));
        assert_eq!(at(vec![]).to_string(), format!("scatter: index {text}"));
    }

    #[test]
    fn the_source_of_an_error_can_be_downcast() {
        use std::error::Error as _;
        use std::io;

        let rank = Error::Rank { op: "scatter", arg: "index", got: 2, expected: "1" };
        let located = Error::AtNode { node: "model.rs:3".into(), error: rank.clone().into() };
        let source = located.source().and_then(|source| source.downcast_ref::<Error>());
        assert_eq!(source, Some(&rank));
        assert_eq!((located.op(), located.argument()), (Some("scatter"), Some("index")));
        assert_eq!((located.root(), located.kind()), (&rank, ErrorKind::Value));

        let missing = io::Error::from(io::ErrorKind::NotFound);
        let io = Error::Io { op: "load", path: "a.inlay".into(), source: missing.into() };
        let source = io.source().and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::NotFound));
        assert_eq!(io.to_string(), "load: a.inlay: entity not found");
        assert_eq!(io, io.clone());

        let hook = Error::hook(io::Error::other("nan"));
        assert!(hook.source().is_some_and(|source| source.is::<io::Error>()));
        assert_eq!(hook.to_string(), "backward: a hook failed: nan");
    }
}
