//! An operation: a small value that defines what it accepts, what it does, and its gradient.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use inlay_core::{Dim, Dims, Meta, Result};

use crate::array::Array;
use crate::declare::Operation;
use crate::tape::{Grads, Rule, Saves};

/// The number of inputs of an operation, and how it receives them.
pub(crate) trait Arity: 'static {
    /// The inputs as the operation receives them.
    type Of<'a, T: 'a>: Copy;
    /// The number of inputs, or `None` for any number.
    const COUNT: Option<usize>;
    /// One `U` for each input.
    type Each<U>: AsRef<[U]> + AsMut<[U]> + IntoIterator<Item = U>;

    /// Returns the inputs in `all`, or `None` if their number is wrong.
    fn of<T>(all: &[T]) -> Option<Self::Of<'_, T>>;

    /// Returns the inputs as a slice.
    fn all<'a, T>(inputs: Self::Of<'a, T>) -> &'a [T];

    /// Makes a `U` of each input. `inputs` has the right number of them.
    fn each<T, U>(inputs: &[T], make: impl FnMut(&T) -> U) -> Self::Each<U>;
}

/// Exactly `N` inputs, which arrive as an array.
pub(crate) struct Inputs<const N: usize>;

impl<const N: usize> Arity for Inputs<N> {
    type Of<'a, T: 'a> = &'a [T; N];
    type Each<U> = [U; N];
    const COUNT: Option<usize> = Some(N);

    #[inline]
    fn of<T>(all: &[T]) -> Option<&[T; N]> {
        all.try_into().ok()
    }

    #[inline]
    fn all<'a, T>(inputs: Self::Of<'a, T>) -> &'a [T] {
        inputs
    }

    #[inline]
    fn each<T, U>(inputs: &[T], mut make: impl FnMut(&T) -> U) -> [U; N] {
        std::array::from_fn(|k| make(&inputs[k]))
    }
}

/// Any number of inputs, which arrive as a slice.
pub(crate) struct AnyInputs;

impl Arity for AnyInputs {
    type Of<'a, T: 'a> = &'a [T];
    type Each<U> = Vec<U>;
    const COUNT: Option<usize> = None;

    fn of<T>(all: &[T]) -> Option<&[T]> {
        Some(all)
    }

    fn all<'a, T>(inputs: Self::Of<'a, T>) -> &'a [T] {
        inputs
    }

    fn each<T, U>(inputs: &[T], make: impl FnMut(&T) -> U) -> Vec<U> {
        inputs.iter().map(make).collect()
    }
}

/// The inputs of `O`, each a `T`.
pub(crate) type Of<'a, O, T> = <<O as Op>::Inputs as Arity>::Of<'a, T>;

/// The result of inference for a call.
#[derive(Clone, Debug)]
pub(crate) struct Inferred<F> {
    /// The dtype and shape of the result.
    pub(crate) meta: Meta,
    /// What else `run` and `grad` need, for example the axis counted from the front.
    pub(crate) found: F,
}

impl<F> Inferred<F> {
    #[inline]
    pub(crate) fn new(meta: Meta, found: F) -> Result<Self> {
        Ok(Inferred { meta, found })
    }
}

impl Inferred<()> {
    /// An inferred result without further findings.
    #[inline]
    pub(crate) fn only(meta: Meta) -> Result<Self> {
        Ok(Inferred { meta, found: () })
    }
}

/// An operation.
///
/// The rules about shapes and dtypes are in `infer` only. They also accept sizes that are not known
/// yet. `run` and `grad` receive what `infer` found.
pub(crate) trait Op: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {
    /// The number of inputs.
    type Inputs: Arity;
    /// What inference finds besides the dtype and the shape of the result.
    type Found: fmt::Debug + Send + Sync + 'static;

    /// Whether the result can be written into the first input.
    const WRITES: bool = false;
    /// Whether the result can be a view of the first input.
    const IS_VIEW: bool = false;
    /// Whether there is a gradient. Comparisons and operations on indices have none.
    const HAS_GRADIENT: bool = true;

    /// The operation that the user called. It names the call and its arguments in errors.
    fn operation(&self) -> &'static Operation;

    /// The name of the operation that the user called.
    fn name(&self) -> &'static str {
        self.operation().name
    }

    /// Returns the dtype and shape of the result, or an error if the inputs are invalid.
    fn infer(&self, inputs: Of<'_, Self, Meta>) -> Result<Inferred<Self::Found>>;

    /// Computes the result. With [`Out::InPlace`] it is written into the first input. Everything
    /// that can fail must fail before the first write.
    fn run(
        &self,
        inputs: Of<'_, Self, &Array>,
        inferred: &Inferred<Self::Found>,
        out: Out,
    ) -> Result<Array>;

    /// The sizes among the attributes. In a program they may be symbols. They are known when the
    /// operation runs.
    fn sizes(&self) -> Dims {
        Dims::new()
    }

    /// Returns the same operation with other sizes. Returns `None` if the operation has no sizes,
    /// or another number of them.
    fn with_sizes(&self, _sizes: &[Dim]) -> Option<Self> {
        None
    }

    /// The values that the gradient rule reads.
    fn saves(&self) -> Saves {
        Saves::NOTHING
    }

    /// Returns the gradients of the inputs. They are composed of operations, so they have gradients
    /// themselves.
    fn grad(&self, rule: &Rule<'_>, _found: &Self::Found) -> Result<Grads> {
        rule.each(|_| Ok(None))
    }
}

/// The destination of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Out {
    /// Fresh memory. An operation that makes a view ignores this.
    Fresh,
    /// The first input. It is writable and overlaps neither itself nor another input.
    InPlace,
}

impl Out {
    /// Returns the array to write, and the array with the unchanged values of `x` if they are not
    /// already there.
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
    /// The name of the operation that the user called.
    fn name(&self) -> &'static str;
    /// The dtype and shape of the result.
    fn meta(&self) -> &Meta;
    /// See [`Op::run`].
    fn run(&self, inputs: &[&Array], out: Out) -> Result<Array>;
    /// See [`Op::grad`].
    fn grad(&self, rule: &Rule<'_>) -> Result<Grads>;
}

/// An operation with the result of inference for its inputs.
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

/// Returns the inputs as the operation receives them. Their number was checked when the call was
/// made or when the program was read.
#[inline]
pub(crate) fn inputs_of<O: Op, T>(all: &[T]) -> Of<'_, O, T> {
    O::Inputs::of(all).unwrap_or_else(|| unreachable!("the number of inputs was checked"))
}

/// An operation of any type. Programs hold these, and plans compare them.
#[derive(Clone)]
pub(crate) struct AnyOp(Arc<dyn ErasedOp>);

/// [`Op`] with its types erased.
pub(crate) trait ErasedOp: fmt::Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn name(&self) -> &'static str;
    fn arity(&self) -> Option<usize>;
    fn writes(&self) -> bool;
    fn is_view(&self) -> bool;
    fn sizes(&self) -> Dims;
    fn with_sizes(&self, sizes: &[Dim]) -> Option<AnyOp>;
    /// Runs inference and keeps its result. The number of `inputs` must match `arity`.
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

    /// Returns the operation if it is an `O`.
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
