//! Data in and out of tensors: vectors, slices and bytes.

use inlay_core::{DType, Error, Layout, Result};
use inlay_cpu::Element;
use inlay_cpu::memory::Borrow;

use crate::Tensor;
use crate::array::Array;
use crate::device::{self, Device, current_device};
use crate::memory::Buffer;
use crate::sizes::{IntoShape, sizes_of};

impl Tensor {
    /// Makes a tensor of a shape from a vector of its elements in row-major order.
    ///
    /// On the CPU nothing is copied: the vector becomes the memory of the tensor, with its spare
    /// capacity. If the current device is a GPU, the elements are copied there.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let values = vec![1.0f32, 2.0, 3.0, 4.0];
    /// let start = values.as_ptr();
    /// let x = Tensor::from_vec(values, &[2, 2])?;
    /// assert_eq!(x.data_ptr().cast_const().cast(), start);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape with another number of elements.
    pub fn from_vec<T: Element>(values: Vec<T>, shape: impl IntoShape) -> Result<Self> {
        let op = "from_vec";
        let layout = layout_of(op, &sizes_of(op, &shape.numbers())?, T::DTYPE, values.len())?;
        Tensor::from_vec_at(op, values, layout)
    }

    /// Makes a tensor of a shape from the bytes of its elements in row-major order, in the byte
    /// order of the machine. A bool is one byte, and every byte but 0 is true. A complex number is
    /// its real part followed by its imaginary part.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let bytes: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
    /// let x = Tensor::from_bytes(&bytes, &[2], DType::F32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.5, -2.0]);
    /// assert_eq!(x.to_bytes()?, bytes);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape that needs another number of bytes. It is found before memory is allocated.
    pub fn from_bytes(bytes: &[u8], shape: impl IntoShape, dtype: DType) -> Result<Self> {
        Tensor::of_bytes(bytes, &sizes_of("from_bytes", &shape.numbers())?, dtype)
    }

    fn of_bytes(bytes: &[u8], shape: &[usize], dtype: DType) -> Result<Self> {
        let op = "from_bytes";
        let layout = Layout::contiguous(op, shape, dtype.size())?;
        let need = layout.numel() * dtype.size();
        if need != bytes.len() {
            let got = format!("{} bytes", bytes.len());
            let expected = format!("the {need} bytes of shape {shape:?} and dtype {dtype}");
            return Err(Error::Argument { op, arg: "bytes", got, expected });
        }
        let array = Array::new(op, dtype, shape)?;
        device::store_bytes(&array, bytes)?;
        Ok(Tensor::from_array(array))
    }

    /// Returns the bytes of all elements in row-major order, in the byte order of the machine. The
    /// byte of a bool is 0 or 1.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// assert_eq!(Tensor::from([1u16, 2]).to_bytes()?, [1u16, 2].map(u16::to_ne_bytes).concat());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A symbolic tensor, or no memory for the bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.expect_elements("to_bytes")?;
        device::load_bytes(self.array())
    }

    /// Calls `read` with a slice of all elements in row-major order, and returns its result.
    ///
    /// A contiguous tensor on the CPU is not copied. A strided tensor, a tensor on a GPU, and a
    /// tensor over memory of another library, which may change it at any time, are copied first.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], &[3])?;
    /// let largest = x.with_slice(|values: &[f32]| values.iter().copied().fold(0.0, f32::max))?;
    /// assert_eq!(largest, 3.0);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// While `read` runs, no lock is held, and `read` may call operations. It may read this tensor
    /// again. A write of this tensor by the same thread is an error. A write by another thread
    /// waits until `read` returns:
    ///
    /// ```
    /// # use inlay::{Error, Tensor};
    /// # let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], &[3])?;
    /// # let (mask, zero) = (Tensor::from_slice(&[true], &[1])?, Tensor::scalar(0.0f32)?);
    /// let written = x.with_slice(|_: &[f32]| x.masked_fill_(&mask, &zero).map(drop))?;
    /// assert!(matches!(written, Err(Error::Borrowed { .. })));
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Deadlocks
    /// If `read` waits for another thread, and that thread writes this tensor, both wait forever.
    ///
    /// # Errors
    /// A type other than that of the elements, a symbolic tensor, or no memory for a copy.
    pub fn with_slice<T: Element, R>(&self, read: impl FnOnce(&[T]) -> R) -> Result<R> {
        let op = "with_slice";
        self.expect_type::<T>(op)?;
        let array = self.array();
        let borrow = array.buffer.borrow(&array.layout, array.dtype);
        if let Some(values) = borrow.as_ref().and_then(|borrow| borrow.values()) {
            return Ok(read(values));
        }
        drop(borrow);
        Ok(read(&device::load(array)?))
    }

    /// Calls `read` with the bytes of all elements in row-major order, as [`Tensor::to_bytes`]
    /// returns them, and returns its result. [`Tensor::with_slice`] says when they are copied, and
    /// what `read` may do.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from_vec(vec![1u8, 2, 3], &[3])?;
    /// assert_eq!(x.with_bytes(|bytes| bytes.len())?, 3);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A symbolic tensor, or no memory for a copy.
    pub fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> Result<R> {
        Ok(read(self.contents("with_bytes")?.bytes()))
    }
}

/// The bytes of a tensor in row-major order: borrowed where they are, or copied.
pub(crate) enum Contents<'a> {
    Borrowed(Borrow<'a>),
    Copied(Vec<u8>),
}

impl Contents<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Contents::Borrowed(borrow) => borrow.bytes(),
            Contents::Copied(bytes) => bytes,
        }
    }
}

impl Tensor {
    /// Makes a tensor of the values of a vector at the positions that `layout` gives.
    pub(crate) fn from_vec_at<T: Element>(
        op: &'static str,
        values: Vec<T>,
        layout: Layout,
    ) -> Result<Self> {
        let len = size_of_val(values.as_slice());
        match layout.extent(T::DTYPE.size()) {
            Some(range) if range.is_empty() || range.end <= len => {}
            _ => return Err(Error::OutOfBounds { what: "the array", len }),
        }
        let buffer = Buffer::Cpu(inlay_cpu::Buffer::from_vec(values));
        let array = Array { buffer, layout, dtype: T::DTYPE };
        Ok(Tensor::from_array(match current_device() {
            Device::Cpu => array,
            device => device::to_device(op, &array, device)?,
        }))
    }

    /// Returns the bytes of all elements. While they are borrowed, this thread can't write them.
    pub(crate) fn contents(&self, op: &'static str) -> Result<Contents<'_>> {
        self.expect_elements(op)?;
        let array = self.array();
        match array.buffer.borrow(&array.layout, array.dtype) {
            Some(borrow) => Ok(Contents::Borrowed(borrow)),
            None => device::load_bytes(array).map(Contents::Copied),
        }
    }

    /// Fails unless the elements have this dtype.
    pub(crate) fn expect_dtype(&self, op: &'static str, expected: DType) -> Result<()> {
        let (arg, got) = ("self", self.dtype());
        match got == expected {
            true => Ok(()),
            false => Err(Error::DType { op, arg, got, expected: expected.name() }),
        }
    }
}

/// Returns the layout of `len` elements of a shape. Fails if the shape has another number.
pub(crate) fn layout_of(
    op: &'static str,
    shape: &[usize],
    dtype: DType,
    len: usize,
) -> Result<Layout> {
    let layout = Layout::contiguous(op, shape, dtype.size())?;
    if layout.numel() != len {
        let (arg, got) = ("shape", format!("{shape:?}"));
        let expected = format!("one of {len} elements");
        return Err(Error::Argument { op, arg, got, expected });
    }
    Ok(layout)
}
