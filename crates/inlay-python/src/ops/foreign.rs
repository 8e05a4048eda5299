//! Calls with tensors of PyTorch, Paddle or JAX.

use inlay::{Argument, ArgumentKind, DType, Device, Tensor};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};
use smallvec::SmallVec;

use super::arguments::{self, MOST, Objects, Values};
use super::entry::Entry;
use super::{Given, Object};
use crate::bridges::{Foreign, Native};
use crate::convert::{Call, KEEP_GIL};
use crate::dlpack::{Purpose, Subject};
use crate::error::{Class, raise, type_name};
use crate::numpy::{is_array, is_native};
use crate::tensor::PyTensor;

/// The library of an object, if it can be one of the three.
#[inline]
fn of(object: Object<'_, '_>) -> PyResult<Option<Foreign>> {
    // The most common arguments are looked at first.
    if is_simple(object) { Ok(None) } else { Foreign::of(object) }
}

/// How a call on tensors of a library goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// As a call on arrays.
    Short,
    /// As a call on arrays, which the library records for a gradient. Bit `k` stands for argument
    /// `k`, whose gradient is needed.
    Recorded(u32),
    /// Through the bridge, which handles everything.
    Long,
}

/// The library of the tensors of a call.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) library: Foreign,
    /// The first argument that belongs to it.
    first: usize,
    /// Bit `k` stands for argument `k`: it is a tensor of the library.
    places: u32,
}

impl Found {
    /// Whether argument `k` is a tensor of the library.
    pub(super) fn has(self, k: usize) -> bool {
        self.places >> k & 1 == 1
    }

    /// Returns a number or an array among the arguments as a tensor of the library. A number takes
    /// the dtype of the first tensor that is not an index or a mask.
    pub(super) fn adopt<'py>(
        self,
        entry: &Entry,
        argument: &'static Argument,
        object: Object<'_, 'py>,
        objects: &Objects<'_, 'py>,
    ) -> Given<'py> {
        let (py, op) = (object.py(), entry.operation.name);
        let typed = |argument: &Argument| {
            !matches!(argument.kind, ArgumentKind::Index | ArgumentKind::Mask)
        };
        let mut places = entry.operation.arguments.iter().enumerate();
        let first = places.find(|(k, argument)| self.has(*k) && typed(argument));
        let mut call = Call::new(py, op);
        let like = match first.and_then(|(k, _)| objects[k].as_deref()) {
            Some(first) => {
                let subject = Subject { op, arg: argument.name };
                Some(self.library.read(subject, first, call.watch())?.dtype())
            }
            None => None,
        };
        let tensor = arguments::tensor_to_save(&mut call, argument, object, like)?;
        self.library.give(py, op, tensor)
    }
}

/// Returns the library to whose bridge a call goes: that of its tensors. Fails if they belong to
/// two libraries. A call that writes into a tensor or array of another kind only reads them.
#[inline]
pub(super) fn library(entry: &Entry, objects: &Objects<'_, '_>) -> PyResult<Option<Found>> {
    let mut found = None;
    for (k, (object, argument)) in objects.iter().zip(entry.operation.arguments).enumerate() {
        let Some(object) = object.as_deref().filter(|_| argument.kind.has_tensors()) else {
            continue;
        };
        if argument.kind.is_tensor() || !Call::is_list(object) {
            let library = of(object)?;
            if k == 0 && entry.in_place && library.is_none() {
                return Ok(None);
            }
            join(entry, objects, &mut found, library, k)?;
        } else {
            for item in Call::items(object) {
                join(entry, objects, &mut found, of(&item)?, k)?;
            }
        }
    }
    Ok(found)
}

/// Notes the library of argument `k`.
#[inline]
fn join(
    entry: &Entry,
    objects: &Objects<'_, '_>,
    found: &mut Option<Found>,
    library: Option<Foreign>,
    k: usize,
) -> PyResult<()> {
    let Some(library) = library else { return Ok(()) };
    let known = found.get_or_insert(Found { library, first: k, places: 0 });
    if known.library != library {
        return Err(mixed(entry, objects, (known.first, known.library), (k, library)));
    }
    known.places |= 1 << k;
    Ok(())
}

#[cold]
fn mixed(
    entry: &Entry,
    objects: &Objects<'_, '_>,
    (a, first): (usize, Foreign),
    (b, second): (usize, Foreign),
) -> PyErr {
    let arguments = entry.operation.arguments;
    let (Some(Some(one)), Some(Some(two))) = (objects.get(a), objects.get(b)) else {
        unreachable!("both arguments were given")
    };
    let text = format!(
        "{}: {} is a {} and {} a {}, expected tensors of one library: convert one of them, for \
         example with {}",
        entry.operation.name,
        arguments[a].name,
        described(one, first),
        arguments[b].name,
        described(two, second),
        first.conversion(arguments[b].name),
    );
    Class::Type.error(one.py(), text)
}

fn described(object: Object<'_, '_>, library: Foreign) -> String {
    match Call::is_list(object) {
        true => format!("list of tensors of {}", library.name()),
        false => type_name(object),
    }
}

/// The short way for a call on tensors of a library, if it may take that. Lists of tensors take the
/// long way.
#[inline]
pub(super) fn native(
    py: Python<'_>,
    found: Found,
    entry: &Entry,
    objects: &Objects<'_, '_>,
) -> Option<&'static Native> {
    let is_list = |argument: &Argument| {
        matches!(argument.kind, ArgumentKind::Tensors | ArgumentKind::Indices)
    };
    // A tensor of Inlay that requires a gradient would lose it. The long way says so.
    let is_tracked = |object: Borrowed<'_, '_, PyAny>| {
        object.is_exact_instance_of::<PyTensor>()
            && object.cast::<PyTensor>().is_ok_and(|own| !own.get().inner().stop_gradient())
    };
    if entry.operation.arguments.iter().any(is_list)
        || objects.iter().flatten().any(|object| is_tracked(*object))
    {
        return None;
    }
    let target = objects.first().and_then(|target| target.as_deref()).filter(|_| entry.in_place);
    Native::suits(py, found.library, target)
}

/// Converts the tensors of a library among the arguments `left`, and removes them from that list.
/// Returns how the call goes on.
#[expect(unsafe_code, reason = "borrows memory that only the GIL protects")]
pub(super) fn tensors<'a, 'py>(
    call: &Call<'py>,
    (native, found): (&Native, Found),
    entry: &Entry,
    objects: &'a Objects<'_, 'py>,
    left: &mut SmallVec<[usize; MOST]>,
    values: &mut Values<'a>,
) -> Way {
    let arguments = entry.operation.arguments;
    let is_foreign = |k: &usize| found.has(*k);
    // Whether the conversion of the other arguments may run Python code.
    let simple = |k: &usize| {
        let runs_none = |object| is_simple(object) && (!is_array(object) || is_native(object));
        objects[*k].as_deref().is_none_or(runs_none)
    };
    let all_simple = left.iter().all(|k| is_foreign(k) || simple(k));
    // Whether the GIL will be released for another argument.
    let releases = |(k, object): (usize, &Option<Borrowed<'_, 'py, PyAny>>)| {
        let Some(object) = object.as_deref().filter(|_| !found.has(k)) else { return false };
        if is_array(object) {
            return object.cast_exact::<PyUntypedArray>().is_ok_and(|array| array.len() > KEEP_GIL);
        }
        object.is_exact_instance_of::<PyTensor>()
            && object
                .cast_exact::<PyTensor>()
                .is_ok_and(|own| own.get().inner().device() != Device::Cpu)
    };
    let mut wanted = 0;
    let mut owning =
        !all_simple || !native.borrows(call.py()) || objects.iter().enumerate().any(releases);
    // Questions to a tensor may release the GIL, so all of them come before the first is borrowed.
    for k in left.iter().filter(|k| is_foreign(k)) {
        let index = matches!(arguments[*k].kind, ArgumentKind::Index | ArgumentKind::Mask);
        match objects[*k].as_deref() {
            Some(object) if native.takes(object) && (index || !native.is_negated(object)) => {}
            _ => return Way::Long,
        }
    }
    // An in-place call and one that other objects take part in are recorded by the bridge.
    let may_record = all_simple && !entry.in_place;
    let mut asked = false;
    loop {
        let mut is_complex = false;
        for k in left.iter().filter(|k| is_foreign(k)) {
            let Some(object) = objects[*k].as_deref() else { return Way::Long };
            let purpose = if entry.in_place && *k == 0 { Purpose::Write } else { Purpose::Read };
            // SAFETY: a tensor that is not owning is used only until the call has run. Until then
            // the GIL is held, since all arguments are small, and no Python code runs: the classes
            // of the objects are those of the library, and the other arguments are simple.
            let tensor = unsafe { native.tensor(object, purpose, owning, call.watch()) };
            let Some(tensor) = tensor else { return Way::Long };
            let differentiates = entry.operation.gradients.contains(&arguments[*k].name);
            if differentiates && native.records(object, tensor.dtype()) {
                wanted |= 1 << k;
            }
            is_complex |= matches!(tensor.dtype(), DType::C64 | DType::C128);
            values.set_owned(*k, tensor);
        }
        if is_complex && !asked {
            asked = true;
            left.iter().filter(|k| is_foreign(k)).for_each(|&k| values.clear(k));
            call.watch().clear();
            let mut all = left.iter().filter(|k| is_foreign(k)).filter_map(|k| objects[*k]);
            if all.any(|object| native.is_conjugated(&object)) {
                return Way::Long;
            }
            continue;
        }
        if wanted != 0 && !(may_record && native.may_record(call.py())) {
            return Way::Long;
        }
        if owning || values.size() <= KEEP_GIL {
            left.retain(|k| !is_foreign(k));
            return if wanted == 0 { Way::Short } else { Way::Recorded(wanted) };
        }
        // The GIL will be released, so the memory must be kept alive by more than its object.
        left.iter().filter(|k| is_foreign(k)).for_each(|&k| values.clear(k));
        owning = true;
    }
}

/// Whether an argument is of one of the most common classes. Its conversion runs no Python code, unless
/// it is an array that is not native.
pub(super) fn is_simple(object: Object<'_, '_>) -> bool {
    object.is_exact_instance_of::<PyTensor>()
        || is_array(object)
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
}

/// Returns the result of a call on the short way. A view of an argument would be unknown to the
/// library, so it becomes a copy.
pub(super) fn give<'py>(
    py: Python<'py>,
    native: &Native,
    entry: &Entry,
    result: Tensor,
) -> Given<'py> {
    let op = entry.operation.name;
    let result = match result.is_foreign() {
        true => result.copy().map_err(|error| raise(py, &error))?,
        false => result,
    };
    native.give(py, op, result)
}

/// Calls the operation through the bridge of a library. `advised` says whether the conversion of
/// arguments has begun before, and warned.
pub(super) fn call<'py>(
    found: Found,
    entry: &Entry,
    objects: &Objects<'_, 'py>,
    advised: bool,
) -> Given<'py> {
    let Some(py) = objects.iter().flatten().map(|object| object.py()).next() else {
        unreachable!("one of the arguments is a tensor")
    };
    if !advised {
        entry.advise(py, objects)?;
    }
    let given = |k: usize| match objects.get(k).and_then(|object| object.as_deref()) {
        Some(object) => object.clone(),
        None => py.None().into_bound(py),
    };
    let all = PyTuple::new(py, (0..entry.operation.arguments.len()).map(given))?;
    found.library.call(entry.operation.name, entry.in_place, all)
}
