//! The C functions through which Python calls the operations. All of them lead to [`super::call`].
//!
//! They are registered at run time from the table of operations, with the signatures and docstrings
//! of the declarations.
#![expect(
    unsafe_code,
    reason = "PyO3's macros need signatures at compile time, so the C API is used"
)]

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::OnceLock;

use inlay::{Operation, operations};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning};
use pyo3::ffi;
use pyo3::impl_::trampoline::{MethodDef, fastcall_cfunction_with_keywords as trampoline};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use pyo3::{Borrowed, intern};

use super::arguments::{MOST, Objects};
use crate::tensor::PyTensor;

/// An operation or its in-place form, as called by one C function.
pub(super) struct Entry {
    pub(super) operation: &'static Operation,
    pub(super) in_place: bool,
    /// The interned names of the arguments. Most keywords are these same objects, so pointers are
    /// compared first.
    names: Vec<Py<PyString>>,
    /// The number of arguments that may be passed by position.
    positional: usize,
    /// The number of arguments without a default. They come first.
    required: usize,
    /// See [`Operation::gathers`].
    gathers: Option<usize>,
    /// Places of the two arguments of which the first means nothing without the second, and a
    /// warning that says so.
    advice: Option<(usize, usize, CString)>,
}

static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();

/// The number of C functions, and so the largest number of entries.
const ROOM: usize = 256;

/// The type of function that PyO3's trampoline calls. The trampoline is the C function; it provides
/// the `Python` token and catches panics, as for PyO3's own functions. `Python::attach` would work,
/// too, but it takes 50 ns, a tenth of a call on a tiny tensor.
type Called = trampoline::Func;

/// Calls entry `K` as a function of the module.
struct Function<const K: usize>;

impl<const K: usize> MethodDef<Called> for Function<K> {
    const METH: Called = |py, _module, args, count, keywords| {
        // SAFETY: `definition` sets the flags FASTCALL and KEYWORDS, for which the interpreter
        // passes arguments as `enter` requires.
        unsafe { enter(py, K, ptr::null_mut(), args, count, keywords) }
    };
}

/// Calls entry `K` as a method of `Tensor`. The tensor is the first argument.
struct Method<const K: usize>;

impl<const K: usize> MethodDef<Called> for Method<K> {
    const METH: Called = |py, tensor, args, count, keywords| {
        // SAFETY: as for `Function`. The method descriptor has checked that `tensor` is a `Tensor`.
        unsafe { enter(py, K, tensor, args, count, keywords) }
    };
}

/// The C functions of one entry: the function and the method.
type Functions = [ffi::PyCFunctionFastWithKeywords; 2];

/// The C functions of the sixteen entries `$high * 16 + $low`.
macro_rules! sixteen {
    ($high:literal: $($low:literal)*) => {
        [$([
            trampoline::<Function<{ $high * 16 + $low }>>,
            trampoline::<Method<{ $high * 16 + $low }>>,
        ]),*]
    };
}

macro_rules! functions {
    ($($high:literal)*) => {
        [$(sixteen!($high: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)),*]
    };
}

static FUNCTIONS: [[Functions; 16]; ROOM / 16] = functions!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

/// Sorts the arguments of a C call by the signature of an entry, and calls its operation.
///
/// # Safety
/// `first` is null or points to an object. `keywords` is null or points to a tuple of strings.
/// `args` points to `count` objects, followed by one object for each keyword. All objects live
/// until this function returns.
unsafe fn enter<'py>(
    py: Python<'py>,
    entry: usize,
    first: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> PyResult<*mut ffi::PyObject> {
    let entry = &ENTRIES.get().ok_or_else(not_ready)?[entry];
    let count = count.max(0) as usize;
    let own = usize::from(!first.is_null());
    // The pointers and the tuple live until the call has returned.
    let gathered;
    let (args, count) = match entry.gathers {
        Some(place) if own + count > place + 1 => {
            // SAFETY: the caller guarantees the pointers.
            gathered = unsafe { gather(py, place - own, args, count, keywords)? };
            (gathered.args.as_ptr(), gathered.count)
        }
        _ => (args, count),
    };
    let mut objects: [Option<Borrowed<'_, 'py, PyAny>>; MOST] = [None; MOST];
    // SAFETY: the caller guarantees the pointers. `sort_out` calls `given` only with numbers below
    // `count` plus the number of keywords.
    let used = unsafe {
        let keywords = match keywords.is_null() {
            true => None,
            false => Some(Borrowed::from_ptr(py, keywords).cast_unchecked::<PyTuple>()),
        };
        let given = |k: usize| Borrowed::from_ptr(py, *args.add(k));
        if own == 1 {
            objects[0] = Some(Borrowed::from_ptr(py, first));
        }
        entry.sort_out(py, own, count, given, keywords, &mut objects)?
    };
    super::call(py, entry, &objects[..used]).map(Bound::into_ptr)
}

/// The arguments of a call in which a tuple replaces integers that were passed one by one.
struct Gathered<'py> {
    /// The positional arguments, then those of the keywords.
    args: Vec<*mut ffi::PyObject>,
    /// The number of positional arguments.
    count: usize,
    _tuple: Bound<'py, PyTuple>,
}

/// Gathers the integers from positional argument `from` on, unless there is only one object or the
/// second is not an integer.
///
/// # Safety
/// As for [`enter`].
#[cold]
unsafe fn gather<'py>(
    py: Python<'py>,
    from: usize,
    args: *const *mut ffi::PyObject,
    count: usize,
    keywords: *mut ffi::PyObject,
) -> PyResult<Gathered<'py>> {
    // SAFETY: the caller guarantees the pointers.
    let (all, is_integer) = unsafe {
        let named = if keywords.is_null() { 0 } else { ffi::PyTuple_Size(keywords).max(0) };
        let all = std::slice::from_raw_parts(args, count + named as usize);
        (all, |object: &&*mut ffi::PyObject| ffi::PyIndex_Check(**object) != 0)
    };
    let integers = all[from..count].iter().take_while(is_integer).count();
    if integers < 2 {
        return Ok(Gathered { args: all.to_vec(), count, _tuple: PyTuple::empty(py) });
    }
    let until = from + integers;
    // SAFETY: as above.
    let items = all[from..until].iter().map(|&item| unsafe { Borrowed::from_ptr(py, item) });
    let tuple = PyTuple::new(py, items.map(|item: Borrowed<'_, '_, PyAny>| item.to_owned()))?;
    let args = [&all[..from], &[tuple.as_ptr()], &all[until..]].concat();
    Ok(Gathered { args, count: count + 1 - integers, _tuple: tuple })
}

fn not_ready() -> PyErr {
    PyRuntimeError::new_err("inlay is not initialized")
}

impl Entry {
    /// Returns the entry of an operation, or of its in-place form.
    pub(super) fn find(name: &str, in_place: bool) -> Option<&'static Entry> {
        let same = |entry: &&Entry| entry.in_place == in_place && entry.operation.name == name;
        ENTRIES.get()?.iter().find(same)
    }

    /// The name of the Python function.
    fn name(&self) -> &'static str {
        let twin = self.operation.twin.filter(|_| self.in_place);
        twin.unwrap_or(self.operation.name)
    }

    /// Stores each passed object in `objects`, at the number of its argument. The first `own`
    /// objects are there already. `None` counts as left out for an argument that takes it. Returns the
    /// number of arguments up to the last one that was passed.
    fn sort_out<'a, 'py>(
        &self,
        py: Python<'py>,
        own: usize,
        count: usize,
        given: impl Fn(usize) -> Borrowed<'a, 'py, PyAny>,
        keywords: Option<Borrowed<'a, 'py, PyTuple>>,
        objects: &mut [Option<Borrowed<'a, 'py, PyAny>>; MOST],
    ) -> PyResult<usize> {
        let mut used = own + count;
        if used > self.positional {
            return Err(self.too_many(own, count));
        }
        for k in 0..count {
            objects[own + k] = Some(given(k));
        }
        if let Some(keywords) = keywords {
            for (k, keyword) in keywords.iter_borrowed().enumerate() {
                let place = self.place_of(py, keyword)?;
                if place < own || objects[place].is_some() {
                    return Err(self.twice(place));
                }
                objects[place] = Some(given(count + k));
                used = used.max(place + 1);
            }
        }
        if objects[..self.required].iter().any(Option::is_none) {
            return Err(self.missing(objects));
        }
        let arguments = &self.operation.arguments[self.required..];
        let optional = &mut objects[self.required..used.max(self.required)];
        for (object, argument) in optional.iter_mut().zip(arguments) {
            if object.is_some_and(|object| object.is_none()) && argument.takes_none() {
                *object = None;
            }
        }
        Ok(used)
    }

    /// Warns about an argument that means nothing without another one, which is absent.
    #[inline]
    pub(super) fn advise(&self, py: Python<'_>, objects: &Objects<'_, '_>) -> PyResult<()> {
        let given = |place: usize| objects.get(place).is_some_and(Option::is_some);
        match &self.advice {
            Some((first, second, text)) if given(*first) && !given(*second) => {
                PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)
            }
            _ => Ok(()),
        }
    }

    fn twice(&self, place: usize) -> PyErr {
        let (name, argument) = (self.name(), self.operation.arguments[place].name);
        PyTypeError::new_err(format!("{name}() got multiple values for argument '{argument}'"))
    }

    fn place_of(&self, py: Python<'_>, keyword: Borrowed<'_, '_, PyAny>) -> PyResult<usize> {
        let same = |name: &Py<PyString>| name.as_ptr() == keyword.as_ptr();
        if let Some(place) = self.names.iter().position(same) {
            return Ok(place);
        }
        let keyword = keyword.cast::<PyString>()?;
        let text = keyword.to_string_lossy();
        let named = |name: &Py<PyString>| name.bind(py).to_string_lossy() == text;
        let place = self.names.iter().position(named);
        place.or_else(|| self.operation.alias(&text)).ok_or_else(|| {
            let text = format!("{}() got an unexpected keyword argument '{text}'", self.name());
            PyTypeError::new_err(text)
        })
    }

    fn too_many(&self, own: usize, count: usize) -> PyErr {
        let (least, most) = (self.required.saturating_sub(own), self.positional - own);
        let takes =
            if least == most { most.to_string() } else { format!("from {least} to {most}") };
        let were = if count == 1 { "was" } else { "were" };
        let text = format!(
            "{}() takes {takes} positional arguments but {count} {were} given",
            self.name()
        );
        PyTypeError::new_err(text)
    }

    fn missing(&self, objects: &[Option<Borrowed<'_, '_, PyAny>>; MOST]) -> PyErr {
        let arguments = self.operation.arguments.iter().zip(objects);
        let missing =
            arguments.filter(|(argument, object)| argument.default.is_none() && object.is_none());
        let names: Vec<String> =
            missing.map(|(argument, _)| format!("'{}'", argument.name)).collect();
        let listed = match names.as_slice() {
            [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
            names => names.concat(),
        };
        let plural = if names.len() == 1 { "" } else { "s" };
        let count = names.len();
        let text = format!(
            "{}() missing {count} required positional argument{plural}: {listed}",
            self.name()
        );
        PyTypeError::new_err(text)
    }

    /// The docstring in the format of C functions: the signature, a line `--`, and the text.
    fn doc(&self, is_method: bool) -> String {
        let signature = signature(self.operation, is_method);
        let doc = match self.in_place {
            false => self.operation.doc(),
            true => {
                let (name, first) = (self.operation.name, self.operation.arguments[0].name);
                format!(
                    "``{name}`` in place: writes into `{first}` and returns it.\n\n`{first}` is a \
                     writable Tensor or NumPy array. If the call raises, it is unchanged.\n"
                )
            }
        };
        format!("{}{signature}\n--\n\n{doc}", self.name())
    }
}

/// Returns the signature as Python shows it.
pub(super) fn signature(operation: &Operation, is_method: bool) -> String {
    let mut parts = Vec::new();
    let mut keywords = false;
    for (k, argument) in operation.arguments.iter().enumerate() {
        if argument.keyword_only && !keywords {
            keywords = true;
            parts.push("*".to_owned());
        }
        parts.push(if k == 0 && is_method { "$self".to_owned() } else { argument.to_string() });
    }
    format!("({})", parts.join(", "))
}

/// Makes the definition of a C function. It is leaked, because the function may live as long as the
/// process.
fn definition(
    entry: &Entry,
    is_method: bool,
    meth: ffi::PyCFunctionFastWithKeywords,
) -> PyResult<*mut ffi::PyMethodDef> {
    let text = |text: &str| -> PyResult<*const c_char> { Ok(CString::new(text)?.into_raw()) };
    Ok(Box::into_raw(Box::new(ffi::PyMethodDef {
        ml_name: text(entry.name())?,
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: meth },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: text(&entry.doc(is_method))?,
    })))
}

/// Makes the entries of all operations and their in-place forms.
fn entries(py: Python<'_>) -> Vec<Entry> {
    let both = operations().iter().flat_map(|operation| {
        let twin = operation.twin.map(|_| (*operation, true));
        [(*operation, false)].into_iter().chain(twin)
    });
    let entry = |(operation, in_place): (&'static Operation, bool)| {
        let arguments = operation.arguments;
        let name = |name| PyString::intern(py, name).unbind();
        let positional = arguments.iter().filter(|argument| !argument.keyword_only).count();
        let required = arguments.iter().take_while(|argument| argument.default.is_none()).count();
        let names = arguments.iter().map(|argument| name(argument.name)).collect();
        let place = |name| arguments.iter().position(|argument| argument.name == name);
        let advice = operation.advice.and_then(|advice| {
            let text = CString::new(advice.text).ok()?;
            Some((place(advice.given)?, place(advice.without)?, text))
        });
        let gathers = operation.gathers();
        Entry { operation, in_place, names, positional, required, gathers, advice }
    };
    both.map(entry).collect()
}

/// Adds all functions to the module, their names to its `__all__`, and the methods to `Tensor`.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let entries = ENTRIES.get_or_init(|| entries(py));
    assert!(entries.len() <= ROOM, "more than {ROOM} entries: raise ROOM");
    let longest = operations().iter().map(|operation| operation.arguments.len()).max();
    assert!(longest.unwrap_or(0) <= MOST, "more than {MOST} arguments: raise MOST");
    let class = py.get_type::<PyTensor>();
    let module_name = module.getattr(intern!(py, "__name__"))?;
    let all = PyList::empty(py);
    for (k, entry) in entries.iter().enumerate() {
        let [function, method] = FUNCTIONS[k / 16][k % 16];
        let definition_of = |is_method, meth| definition(entry, is_method, meth);
        // SAFETY: `definition` fills all fields and leaks the definition, so it outlives the
        // function. The result is a new reference or an error.
        let object = unsafe {
            let def = definition_of(false, function)?;
            let object = ffi::PyCFunction_NewEx(def, ptr::null_mut(), module_name.as_ptr());
            Bound::from_owned_ptr_or_err(py, object)?
        };
        module.setattr(entry.name(), object)?;
        all.append(entry.name())?;
        if entry.operation.is_method() {
            // SAFETY: as above. `class` is a live type object.
            let object = unsafe {
                let def = definition_of(true, method)?;
                Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), def))?
            };
            class.setattr(entry.name(), object)?;
        }
    }
    module.setattr("__all__", all)
}
