//! The tables of the classes of other libraries, each looked up once.
#![expect(unsafe_code, reason = "a capsule holds the address of the table")]

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use inlay::interop::dlpack::DLPackExchangeAPI;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyType};
use pyo3::{ffi, intern};

use super::Table;

/// The name of the capsule with a table.
pub(super) const CAPSULE: &CStr = c"dlpack_exchange_api";

/// The answer for one class.
struct Slot {
    /// The class, of which the slot owns a reference: no other class can have its address. Null in
    /// an empty slot.
    class: AtomicPtr<ffi::PyTypeObject>,
    /// The table of the class, or null if it has none.
    table: AtomicPtr<Table>,
}

/// The answers for the classes seen last, at places that their addresses give. Slots are read and
/// written only with the GIL held, which orders all accesses. A program uses the tensors of one or
/// two libraries, and few other classes as arguments; of a program that makes classes all the time,
/// the slots keep only a few alive.
static SLOTS: [Slot; 64] = [const { Slot::empty() }; 64];

impl Slot {
    const fn empty() -> Self {
        Slot { class: AtomicPtr::new(ptr::null_mut()), table: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The slot for a class.
    #[inline]
    fn of(class: *mut ffi::PyTypeObject) -> &'static Slot {
        let address = class as usize;
        &SLOTS[((address >> 4) ^ (address >> 10)) % SLOTS.len()]
    }

    #[inline]
    fn table(&self) -> Option<&'static Table> {
        // SAFETY: the slots hold null and pointers to tables that are never freed.
        unsafe { self.table.load(Relaxed).as_ref() }
    }
}

impl Table {
    /// The table of an object's class, if it has one. The answer for a class that was seen before
    /// takes 2 ns.
    #[inline]
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> Option<&'static Table> {
        let slot = Slot::of(object.get_type_ptr());
        match slot.class.load(Relaxed) == object.get_type_ptr() {
            true => slot.table(),
            false => look_up(object.get_type(), slot),
        }
    }

    /// The table of a class, if it has one.
    pub(crate) fn of_class(class: &Bound<'_, PyType>) -> Option<&'static Table> {
        let slot = Slot::of(class.as_type_ptr());
        match slot.class.load(Relaxed) == class.as_type_ptr() {
            true => slot.table(),
            false => look_up(class.clone(), slot),
        }
    }
}

/// Looks up the table of a class, and stores it in a slot.
#[cold]
fn look_up(class: Bound<'_, PyType>, slot: &Slot) -> Option<&'static Table> {
    let py = class.py();
    // An exception means that the class has no table that can be used.
    let table = find(&class).ok().flatten();
    // No Python code runs between the two stores, so the slot is never seen half-written.
    let pointer = table.map_or(ptr::null_mut(), |table| ptr::from_ref(table).cast_mut());
    slot.table.store(pointer, Relaxed);
    let former = slot.class.swap(class.into_ptr().cast(), Relaxed);
    // SAFETY: the slot owned a reference to its former class, if it had one. Python code may run
    // here, which finds the new class in the slot.
    drop(unsafe { Bound::from_owned_ptr_or_opt(py, former.cast()) });
    table
}

/// Finds the table of a class: that of the first of its bases that has one, unless a class before it
/// changes how tensors are exported.
fn find(class: &Bound<'_, PyType>) -> PyResult<Option<&'static Table>> {
    let py = class.py();
    for base in class.mro() {
        let own = base.getattr(intern!(py, "__dict__"))?;
        if own.contains(intern!(py, "__dlpack_c_exchange_api__"))? {
            let capsule = base.getattr(intern!(py, "__dlpack_c_exchange_api__"))?;
            return Ok(table_in(&capsule).map(|api| intern_table(&base, api)));
        }
        if own.contains(intern!(py, "__dlpack__"))? {
            return Ok(None);
        }
        // A subclass of PyTorch's tensor with one of these may have no memory of its own. A function
        // of C only switches off what the subclass would inherit.
        for hook in [intern!(py, "__torch_function__"), intern!(py, "__torch_dispatch__")] {
            if own.contains(hook)? && !own.get_item(hook)?.is_instance_of::<PyCFunction>() {
                return Ok(None);
            }
        }
    }
    Ok(None)
}

/// The table in a capsule.
fn table_in(capsule: &Bound<'_, PyAny>) -> Option<&'static DLPackExchangeAPI> {
    // SAFETY: the object is live, and the name is a C string. By the DLPack header, a capsule with
    // this name holds a table that is never freed.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), CAPSULE.as_ptr()) != 1 {
            return None;
        }
        let table = ffi::PyCapsule_GetPointer(capsule.as_ptr(), CAPSULE.as_ptr());
        DLPackExchangeAPI::find(table.cast_const().cast())
    }
}

/// The table over `api`, which `class` has as its own. There is one for each library.
fn intern_table(class: &Bound<'_, PyAny>, api: &'static DLPackExchangeAPI) -> &'static Table {
    static TABLES: Mutex<Vec<&'static Table>> = Mutex::new(Vec::new());
    let table = Table::new(class, api);
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = tables.iter().find(|known| known.is_over(api)) {
        return known;
    }
    let table = Box::leak(Box::new(table));
    tables.push(table);
    table
}
