//! Views: a layout over bytes that are locked, in bounds and of one dtype.

use std::marker::PhantomData;

use inlay_core::{DType, Layout};

/// Elements that may be read.
#[derive(Clone, Copy)]
pub struct Src<'a> {
    origin: *const u8,
    layout: &'a Layout,
    dtype: DType,
    lock: PhantomData<&'a [u8]>,
}

/// Elements that may be written; no two of them overlap.
#[derive(Clone, Copy)]
pub struct Dst<'a> {
    origin: *mut u8,
    layout: &'a Layout,
    dtype: DType,
    lock: PhantomData<&'a [u8]>,
}

// SAFETY: a view is an address and a promise about it that holds on every thread.
unsafe impl Send for Src<'_> {}
// SAFETY: as above.
unsafe impl Sync for Src<'_> {}
// SAFETY: as above; kernels hand each thread its own elements.
unsafe impl Send for Dst<'_> {}
// SAFETY: as above.
unsafe impl Sync for Dst<'_> {}

impl<'a> Src<'a> {
    /// # Safety
    /// Every element of `layout`, counted from `origin`, can be read for 'a, and is not written
    /// meanwhile but by a kernel that was given both.
    pub(crate) unsafe fn new(origin: *const u8, layout: &'a Layout, dtype: DType) -> Self {
        Src { origin, layout, dtype, lock: PhantomData }
    }

    pub(crate) fn origin(&self) -> *const u8 {
        self.origin
    }

    /// Where the elements lie.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// What they are.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
}

impl<'a> Dst<'a> {
    /// # Safety
    /// Every element of `layout`, counted from `origin`, can be written for 'a, overlaps no other
    /// element of it, and is used meanwhile by nothing but a kernel that was given this view.
    pub(crate) unsafe fn new(origin: *mut u8, layout: &'a Layout, dtype: DType) -> Self {
        Dst { origin, layout, dtype, lock: PhantomData }
    }

    /// The same elements, for kernels that read what they are about to write.
    pub(crate) fn as_src(&self) -> Src<'a> {
        Src { origin: self.origin, layout: self.layout, dtype: self.dtype, lock: PhantomData }
    }

    /// Fails loudly when `src` may share a byte with this view: whoever hands a kernel its source
    /// and its destination keeps them apart.
    pub(crate) fn expect_apart(&self, src: &Src<'_>) {
        let span = |origin: *const u8, layout: &Layout, size| {
            let range = layout.extent(size).unwrap_or(0..usize::MAX);
            let base = (origin as usize).wrapping_sub(layout.offset());
            (base.wrapping_add(range.start), base.wrapping_add(range.end))
        };
        let (a, a_end) = span(self.origin, self.layout, self.dtype.size());
        let (b, b_end) = span(src.origin, src.layout, src.dtype.size());
        let empty = a == a_end || b == b_end;
        assert!(empty || a_end <= b || b_end <= a, "source and destination overlap");
    }

    /// The element size of both views.
    pub(crate) fn same_size(&self, src: &Src<'_>) -> usize {
        assert_eq!(self.dtype.size(), src.dtype.size(), "elements of one size");
        self.dtype.size()
    }

    pub(crate) fn origin(&self) -> *mut u8 {
        self.origin
    }

    /// Where the elements lie.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// What they are.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
}
