//! Indexed writes for tensors: write values to the places that a slice, a diagonal, a mask, an
//! index or a triangle selects.
//!
//! ```
//! use inlay::{Reduce, Scatter, Tensor};
//!
//! let x = Tensor::from_slice(&[0.0f32, 10.0, 20.0], &[3])?;
//! let index = Tensor::from_slice(&[2i64, 0, 2], &[3])?;
//! let updates = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
//!
//! // When overwriting, the last write to a place wins.
//! let last = x.scatter(&index, &updates, Scatter::overwrite())?;
//! assert_eq!(last.to_vec::<f32>()?, [2.0, 10.0, 3.0]);
//!
//! // When reducing, a place that the index names becomes the reduction of its updates.
//! let sums = x.scatter(&index, &updates, Scatter::reduce(Reduce::Sum))?;
//! assert_eq!(sums.to_vec::<f32>()?, [2.0, 10.0, 4.0]);
//! # Ok::<(), inlay::Error>(())
//! ```
//!
//! # Expressions
//!
//! ```
//! use inlay::{DType, Tensor};
//!
//! let x = Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
//! // An operator returns a `Result`, because shapes and dtypes may not fit. Its operands are
//! // tensors, numbers, and on one side the result of another operator.
//! let y = (&x * 2.0 + &x.mean(0, true)?)?;
//! assert_eq!(y.to_vec::<f32>()?, [4.5, 7.5, 10.5, 10.5, 13.5, 16.5]);
//! // An index expression is a tuple of integers, ranges, tensors and lists.
//! assert_eq!(x.i((.., 1..))?.to_vec::<f32>()?, [2.0, 3.0, 5.0, 6.0]);
//! y.set((0, [0, 2]), 0)?;
//! assert_eq!(y.i(0)?.to_vec::<f32>()?, [0.0, 7.5, 0.0]);
//! // Sizes and axes are integers of any type, in any list.
//! assert_eq!(Tensor::zeros([2, 3], DType::F32)?.reshape([3, -1])?.shape(), [3, 2]);
//! # Ok::<(), inlay::Error>(())
//! ```
//!
//! A plain number takes the dtype of the tensor that it is used with, if its kind permits it. `+=`
//! could not report an error, so there is none: [`Tensor::add_`] and its kin write in place. Both
//! [`Scatter::reduce`] and [`PutAlongAxis::reduce`] leave the old value of a place out, unless
//! `include_self(true)` asks for it.
//!
//! # Memory
//!
//! A [`Tensor`] is a handle: clones and views share its bytes, and an in-place method (its name
//! ends in `_`) writes the bytes that all of them see. Bytes are locked while they are used, so
//! tensors may be shared between threads.
//!
//! # Threads
//!
//! A call with enough work is split among threads: at most [`num_threads`], which
//! [`set_num_threads`] and the environment variable `INLAY_NUM_THREADS` set. Inlay has threads of
//! its own for that. In a worker thread of a rayon pool, a call uses the idle threads of that pool
//! instead, so `par_iter` and `ThreadPool::install` decide how many threads are busy. No call waits
//! for another job of the pool, and no result depends on the threads.
//!
//! If the value of an environment variable can't be used, the default is used, and a message is
//! printed to stderr; [`environment_problems`] returns it instead.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `gpu` | tensors on GPUs, with wgpu |
//! | `serde` | `Serialize` and `Deserialize` for [`Tensor`] |
//! | `ndarray` | `TryFrom` from and to arrays of `ndarray`; an owned array is not copied |
//! | `safetensors` | files of tensors, and `TryFrom` for views: `interop::safetensors` |
//! | `candle` | `TryFrom` from and to tensors of `candle-core`, which takes over a minute to build |
// With the feature `gpu`, the type of a program is deep: it is followed when threads share one.
#![recursion_limit = "256"]
#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod array;
mod backward;
mod data;
mod declare;
mod device;
mod format;
mod function;
mod funnel;
mod graph;
mod guard;
mod indexing;

pub mod interop;
mod lock;
mod memory;
mod op;
mod operand;
mod operators;
mod ops;
mod placement;
mod scalar;
mod site;
mod sizes;
mod symbolic;
mod tape;
mod tensor;
mod values;

pub use backward::GradOptions;
pub use declare::{Advice, Argument, ArgumentKind, Bounds, Operation, Preset, Returns, Value};
pub use device::{
    Device, DeviceInfo, current_device, devices, set_device, switch_device, synchronize,
    with_device,
};
pub use function::{Extent, Function, Need, Pullback};
pub use graph::{Jit, Kinds, Plan, Program, Sizes, Trace, Traces, Written, jit};
pub use half::{bf16, f16};
pub use indexing::IntoItems;
pub use inlay_core::{
    Cause, DType, Dim, Dims, Error, ErrorKind, Integer, IntoEnd, Kind, Layout, Meta, Reduce,
    Result, ShapeText, Slice, Symbol,
};
pub use inlay_cpu::memory::{
    Stats as MemoryStats, empty_cache, set_cache_limit, stats as memory_stats,
};
#[cfg(unix)]
pub use inlay_cpu::threads::use_openmp;
pub use inlay_cpu::threads::{MAX_THREADS, Recorded, num_threads, recorded, set_num_threads};
pub use inlay_cpu::{Element, environment_problems};
#[cfg(feature = "gpu")]
pub use inlay_gpu::{
    PoolStats as GpuMemoryStats, empty_pool as empty_gpu_cache, pool_stats as gpu_memory_stats,
};
pub use num_complex::{Complex32, Complex64};
pub use operand::Operand;
pub use ops::{
    Diagonal, DiagonalScatter, Item, PutAlongAxis, Scatter, SelectScatter, SliceScatter, Slices,
    operations,
};
pub use scalar::Scalar;
pub use site::{named, set_site};
pub use sizes::{IntoAxes, IntoShape};
pub use tape::{Hook, NoGrad, is_grad_enabled};
pub use tensor::Tensor;
pub use values::{Nested, Values};

/// The Rust examples of the README and of the pages under docs/ run as tests. The pages are in the
/// workspace, not in the package.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/static.md")]
#[doc = include_str!("../../../docs/gradients.md")]
struct Readme;
