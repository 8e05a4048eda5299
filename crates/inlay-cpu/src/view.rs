//! Views: a layout and a dtype over locked bytes. The bounds of every view were checked.
//!
//! A [`Src`] is like `&[T]`: it may be copied. A [`Dst`] is like `&mut [T]`: it is exclusive.

use std::marker::PhantomData;

use inlay_core::{DType, Layout};

/// The range of addresses that contains a view's bytes. It is computed once, when the bounds of the
/// view are checked.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) low: usize,
    pub(crate) high: usize,
}

impl Span {
    /// Returns whether the spans have no byte in common.
    pub(crate) fn is_apart(self, other: Span) -> bool {
        let empty = self.low == self.high || other.low == other.high;
        empty || self.high <= other.low || other.high <= self.low
    }
}

/// A view of elements that may be read.
#[derive(Clone, Copy)]
pub struct Src<'a> {
    origin: *const u8,
    layout: &'a Layout,
    dtype: DType,
    span: Span,
    lock: PhantomData<&'a [u8]>,
}

/// A view of elements that may be written. No two elements overlap, and nothing else can access
/// them for `'a`.
///
/// A destination is neither `Copy` nor `Clone`. A kernel takes it by value, so a second destination
/// of the same bytes can be made only after the first one is consumed or dropped.
///
/// ```compile_fail,E0382
/// # use inlay_core::{DType, Layout};
/// # use inlay_cpu::{Buffer, kernels};
/// # let buffer = Buffer::new(4).unwrap();
/// # let layout = Layout::contiguous("doc", &[4], 1).unwrap();
/// # let mut guard = buffer.write();
/// let dst = guard.dst(&layout, DType::U8).unwrap();
/// kernels::store(dst, &[1u8, 2, 3, 4]);
/// kernels::store(dst, &[5u8, 6, 7, 8]); // `dst` was moved
/// ```
pub struct Dst<'a>(Target<'a>);

/// A [`Dst`] inside of a kernel: a pointer that the kernel passes to its threads.
///
/// It is `Copy`, so it does not guarantee exclusive access. Each `unsafe` block that writes through
/// it says why no other thread accesses the same elements.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    origin: *mut u8,
    layout: &'a Layout,
    dtype: DType,
    span: Span,
    lock: PhantomData<&'a [u8]>,
}

// SAFETY: nobody writes the bytes of a source for `'a` (see `Src::new`), so any thread may read
// them.
unsafe impl Send for Src<'_> {}
// SAFETY: as above.
unsafe impl Sync for Src<'_> {}
// SAFETY: a target is only an address. Code that writes through it is `unsafe` and says why no
// other thread accesses the same elements. A `Dst`, which contains a target, is exclusive, and a
// shared reference to a `Dst` gives no access to the bytes.
unsafe impl Send for Target<'_> {}
// SAFETY: as above.
unsafe impl Sync for Target<'_> {}

impl<'a> Src<'a> {
    /// Makes a view of the elements of `layout`, where `origin` is the address of the first
    /// element.
    ///
    /// # Safety
    /// Every element lies inside of `span` and can be read for `'a`. For `'a` it is written by
    /// nobody except a kernel that was given this view too and checks that its destination does not
    /// overlap it.
    pub(crate) unsafe fn new(
        origin: *const u8,
        layout: &'a Layout,
        dtype: DType,
        span: Span,
    ) -> Self {
        Src { origin, layout, dtype, span, lock: PhantomData }
    }

    /// Returns a view of some of the elements. `offset` is the distance in bytes from the first
    /// element of this view to the first element of `layout`.
    ///
    /// # Safety
    /// Every element of `layout` at that offset is an element of this view.
    pub(crate) unsafe fn part<'p>(&self, offset: isize, layout: &'p Layout) -> Src<'p>
    where
        'a: 'p,
    {
        // SAFETY: the caller's promise; the elements of the part are elements of this view, for
        // which `Src::new` was called.
        unsafe { Src::new(self.origin.offset(offset), layout, self.dtype, self.span) }
    }

    /// Returns the range of addresses that contains the bytes.
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// Returns the address of the element at index 0, 0, …. It may be any address if there are no
    /// elements.
    pub(crate) fn origin(&self) -> *const u8 {
        self.origin
    }

    /// Returns the layout of the elements.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// Returns the dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
}

impl<'a> Dst<'a> {
    /// # Safety
    /// `origin` is the address of the first element of `layout`. Every element lies inside of
    /// `span` and can be written for `'a`. No two elements overlap. For `'a` they are accessed only
    /// through this view.
    pub(crate) unsafe fn new(
        origin: *mut u8,
        layout: &'a Layout,
        dtype: DType,
        span: Span,
    ) -> Self {
        Dst(Target { origin, layout, dtype, span, lock: PhantomData })
    }

    /// Returns the pointer that a kernel works with. It consumes the destination, so only this
    /// kernel can write for `'a`.
    #[inline]
    pub(crate) fn into_target(self) -> Target<'a> {
        self.0
    }

    /// Returns the range of addresses that contains the bytes.
    pub(crate) fn span(&self) -> Span {
        self.0.span
    }

    /// Returns the layout of the elements.
    pub fn layout(&self) -> &'a Layout {
        self.0.layout
    }

    /// Returns the dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }
}

impl<'a> Target<'a> {
    /// Returns a target of some of the elements. `offset` is the distance in bytes from the first
    /// element of this target to the first element of `layout`.
    ///
    /// # Safety
    /// Every element of `layout` at that offset is an element of this target, and no two are the
    /// same.
    pub(crate) unsafe fn part<'p>(&self, offset: isize, layout: &'p Layout) -> Target<'p>
    where
        'a: 'p,
    {
        // SAFETY: the caller's promise: the first element lies inside of this target.
        let origin = unsafe { self.origin.offset(offset) };
        let Target { dtype, span, .. } = *self;
        Target { origin, layout, dtype, span, lock: PhantomData }
    }

    /// Returns a source of the same elements, for kernels that read the old values.
    pub(crate) fn as_src(&self) -> Src<'a> {
        let Target { origin, layout, dtype, span, lock } = *self;
        Src { origin, layout, dtype, span, lock }
    }

    /// Panics if the address range of `src` overlaps that of this target.
    #[inline]
    pub(crate) fn expect_apart(&self, src: &Src<'_>) {
        assert!(self.span.is_apart(src.span), "source and destination overlap");
    }

    /// Returns the element size of both views. Panics if the sizes differ.
    #[inline]
    pub(crate) fn same_size(&self, src: &Src<'_>) -> usize {
        assert_eq!(self.dtype.size(), src.dtype.size(), "elements of one size");
        self.dtype.size()
    }

    /// Panics if `src` overlaps this target or has another element size.
    #[inline]
    pub(crate) fn expect_source(&self, src: &Src<'_>) {
        self.expect_apart(src);
        self.same_size(src);
    }

    /// Returns the address of the element at index 0, 0, …. It may be any address if there are no
    /// elements.
    pub(crate) fn origin(&self) -> *mut u8 {
        self.origin
    }

    /// Returns the layout of the elements.
    pub(crate) fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// Returns the dtype of the elements.
    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_apart_unless_they_share_a_byte() {
        let span = |low, high| Span { low, high };
        assert!(span(0, 4).is_apart(span(4, 8)) && span(4, 8).is_apart(span(0, 4)));
        assert!(!span(0, 5).is_apart(span(4, 8)) && !span(0, 8).is_apart(span(3, 4)));
        assert!(span(3, 3).is_apart(span(0, 8)));
    }
}
