//! Views: a layout over bytes that are locked, in bounds and of one dtype.
//!
//! [`Src`] is to a [`Dst`] as `&[T]` is to `&mut [T]`: sources may be copied, a destination is exclusive.

use std::marker::PhantomData;

use inlay_core::{DType, Layout};

/// The addresses between which a view's bytes lie. They are computed once, when its bounds are checked.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) low: usize,
    pub(crate) high: usize,
}

impl Span {
    /// Whether no byte lies in both spans.
    pub(crate) fn is_apart(self, other: Span) -> bool {
        let empty = self.low == self.high || other.low == other.high;
        empty || self.high <= other.low || other.high <= self.low
    }
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

/// Elements that may be written; no two of them overlap, and nothing else can reach them for `'a`.
///
/// A destination is neither `Copy` nor `Clone`: a kernel takes it by value, and there is a second one of
/// the same bytes only after the first is gone.
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

/// A [`Dst`] inside of a kernel: a pointer that the kernel hands to its threads.
///
/// It is `Copy`, so it proves nothing by itself. Each `unsafe` block that writes through it says why no
/// other thread has the same elements.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    origin: *mut u8,
    layout: &'a Layout,
    dtype: DType,
    span: Span,
    lock: PhantomData<&'a [u8]>,
}

// SAFETY: a source is an address of bytes that nobody writes for 'a, whichever thread reads them.
unsafe impl Send for Src<'_> {}
// SAFETY: as above.
unsafe impl Sync for Src<'_> {}
// SAFETY: a target is an address; whoever writes through it says why no other thread has the same
// elements. A `Dst`, which is made of one, is exclusive, and a shared reference to it writes nothing.
unsafe impl Send for Target<'_> {}
// SAFETY: as above.
unsafe impl Sync for Target<'_> {}

impl<'a> Src<'a> {
    /// # Safety
    /// Every element of `layout`, counted from `origin`, lies in `span`, can be read for `'a`, and is not
    /// written meanwhile but by a kernel that was given both views and checks that they lie apart.
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
        // SAFETY: the caller's promise; what holds for all elements holds for some of them.
        unsafe { Src::new(self.origin.offset(offset), layout, self.dtype, self.span) }
    }

    /// The addresses between which the bytes lie.
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// The address of the element at index 0, 0, …; it may be anything if there are no elements.
    pub(crate) fn origin(&self) -> *const u8 {
        self.origin
    }

    /// Where the elements lie.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
}

impl<'a> Dst<'a> {
    /// # Safety
    /// Every element of `layout`, counted from `origin`, lies in `span`, can be written for `'a`, overlaps
    /// no other element of it, and is reached for `'a` through nothing but this view.
    pub(crate) unsafe fn new(
        origin: *mut u8,
        layout: &'a Layout,
        dtype: DType,
        span: Span,
    ) -> Self {
        Dst(Target { origin, layout, dtype, span, lock: PhantomData })
    }

    /// The pointer that a kernel works with. The destination is used up, so that the kernel is the only
    /// one to write for `'a`.
    #[inline]
    pub(crate) fn into_target(self) -> Target<'a> {
        self.0
    }

    /// The addresses between which the bytes lie.
    pub(crate) fn span(&self) -> Span {
        self.0.span
    }

    /// Where the elements lie.
    pub fn layout(&self) -> &'a Layout {
        self.0.layout
    }

    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }
}

impl<'a> Target<'a> {
    /// Some of the elements, from the byte `offset` on.
    ///
    /// # Safety
    /// Every element of `layout` from there on is one of this view's, and no two are the same.
    pub(crate) unsafe fn part<'p>(&self, offset: isize, layout: &'p Layout) -> Target<'p>
    where
        'a: 'p,
    {
        // SAFETY: the caller's promise: the first element lies inside of the view.
        let origin = unsafe { self.origin.offset(offset) };
        let Target { dtype, span, .. } = *self;
        Target { origin, layout, dtype, span, lock: PhantomData }
    }

    /// The same elements, for kernels that read what they are about to write.
    pub(crate) fn as_src(&self) -> Src<'a> {
        let Target { origin, layout, dtype, span, lock } = *self;
        Src { origin, layout, dtype, span, lock }
    }

    /// Panics when `src` may share a byte with this view.
    #[inline]
    pub(crate) fn expect_apart(&self, src: &Src<'_>) {
        assert!(self.span.is_apart(src.span), "source and destination overlap");
    }

    /// The element size of both views. Panics when they differ in it.
    #[inline]
    pub(crate) fn same_size(&self, src: &Src<'_>) -> usize {
        assert_eq!(self.dtype.size(), src.dtype.size(), "elements of one size");
        self.dtype.size()
    }

    /// Panics unless `src` lies apart, in elements of the same size.
    #[inline]
    pub(crate) fn expect_source(&self, src: &Src<'_>) {
        self.expect_apart(src);
        self.same_size(src);
    }

    /// The address of the element at index 0, 0, …; it may be anything if there are no elements.
    pub(crate) fn origin(&self) -> *mut u8 {
        self.origin
    }

    /// Where the elements lie.
    pub(crate) fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The dtype of the elements.
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
