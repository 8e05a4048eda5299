//! Checks that safe code can't make a kernel access memory outside of its views: a call whose
//! arguments don't fit together panics.
//!
//! The doctests of `Dst`, `WriteGuard` and `Element` show what the compiler refuses.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use inlay_core::{
    Arithmetic, Combine, Comparison, DType, Fold, Layout, Reduce, ResolvedSlice, Triangle, Unary,
};
use inlay_cpu::kernels::{self, Bits, Comb, Index, Positions};
use inlay_cpu::{Buffer, Dst, Src};

const SUM: Combine = Combine::Reduce { reduce: Reduce::Sum, include_self: true };

/// A contiguous tensor with its own buffer.
struct Owned {
    buffer: Buffer,
    layout: Layout,
    dtype: DType,
}

impl Owned {
    fn new(dtype: DType, shape: &[usize]) -> Self {
        let layout = Layout::contiguous("test", shape, dtype.size()).expect("small");
        let buffer = Buffer::new(layout.numel() * dtype.size()).expect("small");
        Owned { buffer, layout, dtype }
    }

    fn index(values: &[i64]) -> Self {
        let index = Owned::new(DType::I64, &[values.len()]);
        index.write(|dst| kernels::store(dst, values));
        index
    }

    fn write<R>(&self, work: impl FnOnce(Dst<'_>) -> R) -> R {
        work(self.buffer.write().dst(&self.layout, self.dtype).expect("inside"))
    }

    fn read<R>(&self, work: impl FnOnce(Src<'_>) -> R) -> R {
        work(self.buffer.read().src(&self.layout, self.dtype).expect("inside"))
    }

    /// Reads the tensor as positions on an axis of `size`.
    fn positions(&self, size: usize) -> Positions {
        self.read(|src| Positions::read("test", "index", src, 0, size)).expect("in range")
    }
}

fn f32s(shape: &[usize]) -> Owned {
    Owned::new(DType::F32, shape)
}

/// Expects that `work` panics with this message.
#[track_caller]
fn refused<R>(message: &str, work: impl FnOnce() -> R) {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(work()))).expect_err("it should be refused");
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    assert!(text.contains(message), "{text:?} instead of {message:?}");
}

/// Calls `work` with views of a destination and of sources. No source may have the buffer of the
/// destination.
fn with<R, const N: usize>(
    dst: &Owned,
    sources: [&Owned; N],
    work: impl FnOnce(Dst<'_>, [Src<'_>; N]) -> R,
) -> R {
    let guards = sources.map(|source| source.buffer.read());
    let view = |k: usize| guards[k].src(&sources[k].layout, sources[k].dtype).expect("inside");
    let views = std::array::from_fn(view);
    dst.write(|dst| work(dst, views))
}

fn index(values: Src<'_>) -> Index<'_> {
    Index { op: "test", arg: "index", values }
}

#[test]
fn a_source_beside_a_destination_does_not_overlap_it() {
    let x = f32s(&[8]);
    let slice = |start| x.layout.slice(0, ResolvedSlice { start, step: 1, len: 4 });
    let (low, middle, high) = (slice(0), slice(3), slice(4));
    let mut guard = x.buffer.write();
    let (_, rest) = guard.split(&low, DType::F32).expect("inside");
    assert!(rest.src(&high, DType::F32).is_ok());
    assert!(rest.src(&high, DType::F64).is_err());
    refused("overlap", || rest.src(&middle, DType::F32).is_ok());
}

#[test]
fn a_destination_on_another_thread_is_still_the_only_one() {
    let x = Owned::new(DType::U8, &[4]);
    let mut guard = x.buffer.write();
    let dst = guard.dst(&x.layout, DType::U8).expect("inside");
    std::thread::scope(|scope| {
        scope.spawn(move || kernels::store(dst, &[1u8, 2, 3, 4]));
    });
    let src = guard.src(&x.layout, DType::U8).expect("inside");
    assert_eq!(kernels::load::<u8>(src).expect("small"), [1, 2, 3, 4]);
}

#[test]
fn positions_are_used_on_the_axis_they_were_checked_for_or_a_larger_one() {
    let (named, src, dst) = (Owned::index(&[0, 9, 4]), f32s(&[5, 2]), f32s(&[3, 2]));
    let positions = named.positions(10);
    assert_eq!(positions.size(), 10);
    let gather = |src: &Owned, dst: &Owned| {
        with(dst, [src, &named], |dst, [src, values]| {
            kernels::gather_rows(dst, src, 0, Index { op: "test", arg: "index", values })
        })
    };
    assert!(gather(&src, &dst).is_err());
    assert!(gather(&f32s(&[10, 2]), &dst).is_ok() && gather(&f32s(&[11, 2]), &dst).is_ok());
    refused("a row for each entry", || gather(&f32s(&[10, 2]), &f32s(&[4, 2])));
    refused("one shape", || gather(&f32s(&[10, 3]), &dst));
    let wide = Owned::new(DType::F64, &[3, 2]);
    refused("one size", || gather(&f32s(&[10, 2]), &wide));

    let bools = Owned::new(DType::Bool, &[3]);
    refused("a larger axis", || {
        bools.write(|dst| kernels::winning_elements(dst, &positions, 0, 9)).is_ok()
    });
    let (g, x) = (f32s(&[9, 2]), f32s(&[3, 2]));
    refused("a larger axis", || {
        with(&f32s(&[3, 2]), [&g, &x], |dst, [g, x]| {
            kernels::products_of_others(dst, g, x, None, 0, &positions).expect("small");
        });
    });
    refused("a larger axis", || {
        with(&f32s(&[9, 2]), [&g, &x], |dst, [g, x]| {
            kernels::products_of_all(dst, g, x, 0, &positions).expect("small");
        });
    });
}

/// Scatters the rows of `updates` into a tensor of shape `[8, 4]`. Valid updates have the shape
/// `[2, 4]`.
fn scatter(base: Option<&Owned>, named: &Owned, updates: &Owned, combine: Combine) {
    let own = base.is_some();
    let sources = [named, updates, base.unwrap_or(updates)];
    with(&f32s(&[8, 4]), sources, |dst, [values, updates, base]| {
        let base = own.then_some(base);
        kernels::scatter_rows(dst, base, 0, index(values), updates, combine).expect("in range");
    });
}

#[test]
fn a_scatter_of_rows_fits_together() {
    let (named, updates, base) = (Owned::index(&[1, 7]), f32s(&[2, 4]), f32s(&[8, 4]));
    scatter(Some(&base), &named, &updates, SUM);
    let assign = Combine::Assign;
    let half = Owned::new(DType::F16, &[8, 4]);
    refused("one size", || scatter(Some(&half), &named, &updates, assign));
    refused("a base of one shape", || scatter(Some(&f32s(&[7, 4])), &named, &updates, assign));
    refused("one size", || scatter(None, &named, &Owned::new(DType::F16, &[2, 4]), assign));
    refused("one dtype", || scatter(None, &named, &Owned::new(DType::I32, &[2, 4]), SUM));
    refused("a row of updates", || scatter(None, &named, &f32s(&[1, 4]), assign));
    refused("rows of one shape", || scatter(None, &named, &f32s(&[2, 3]), assign));
    refused("rows of one shape", || scatter(None, &named, &f32s(&[2]), assign));
    refused("of integers", || scatter(None, &f32s(&[2]), &updates, assign));
    refused("of integers", || {
        scatter(None, &Owned::new(DType::I64, &[2, 1]), &updates, assign);
    });
}

#[test]
fn a_base_or_an_index_does_not_overlap_what_is_written() {
    // The destination, a source that overlaps it, and a source that does not.
    let x = Owned::new(DType::I64, &[8]);
    let part = |start, len| x.layout.slice(0, ResolvedSlice { start, step: 1, len });
    let (to, over, after) = (part(0, 2), part(1, 2), part(4, 2));
    let mut guard = x.buffer.write();
    let (dst, rest) = guard.split(&to, DType::I64).expect("inside");
    refused("overlap", || rest.src(&over, DType::I64).is_ok());
    let after = rest.src(&after, DType::I64).expect("inside");
    let scattered = kernels::scatter_rows(dst, Some(after), 0, index(after), after, SUM);
    assert!(scattered.is_ok());
}

#[test]
fn selected_rows_are_there() {
    let (named, rows, dst) = (Owned::index(&[1, 7, 3]), f32s(&[4, 4]), f32s(&[8, 4]));
    let select = |selected: &Positions| {
        with(&dst, [&named, &rows], |dst, [values, rows]| {
            let rows = (rows, selected);
            kernels::scatter_selected_rows(dst, None, 0, index(values), rows, SUM)
                .expect("in range");
        });
    };
    select(&Owned::index(&[0, 3, 3]).positions(4));
    refused("a larger axis", || select(&Owned::index(&[0, 3, 3]).positions(5)));
    refused("a row for each entry", || select(&Owned::index(&[0, 3]).positions(4)));
}

#[test]
fn elements_fit_together() {
    let named = Owned::new(DType::I64, &[2, 4]);
    let put = |dst: &Owned, base: Option<&Owned>, values: &Owned, combine| {
        let own = base.is_some();
        let sources = [&named, values, base.unwrap_or(values)];
        with(dst, sources, |dst, [entries, values, base]| {
            let (base, index) = (own.then_some(base), index(entries));
            kernels::scatter_elements(dst, base, 0, index, entries, values, combine)
                .expect("in range");
        });
    };
    let (x, half, assign) = (f32s(&[8, 4]), Owned::new(DType::F16, &[8, 4]), Combine::Assign);
    put(&x, Some(&f32s(&[8, 4])), &f32s(&[2, 4]), assign);
    refused("one size", || put(&x, Some(&half), &f32s(&[2, 4]), assign));
    refused("a copy of the base", || put(&x, Some(&f32s(&[4, 4])), &f32s(&[2, 4]), assign));
    refused("one size", || put(&x, None, &Owned::new(DType::F64, &[2, 4]), assign));
    refused("one dtype", || put(&x, None, &Owned::new(DType::I32, &[2, 4]), SUM));
    refused("an entry for each value", || put(&x, None, &f32s(&[1, 4]), assign));
    refused("a part of it", || put(&f32s(&[8, 3]), None, &f32s(&[2, 4]), assign));

    let take = |dst: &Owned, src: &Owned| {
        with(dst, [src, &named], |dst, [src, entries]| {
            kernels::gather_elements(dst, src, 0, index(entries), entries).expect("in range");
        });
    };
    take(&f32s(&[2, 4]), &x);
    refused("one size", || take(&f32s(&[2, 4]), &half));
    refused("an entry for each element", || take(&f32s(&[3, 4]), &x));
    refused("one shape", || take(&f32s(&[2, 4]), &f32s(&[8, 3])));
}

#[test]
fn a_scan_reads_its_own_dtype() {
    let (from, narrow) = (Owned::index(&[2, 2]).positions(3), Owned::new(DType::F16, &[2]));
    let scan = |a: &Owned, c: &Owned| {
        with(&f32s(&[2]), [a, c], |dst, [a, c]| {
            kernels::scan_rows(dst, a, c, 0, &from, false);
        });
    };
    scan(&f32s(&[2]), &f32s(&[2]));
    refused("one dtype", || scan(&narrow, &f32s(&[2])));
    refused("one dtype", || scan(&f32s(&[2]), &narrow));
    refused("one shape", || scan(&f32s(&[1]), &f32s(&[2])));
}

#[test]
fn neighbours_have_a_slot_for_each_place() {
    let (named, dst) = (Owned::index(&[0, 3, 0]), Owned::new(DType::I64, &[3]));
    let positions = named.positions(4);
    let write = |places: usize| {
        dst.write(|dst| kernels::neighbours(dst, &positions, &mut vec![0; places], false));
    };
    write(4);
    refused("out of bounds", || write(3));
}

#[test]
fn triangles_are_of_one_shape() {
    let keep = |dst: &Owned, src: &Owned| {
        with(dst, [src], |dst, [src]| kernels::keep_triangle(dst, src, Triangle::Lower, 0));
    };
    keep(&f32s(&[3, 4]), &f32s(&[3, 4]));
    refused("one shape", || keep(&f32s(&[3, 4]), &f32s(&[3, 2])));
    refused("one shape", || keep(&f32s(&[4]), &f32s(&[4])));
    let indices = |dst: &Owned| {
        dst.write(|dst| kernels::triangle_indices(dst, Triangle::Lower, 2, 2, 0));
    };
    indices(&Owned::new(DType::I32, &[2, 3]));
    refused("one column an entry", || indices(&Owned::new(DType::I32, &[2, 2])));
    refused("inference refuses", || indices(&f32s(&[2, 3])));
}

#[test]
fn parts_of_an_overlay_are_parts_of_the_destination() {
    let whole = f32s(&[4, 4]);
    let overlay = |part: &Layout, source: &Owned| {
        with(&whole, [source], |dst, [src]| {
            kernels::overlay(dst, &[(part, src), (part, src)]);
        });
    };
    let rows = |start, len| whole.layout.slice(0, ResolvedSlice { start, step: 1, len });
    overlay(&rows(2, 2), &f32s(&[2, 4]));
    refused("inside of the destination", || overlay(&rows(3, 2), &f32s(&[2, 4])));
    refused("one shape", || overlay(&rows(2, 2), &f32s(&[2, 3])));
    refused("one size", || overlay(&rows(2, 2), &Owned::new(DType::F64, &[2, 4])));
    let between = Layout::over(&[3], &[4], 2);
    refused("elements of the destination", || overlay(&between, &f32s(&[3])));
    let again = Layout::over(&[3], &[0], 0);
    refused("without overlap", || overlay(&again, &f32s(&[3])));
    let gaps = whole.layout.slice(1, ResolvedSlice { start: 0, step: 1, len: 2 });
    refused("a contiguous destination", || {
        let mut guard = whole.buffer.write();
        kernels::overlay(guard.dst(&gaps, DType::F32).expect("inside"), &[]);
    });
}

#[test]
fn masks_are_bools_with_a_bit_for_each_element() {
    let mask = Owned::new(DType::Bool, &[6]);
    mask.write(|dst| kernels::store(dst, &[true, false, true, false, false, false]));
    let bits = mask.read(Bits::read).expect("small");
    refused("true or false", || f32s(&[6]).read(Bits::read).is_ok());

    let expand = |dst: &Owned, base: Option<&Owned>, source: &Owned| {
        let own = base.is_some();
        with(dst, [source, base.unwrap_or(source)], |dst, [source, base]| {
            kernels::expand(dst, own.then_some(base), &bits, source);
        });
    };
    expand(&f32s(&[6]), Some(&f32s(&[6])), &f32s(&[2]));
    refused("enough elements", || expand(&f32s(&[6]), None, &f32s(&[1])));
    refused("one bit an element", || expand(&f32s(&[7]), None, &f32s(&[2])));
    refused("one size", || {
        expand(&f32s(&[6]), Some(&Owned::new(DType::F16, &[6])), &f32s(&[2]));
    });
    refused("one shape", || expand(&f32s(&[6]), Some(&f32s(&[5])), &f32s(&[2])));
    let compress = |dst: &Owned, src: &Owned| {
        with(dst, [src], |dst, [src]| kernels::compress(dst, src, &bits));
    };
    compress(&f32s(&[2]), &f32s(&[6]));
    refused("just as many", || compress(&f32s(&[1]), &f32s(&[6])));
    refused("one bit an element", || compress(&f32s(&[2]), &f32s(&[7])));

    let select = |condition: &Owned, a: &Owned, b: &Owned| {
        with(&f32s(&[6]), [condition, a, b], |dst, [condition, a, b]| {
            kernels::blend(dst, condition, a, Some(b));
        });
    };
    select(&mask, &f32s(&[6]), &f32s(&[6]));
    refused("true or false", || select(&f32s(&[6]), &f32s(&[6]), &f32s(&[6])));
    refused("one size", || select(&mask, &f32s(&[6]), &Owned::new(DType::F16, &[6])));
    refused("one shape", || select(&mask, &f32s(&[5]), &f32s(&[6])));
}

#[test]
fn combs_are_inside_of_their_rows() {
    let interleave = |base: &Owned, source: &Owned, comb| {
        with(&f32s(&[4, 6]), [base, source], |dst, [base, source]| {
            kernels::interleave(dst, base, source, comb);
        });
    };
    let comb = Comb { row: 6, start: 0, step: 2, width: 1, teeth: 3 };
    interleave(&f32s(&[4, 6]), &f32s(&[4, 3]), comb);
    refused("rows", || {
        interleave(&f32s(&[4, 6]), &f32s(&[4, 4]), Comb { teeth: 4, ..comb });
    });
    refused("one element a place", || interleave(&f32s(&[4, 6]), &f32s(&[4, 2]), comb));
    refused("a base of one size", || interleave(&f32s(&[4, 5]), &f32s(&[4, 3]), comb));
    refused("one size", || interleave(&Owned::new(DType::F16, &[4, 6]), &f32s(&[4, 3]), comb));
}

#[test]
fn pointwise_kernels_have_one_shape_and_dtype() {
    let (x, wide, long) = (f32s(&[4]), Owned::new(DType::F64, &[4]), f32s(&[5]));
    let add = |dst: &Owned, a: &Owned| {
        with(dst, [a], |dst, [a]| kernels::arithmetic(Arithmetic::Add, dst, Some(a), a));
    };
    add(&f32s(&[4]), &x);
    refused("one dtype", || add(&wide, &x));
    refused("one shape", || add(&f32s(&[4]), &long));
    let equal = |dst: &Owned, a: &Owned| {
        with(dst, [a], |dst, [a]| kernels::compare(Comparison::Equal, dst, a, a));
    };
    equal(&Owned::new(DType::Bool, &[4]), &x);
    refused("true or false", || equal(&f32s(&[4]), &x));
    let negative = |dst: &Owned| {
        with(dst, [&x], |dst, [a]| kernels::unary(Unary::Negative, dst, a));
    };
    negative(&f32s(&[4]));
    refused("one dtype", || negative(&wide));
    refused("one shape", || with(&f32s(&[4]), [&long], |dst, [a]| kernels::cast(dst, a)));
    refused("one shape", || with(&f32s(&[4]), [&long], |dst, [a]| kernels::copy(dst, a)));
    refused("one size", || with(&wide, [&x], |dst, [a]| kernels::copy(dst, a)));
    refused("one value an element", || x.write(|dst| kernels::store(dst, &[0f32; 3])));
    refused("one value an element", || x.write(|dst| kernels::store(dst, &[0f64; 4])));
    refused("elements of this type", || x.read(kernels::load::<f64>).is_ok());
}

#[test]
fn folds_choose_for_each_axis_and_have_the_right_result() {
    let fold = |dst: &Owned, over: &[bool]| {
        with(dst, [&f32s(&[3, 4])], |dst, [src]| {
            kernels::fold(Fold::Sum, dst, src, over).expect("small");
        });
    };
    fold(&f32s(&[3]), &[false, true]);
    refused("a choice for each axis", || fold(&f32s(&[3]), &[false, true, true]));
    refused("one shape", || fold(&f32s(&[2]), &[false, true]));
    refused("the result's dtype", || fold(&Owned::new(DType::F64, &[3]), &[false, true]));
}
