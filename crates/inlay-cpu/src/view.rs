//! Views: a layout over bytes that are locked, in bounds and of one dtype.

use std::marker::PhantomData;

use inlay_core::{DType, Layout};

/// The addresses between which a view's bytes lie: found once, when its bounds are checked.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) low: usize,
    pub(crate) high: usize,
}

/// Elements that may be read.
#[derive(Clone, Copy)]
pub struct Src<'a> {
    origin: *const u8,
    layout: &'a Layout,
    dtype: DType,
    span: Span,
    lock: PhantomData<&'a [u8]>,
}

/// Elements that may be written; no two of them overlap.
#[derive(Clone, Copy)]
pub struct Dst<'a> {
    origin: *mut u8,
    layout: &'a Layout,
    dtype: DType,
    span: Span,
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
    /// Every element of `layout`, counted from `origin`, lies in `span`, can be read for 'a, and is not written
    /// meanwhile but by a kernel that was given both.
    pub(crate) unsafe fn new(
        origin: *const u8,
        layout: &'a Layout,
        dtype: DType,
        span: Span,
    ) -> Self {
        Src { origin, layout, dtype, span, lock: PhantomData }
    }

    /// Some of the elements, from the byte `offset` on.
    ///
    /// # Safety
    /// Every element of `layout` from there on is one of this view's.
    pub(crate) unsafe fn part<'p>(&self, offset: isize, layout: &'p Layout) -> Src<'p>
    where
        'a: 'p,
    {
        // SAFETY: the caller's promise.
        unsafe { Src::new(self.origin.offset(offset), layout, self.dtype, self.span) }
    }

    /// The addresses between which the bytes lie.
    pub(crate) fn span(&self) -> Span {
        self.span
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
    /// Every element of `layout`, counted from `origin`, lies in `span`, can be written for 'a, overlaps no other
    /// element of it, and is used meanwhile by nothing but a kernel that was given this view.
    pub(crate) unsafe fn new(
        origin: *mut u8,
        layout: &'a Layout,
        dtype: DType,
        span: Span,
    ) -> Self {
        Dst { origin, layout, dtype, span, lock: PhantomData }
    }

    /// Some of the elements, from the byte `offset` on.
    ///
    /// # Safety
    /// Every element of `layout` from there on is one of this view's, and no two are the same.
    pub(crate) unsafe fn part<'p>(&self, offset: isize, layout: &'p Layout) -> Dst<'p>
    where
        'a: 'p,
    {
        // SAFETY: the caller's promise.
        unsafe { Dst::new(self.origin.offset(offset), layout, self.dtype, self.span) }
    }

    /// The same elements, for kernels that read what they are about to write.
    pub(crate) fn as_src(&self) -> Src<'a> {
        let Dst { origin, layout, dtype, span, lock } = *self;
        Src { origin, layout, dtype, span, lock }
    }

    /// Fails loudly when `src` may share a byte with this view: whoever hands a kernel its source
    /// and its destination keeps them apart.
    pub(crate) fn expect_apart(&self, src: &Src<'_>) {
        let (Span { low: a, high: a_end }, Span { low: b, high: b_end }) = (self.span, src.span);
        let empty = a == a_end || b == b_end;
        assert!(empty || a_end <= b || b_end <= a, "source and destination overlap");
    }

    /// The addresses between which the bytes lie.
    pub(crate) fn span(&self) -> Span {
        self.span
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
