//! DLPack, the protocol by which array libraries share memory without a copy.
//!
//! ```
//! use inlay::Tensor;
//! use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
//!
//! let x = Tensor::from_slice(&[1i32, 2, 3], &[3])?;
//! let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Never)?;
//! let y = managed.into_tensor()?;
//! assert_eq!(y.data_ptr(), x.data_ptr());
//! # Ok::<(), inlay::Error>(())
//! ```

mod abi;
mod dtype;
mod exchange;
mod export;
mod import;
mod managed;
#[cfg(test)]
mod tests;

pub use abi::{
    CPU, CUDA_HOST, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion,
    DLTensor, IS_COPIED, READ_ONLY, VERSION,
};
pub use exchange::{
    DLPackExchangeAPI, DLPackExchangeAPIHeader, EXCHANGE_VERSION, SetError, allocate,
};
pub use export::{Copy, Dims};
pub use import::describe_device;
pub use managed::{Form, Managed};
