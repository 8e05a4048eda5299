//! The data of a tensor without its history: a buffer, a layout and a dtype. Operations run on
//! arrays.

use std::cell::{Cell, RefCell};

use inlay_core::{DType, Dim, Error, Layout, Meta, Result, Shape, ShapeText, collect};

use crate::device::{Device, current_device};
use crate::memory::Buffer;

/// Elements of one dtype in a buffer, at the positions that a layout gives.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) buffer: Buffer,
    pub(crate) layout: Layout,
    pub(crate) dtype: DType,
}

thread_local! {
    /// Whether [`DESTINATION`] has memory. It is read whenever an array is made.
    static OFFERED: Cell<bool> = const { Cell::new(false) };
    static DESTINATION: RefCell<Option<Buffer>> = const { RefCell::new(None) };
}

/// Memory that is offered to the next array of its size that this thread makes, until this guard is
/// dropped. The array may be an intermediate one, so its user compares addresses, and copies the
/// result if it is elsewhere.
pub(crate) struct Destination;

impl Destination {
    /// Offers the memory of a contiguous array that fills its buffer; other arrays are not offered.
    pub(crate) fn offer(array: &Array) -> Self {
        let size = array.layout.numel() * array.dtype.size();
        let fits = array.layout.offset() == 0 && array.buffer.len() == size && size > 0;
        if fits && array.is_contiguous() && array.buffer.device() == Device::Cpu {
            array.buffer.cpu().prefer_huge_pages();
            DESTINATION.with_borrow_mut(|offered| *offered = Some(array.buffer.clone()));
            OFFERED.set(true);
        }
        Destination
    }

    #[cold]
    fn take(device: Device, len: usize) -> Option<Buffer> {
        DESTINATION.with_borrow_mut(|offered| {
            let fits = |buffer: &mut Buffer| buffer.device() == device && buffer.len() == len;
            let taken = offered.take_if(fits);
            OFFERED.set(offered.is_some());
            taken
        })
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        OFFERED.set(false);
        DESTINATION.with_borrow_mut(|offered| *offered = None);
    }
}

impl Array {
    /// Makes a contiguous array with unspecified values on the current device, for calls without
    /// inputs.
    pub(crate) fn new(op: &'static str, dtype: DType, shape: &[usize]) -> Result<Self> {
        Array::on(current_device(), op, dtype, shape)
    }

    /// Like [`Array::new`], on `device`.
    #[inline]
    pub(crate) fn on(
        device: Device,
        op: &'static str,
        dtype: DType,
        shape: &[usize],
    ) -> Result<Self> {
        Array::filling(device, Layout::contiguous(op, shape, dtype.size())?, dtype)
    }

    /// Makes an array of a contiguous layout, with unspecified values.
    #[inline(always)]
    fn filling(device: Device, layout: Layout, dtype: DType) -> Result<Self> {
        // `Layout::contiguous` has checked that the product does not overflow.
        let len = layout.numel() * dtype.size();
        if OFFERED.get()
            && let Some(buffer) = Destination::take(device, len)
        {
            return Ok(Array { buffer, layout, dtype });
        }
        let buffer = Buffer::new(device, len)?;
        Ok(Array { buffer, layout, dtype })
    }

    /// Like [`Array::new`], on the device of `self`.
    #[inline]
    pub(crate) fn beside(&self, op: &'static str, dtype: DType, shape: &[usize]) -> Result<Self> {
        Array::on(self.buffer.device(), op, dtype, shape)
    }

    /// Makes an array with an inferred dtype and shape, on the device of `self`.
    #[inline]
    pub(crate) fn fresh(&self, op: &'static str, meta: &Meta) -> Result<Self> {
        self.beside(op, meta.dtype, &sizes(&meta.shape))
    }

    /// Makes an array with the dtype and shape of `self`, on its device.
    #[inline(always)]
    pub(crate) fn new_like(&self, op: &'static str) -> Result<Self> {
        let layout = self.layout.packed(op, self.dtype.size())?;
        Array::filling(self.buffer.device(), layout, self.dtype)
    }

    /// Returns the same buffer with another layout.
    pub(crate) fn with_layout(&self, layout: Layout) -> Self {
        Array { layout, buffer: self.buffer.clone(), dtype: self.dtype }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    #[inline]
    pub(crate) fn meta(&self) -> Meta {
        Meta::known(self.dtype, self.shape())
    }

    /// Fails unless the dtype and all known sizes of `meta` are equal.
    pub(crate) fn expect_meta(&self, op: &'static str, meta: &Meta) -> Result<()> {
        let known = |(dim, size): (&Dim, &usize)| dim.known().is_none_or(|known| known == *size);
        let same = self.dtype == meta.dtype
            && self.shape().len() == meta.rank()
            && meta.shape.iter().zip(self.shape()).all(known);
        if same {
            return Ok(());
        }
        let (got, expected) = (ShapeText::of(self.shape()), ShapeText::of(&meta.shape));
        Err(Error::Shape { op, arg: "the result", got, expected })
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous(self.dtype.size())
    }

    /// Whether a write to one may change the elements of the other.
    pub(crate) fn overlaps(&self, other: &Array) -> bool {
        let empty = self.layout.numel() == 0 || other.layout.numel() == 0;
        (!empty || self.buffer.device() == Device::Gpu)
            && self.buffer.overlaps(
                (&self.layout, self.dtype.size()),
                &other.buffer,
                (&other.layout, other.dtype.size()),
            )
    }

    /// Fails unless the array is writable, no two elements share memory, and this thread may wait
    /// for its borrows to end.
    pub(crate) fn expect_target(&self, op: &'static str, arg: &'static str) -> Result<()> {
        if !self.buffer.is_writable() {
            return Err(Error::ReadOnly { op, arg });
        }
        if self.layout.overlaps_itself(self.dtype.size()) {
            return Err(Error::SelfOverlap { op, arg });
        }
        self.buffer.expect_free(op, arg)
    }
}

/// Returns the sizes of an inferred shape. They are known when an operation runs.
#[inline]
pub(crate) fn sizes(shape: &[Dim]) -> Shape {
    collect(shape.len(), 0, |k| known(shape[k]))
}

/// Returns a size, which is known when an operation runs.
pub(crate) fn known(dim: Dim) -> usize {
    dim.known().unwrap_or_else(|| unreachable!("a program runs once its sizes are known"))
}
