//! Threads of an OpenMP runtime that another library in the process uses, such as PyTorch.
//!
//! After a parallel region, the threads of such a runtime spin for milliseconds and wait for the
//! next one. Threads of Inlay's own would compete with them for the cores. If Inlay's work is a
//! parallel region of the same runtime, those threads do it at once.

use std::any::Any;
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::pool::forks;

/// The functions of a runtime.
struct Runtime {
    parallel: unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void, c_uint, c_uint),
    in_parallel: unsafe extern "C" fn() -> c_int,
    max_threads: unsafe extern "C" fn() -> c_int,
    thread_num: unsafe extern "C" fn() -> c_int,
    /// The number of forks when the runtime was found. Its threads don't exist in a forked child,
    /// where it would wait for them forever.
    forks: usize,
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Makes calls use the threads of the OpenMP runtime at this path, which must be loaded in the
/// process already. Returns whether they do. The first runtime that was found stays in use.
///
/// ```
/// assert!(!inlay_cpu::threads::use_openmp("/no/such/library.so"));
/// ```
pub fn use_openmp(path: &str) -> bool {
    let Ok(path) = CString::new(path) else { return false };
    RUNTIME.get().is_some() || Runtime::find(&path).is_some_and(|found| RUNTIME.set(found).is_ok())
}

impl Runtime {
    fn find(path: &CStr) -> Option<Runtime> {
        // SAFETY: the path is a C string. A library that is not loaded is not loaded now, so no
        // code runs. The handle is not closed, so the functions stay valid.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if library.is_null() {
            return None;
        }
        // SAFETY: the handle is valid, and the name is a C string.
        let symbol = |name: &CStr| unsafe { libc::dlsym(library, name.as_ptr()) };
        let [parallel, in_parallel, max_threads, thread_num] = [
            symbol(c"GOMP_parallel"),
            symbol(c"omp_in_parallel"),
            symbol(c"omp_get_max_threads"),
            symbol(c"omp_get_thread_num"),
        ];
        if [parallel, in_parallel, max_threads, thread_num].contains(&std::ptr::null_mut()) {
            return None;
        }
        // SAFETY: the addresses are those of functions with these names, whose signatures the
        // interfaces of GNU's and LLVM's runtimes define.
        unsafe {
            Some(Runtime {
                parallel: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(
                        unsafe extern "C" fn(*mut c_void),
                        *mut c_void,
                        c_uint,
                        c_uint,
                    ),
                >(parallel),
                in_parallel: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(
                    in_parallel,
                ),
                max_threads: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(
                    max_threads,
                ),
                thread_num: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(
                    thread_num,
                ),
                forks: forks(),
            })
        }
    }
}

/// A call, as the threads of the runtime see it.
struct Call<'a> {
    runtime: &'static Runtime,
    /// The most threads that take part.
    threads: usize,
    parts: usize,
    /// The number of the first part that nobody has taken.
    next: AtomicUsize,
    work: &'a (dyn Fn(usize) + Sync),
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// What [`run`] has done.
#[derive(PartialEq, Eq)]
pub(super) enum Ran {
    Everything,
    /// Nothing, because there is no runtime for this call.
    Nothing,
    /// Nothing, because the caller is one of several threads or processes that share the cores: a
    /// thread of a parallel region, or a process in which the library that uses the runtime computes
    /// on one thread, such as a worker of PyTorch's `DataLoader`.
    Alone,
}

/// Calls `work` with each of `0..parts`, on at most `threads` threads of the runtime.
pub(super) fn run(parts: usize, work: &(dyn Fn(usize) + Sync), threads: usize) -> Ran {
    let Some(runtime) = RUNTIME.get() else { return Ran::Nothing };
    // SAFETY: the functions only read settings of the calling thread.
    let (nested, team) = unsafe { ((runtime.in_parallel)() != 0, (runtime.max_threads)()) };
    // A region of another size than the library uses would end threads and start new ones.
    let team = team.max(1) as usize;
    if nested || team < 2 {
        return Ran::Alone;
    }
    if runtime.forks != forks() {
        return Ran::Nothing;
    }
    let next = AtomicUsize::new(0);
    let call = Call { runtime, threads, parts, next, work, panic: Mutex::new(None) };
    // SAFETY: the region ends before this function returns, and no thread uses the call after it.
    // `take_parts` does not unwind.
    unsafe {
        (runtime.parallel)(take_parts, (&raw const call).cast_mut().cast(), team as c_uint, 0);
    }
    match call.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(panic) => resume_unwind(panic),
        None => Ran::Everything,
    }
}

/// Takes parts until none is left.
///
/// # Safety
/// `call` points to a [`Call`] that lives until this returns.
unsafe extern "C" fn take_parts(call: *mut c_void) {
    // SAFETY: the caller guarantees it. The call is only read; its fields are `Sync`.
    let call = unsafe { &*call.cast::<Call<'_>>() };
    // SAFETY: the function only reads the number of the calling thread.
    let number = unsafe { (call.runtime.thread_num)() };
    if number as usize >= call.threads {
        return;
    }
    let done = catch_unwind(AssertUnwindSafe(|| {
        while let part = call.next.fetch_add(1, Relaxed)
            && part < call.parts
        {
            (call.work)(part);
        }
    }));
    if let Err(panic) = done {
        call.next.store(call.parts, Relaxed);
        call.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
    }
}
