//! What an operation is: a small value that says what it accepts, what it does, and how it
//! differentiates.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use inlay_core::{Dim, Dims, Meta, Result};

use crate::array::Array;
use crate::declare::Operation;
use crate::tape::{Grads, Rule, Saves};

/// How many inputs an operation takes, and how it receives them.
pub(crate) trait Arity: 'static {
    /// The inputs as the operation receives them.
    type Of<'a, T: 'a>: Copy;
    /// Their number; `None` for any number.
    const COUNT: Option<usize>;

    /// The inputs out of a slice that has the right number of them.
    fn of<T>(all: &[T]) -> Option<Self::Of<'_, T>>;

    /// The inputs as a slice.
    fn all<'a, T>(inputs: Self::Of<'a, T>) -> &'a [T];
}

/// Exactly `N` inputs, which arrive as an array.
pub(crate) struct Inputs<const N: usize>;

impl<const N: usize> Arity for Inputs<N> {
    type Of<'a, T: 'a> = &'a [T; N];
    const COUNT: Option<usize> = Some(N);

    #[inline]
    fn of<T>(all: &[T]) -> Option<&[T; N]> {
        all.try_into().ok()
    }

    #[inline]
    fn all<'a, T>(inputs: Self::Of<'a, T>) -> &'a [T] {
        inputs
    }
}

/// Any number of inputs, which arrive as a slice.
pub(crate) struct AnyInputs;

impl Arity for AnyInputs {
    type Of<'a, T: 'a> = &'a [T];
    const COUNT: Option<usize> = None;

    fn of<T>(all: &[T]) -> Option<&[T]> {
        Some(all)
    }

    fn all<'a, T>(inputs: Self::Of<'a, T>) -> &'a [T] {
        inputs
    }
}

/// The inputs of `O`, each a `T`.
pub(crate) type Of<'a, O, T> = <<O as Op>::Inputs as Arity>::Of<'a, T>;

/// What inference has found out about a call.
#[derive(Clone, Debug)]
pub(crate) struct Inferred<F> {
    /// Dtype and shape of the result.
    pub(crate) meta: Meta,
    /// What else `run` and `grad` need: the axis counted from the front, for example.
    pub(crate) found: F,
}

impl<F> Inferred<F> {
    #[inline]
    pub(crate) fn new(meta: Meta, found: F) -> Result<Self> {
        Ok(Inferred { meta, found })
    }
}

impl Inferred<()> {
    /// A result about which there is nothing else to know.
    #[inline]
    pub(crate) fn only(meta: Meta) -> Result<Self> {
        Ok(Inferred { meta, found: () })
    }
}

/// An operation.
///
/// The rules about shapes and dtypes live in `infer` alone. They also work on sizes that are not
/// known yet. `run` and `grad` receive what `infer` has found out.
pub(crate) trait Op: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {
    /// How many inputs there are.
    type Inputs: Arity;
    /// What inference finds out beside the dtype and the shape of the result.
    type Found: fmt::Debug + Send + Sync + 'static;

    /// Whether the result can be written into the first input.
    const WRITES: bool = false;
    /// Whether the result can be a view of the first input.
    const IS_VIEW: bool = false;
    /// Whether there is a gradient; comparisons and indices have none.
    const HAS_GRADIENT: bool = true;

    /// The operation that the user called. It names the call and its arguments in errors.
    fn operation(&self) -> &'static Operation;

    /// The name of what the user called.
    fn name(&self) -> &'static str {
        self.operation().name
    }

    /// Dtype and shape of the result, or why there is none.
    fn infer(&self, inputs: Of<'_, Self, Meta>) -> Result<Inferred<Self::Found>>;

    /// The result. With [`Out::InPlace`] it is written into the first input. Whatever can fail fails
    /// before the first write.
    fn run(
        &self,
        inputs: Of<'_, Self, &Array>,
        inferred: &Inferred<Self::Found>,
        out: Out,
    ) -> Result<Array>;

    /// The sizes among the attributes. In a program they may be symbols. When the operation runs they
    /// are known.
    fn sizes(&self) -> Dims {
        Dims::new()
    }

    /// The same operation with other sizes; `None` for an operation without sizes, or for another
    /// number of them.
    fn with_sizes(&self, _sizes: &[Dim]) -> Option<Self> {
        None
    }

    /// Which values the gradient rule reads.
    fn saves(&self) -> Saves {
        Saves::NOTHING
    }

    /// The gradients of the inputs. They are made of operations, so they have gradients themselves.
    fn grad(&self, rule: &Rule<'_>, _found: &Self::Found) -> Result<Grads> {
        rule.each(|_| Ok(None))
    }
}

/// Where a result goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Out {
    /// Into fresh memory; a view goes nowhere.
    Fresh,
    /// Into the first input, which is writable and overlaps neither itself nor another input.
    InPlace,
}

impl Out {
    /// Where to write a changed `x`, and where to read the unchanged one if that is somewhere else.
    pub(crate) fn of<'x>(
        self,
        op: &'static str,
        x: &'x Array,
    ) -> Result<(Array, Option<&'x Array>)> {
        match self {
            Out::Fresh => Ok((x.new_like(op)?, Some(x))),
            Out::InPlace => Ok((x.clone(), None)),
        }
    }
}

/// An operation whose inputs have passed inference. The tape keeps it, and bound plans run it.
pub(crate) trait Checked: fmt::Debug + Send + Sync {
    /// The name of what the user called.
    fn name(&self) -> &'static str;
    /// Dtype and shape of the result.
    fn meta(&self) -> &Meta;
    /// As [`Op::run`].
    fn run(&self, inputs: &[&Array], out: Out) -> Result<Array>;
    /// As [`Op::grad`].
    fn grad(&self, rule: &Rule<'_>) -> Result<Grads>;
}

/// An operation and what inference has found out about its inputs.
#[derive(Debug)]
pub(crate) struct WithFound<O: Op> {
    pub(crate) op: O,
    pub(crate) inferred: Inferred<O::Found>,
}

impl<O: Op> Checked for WithFound<O> {
    fn name(&self) -> &'static str {
        self.op.name()
    }

    fn meta(&self) -> &Meta {
        &self.inferred.meta
    }

    fn run(&self, inputs: &[&Array], out: Out) -> Result<Array> {
        self.op.run(inputs_of::<O, _>(inputs), &self.inferred, out)
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        self.op.grad(rule, &self.inferred.found)
    }
}

/// The inputs as the operation receives them. Their number was checked when the call was made or
/// when the program was read.
#[inline]
pub(crate) fn inputs_of<O: Op, T>(all: &[T]) -> Of<'_, O, T> {
    O::Inputs::of(all).unwrap_or_else(|| unreachable!("the number of inputs was checked"))
}

/// An operation of any type: what programs hold and plans compare.
#[derive(Clone)]
pub(crate) struct AnyOp(Arc<dyn ErasedOp>);

/// [`Op`] without its types.
pub(crate) trait ErasedOp: fmt::Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn name(&self) -> &'static str;
    fn arity(&self) -> Option<usize>;
    fn writes(&self) -> bool;
    fn is_view(&self) -> bool;
    fn sizes(&self) -> Dims;
    fn with_sizes(&self, sizes: &[Dim]) -> Option<AnyOp>;
    /// Infers, and keeps what was found out. `inputs` are as many as `arity` says.
    fn check(&self, inputs: &[Meta]) -> Result<Box<dyn Checked>>;
    fn equals(&self, other: &dyn ErasedOp) -> bool;
    fn hash_to(&self, state: &mut dyn Hasher);
}

impl<O: Op> ErasedOp for O {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &'static str {
        Op::name(self)
    }

    fn arity(&self) -> Option<usize> {
        O::Inputs::COUNT
    }

    fn writes(&self) -> bool {
        O::WRITES
    }

    fn is_view(&self) -> bool {
        O::IS_VIEW
    }

    fn sizes(&self) -> Dims {
        Op::sizes(self)
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<AnyOp> {
        Op::with_sizes(self, sizes).map(AnyOp::new)
    }

    fn check(&self, inputs: &[Meta]) -> Result<Box<dyn Checked>> {
        let inferred = self.infer(inputs_of::<O, _>(inputs))?;
        Ok(Box::new(WithFound { op: self.clone(), inferred }))
    }

    fn equals(&self, other: &dyn ErasedOp) -> bool {
        other.as_any().downcast_ref::<O>() == Some(self)
    }

    fn hash_to(&self, mut state: &mut dyn Hasher) {
        self.type_id().hash(&mut state);
        self.hash(&mut state);
    }
}

impl AnyOp {
    pub(crate) fn new<O: Op>(op: O) -> Self {
        AnyOp(Arc::new(op))
    }

    /// The operation, if it is an `O`.
    pub(crate) fn downcast<O: Op>(&self) -> Option<&O> {
        self.0.as_any().downcast_ref()
    }
}

impl Deref for AnyOp {
    type Target = dyn ErasedOp;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for AnyOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for AnyOp {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&**other)
    }
}

impl Eq for AnyOp {}

impl Hash for AnyOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_to(state);
    }
}
