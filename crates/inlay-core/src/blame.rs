//! What an error is about: the operation, the argument and the shapes.

use crate::{Dim, Error};

impl Error {
    /// Returns the error without the line of the program at which it occurred.
    pub fn root(&self) -> &Error {
        match self {
            Error::AtNode { error, .. } => error.root(),
            error => error,
        }
    }

    /// The operation that failed, if the error belongs to one.
    ///
    /// ```
    /// # use inlay_core::Error;
    /// let error = Error::Rank { op: "scatter", arg: "index", got: 2, expected: "1" };
    /// assert_eq!((error.op(), error.argument()), (Some("scatter"), Some("index")));
    /// ```
    pub fn op(&self) -> Option<&'static str> {
        use Error::*;
        match self.root() {
            DTypeMismatch { op, .. }
            | DType { op, .. }
            | Undefined { op, .. }
            | Scalar { op, .. }
            | Shape { op, .. }
            | Broadcast { op, .. }
            | BroadcastTogether { op, .. }
            | Rank { op, .. }
            | TooShort { op, .. }
            | Reshape { op, .. }
            | SourceTooShort { op, .. }
            | Argument { op, .. }
            | TooLarge { op, .. }
            | Index { op, .. }
            | Axis { op, .. }
            | TooManyIndices { op, .. }
            | ReadOnly { op, .. }
            | SelfOverlap { op, .. }
            | Borrowed { op, .. }
            | DeviceMismatch { op, .. }
            | NotOnCpu { op, .. }
            | Unsupported { op, .. }
            | InPlaceLeaf { op, .. }
            | InPlaceView { op, .. }
            | StaleView { op, .. }
            | Modified { op, .. }
            | GraphFreed { op, .. }
            | Symbolic { op, .. }
            | SymbolicView { op, .. }
            | OtherProgram { op, .. }
            | Captured { op, .. }
            | OpenSize { op, .. }
            | Function { op, .. }
            | File { op, .. }
            | Io { op, .. } => Some(op),
            Feed { .. } | FeedDType { .. } => Some("run"),
            Hook { .. } => Some("backward"),
            LateSize => Some("jit"),
            OutOfMemory { .. }
            | DeviceLimit { .. }
            | OutOfBounds { .. }
            | NoDevice { .. }
            | DeviceLost { .. }
            | Device { .. }
            | AtNode { .. } => None,
        }
    }

    /// The argument that is wrong, if one is. For a feed, this is its name.
    pub fn argument(&self) -> Option<&str> {
        use Error::*;
        match self.root() {
            DTypeMismatch { arg, .. }
            | DType { arg, .. }
            | Scalar { arg, .. }
            | Shape { arg, .. }
            | Broadcast { arg, .. }
            | Rank { arg, .. }
            | TooShort { arg, .. }
            | SourceTooShort { arg, .. }
            | Argument { arg, .. }
            | Index { arg, .. }
            | Axis { arg, .. }
            | ReadOnly { arg, .. }
            | SelfOverlap { arg, .. }
            | Borrowed { arg, .. }
            | InPlaceLeaf { arg, .. }
            | InPlaceView { arg, .. }
            | SymbolicView { arg, .. }
            | OpenSize { arg, .. } => Some(arg),
            DeviceMismatch { arg, .. } => Some(arg),
            Feed { name, .. } | FeedDType { name, .. } => Some(name),
            _ => None,
        }
    }

    /// The shape that is wrong and the shape that was expected, if the error is about shapes.
    ///
    /// ```
    /// # use inlay_core::{Dim, Error, ShapeText};
    /// let (got, expected) = (ShapeText::of(&[2usize]), ShapeText::of(&[3usize]));
    /// let error = Error::Shape { op: "scatter", arg: "updates", got, expected };
    /// let (got, expected) = error.shapes().expect("it is about shapes");
    /// assert_eq!((got, expected), (&[Dim::Known(2)][..], &[Dim::Known(3)][..]));
    /// ```
    pub fn shapes(&self) -> Option<(&[Dim], &[Dim])> {
        match self.root() {
            Error::Shape { got: a, expected: b, .. }
            | Error::Broadcast { got: a, to: b, .. }
            | Error::BroadcastTogether { a, b, .. } => Some((a.dims(), b.dims())),
            _ => None,
        }
    }
}
