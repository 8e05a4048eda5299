//! The gradient of a product's factors: that of the product times all other factors.
//!
//! Nothing is divided: products of the factors before and of those after each one, in twice the
//! precision, place by place.

use std::mem::MaybeUninit;

use half::{bf16, f16};
use inlay_core::Result;
use num_complex::{Complex32, Complex64};

use super::grouped::each_row;
use crate::kernels::copy::copy;
use crate::kernels::groups::{Groups, Members};
use crate::kernels::positions::{Positions, Shared, is_inside};
use crate::kernels::reducer::each;
use crate::memory::{Plain, Scratch};
use crate::number::{Number, dispatch};
use crate::walk::{Run, Walk};
use crate::{Dst, Src, threads};

/// Products before each factor that are kept while those after it are made. Up to so many factors
/// of a place, they stay in the first cache; else there is one for every element.
const KEPT: usize = 2048;

/// Elements of a row that are multiplied side by side.
const LANES: usize = 64;

/// A number and one of twice its precision, if there is one.
trait Precise: Number {
    type Wide: Plain + std::ops::Mul<Output = Self::Wide>;
    const ONE: Self::Wide;
    fn up(self) -> Self::Wide;
    fn down(wide: Self::Wide) -> Self;
    /// The product, as a sum with 0, which a chain of such products is made of.
    fn times(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// `a` times the conjugate of `b`.
    fn times_conjugate(a: Self::Wide, b: Self::Wide) -> Self::Wide;
}

macro_rules! precise {
    ($($t:ty => $wide:ty, $one:expr, $zero:expr, $up:expr, $down:expr, $conj:expr);* $(;)?) => { $(
        impl Precise for $t {
            type Wide = $wide;
            const ONE: $wide = $one;
            #[inline(always)]
            fn up(self) -> $wide { ($up)(self) }
            #[inline(always)]
            fn down(wide: $wide) -> $t { ($down)(wide) }
            #[inline(always)]
            fn times(a: $wide, b: $wide) -> $wide { $zero + a * b }
            #[inline(always)]
            fn times_conjugate(a: $wide, b: $wide) -> $wide { a * ($conj)(b) }
        }
    )* };
}
precise!(
    f16 => f32, 1.0, 0.0, f16::to_f32, f16::from_f32, |x| x;
    bf16 => f32, 1.0, 0.0, bf16::to_f32, bf16::from_f32, |x| x;
    f32 => f64, 1.0, 0.0, f64::from, |x| x as f32, |x| x;
    f64 => f64, 1.0, 0.0, |x| x, |x| x, |x| x;
    Complex32 => Complex64, Complex64::new(1.0, 0.0), Complex64::new(0.0, 0.0),
        |x: Complex32| Complex64::new(x.re.into(), x.im.into()),
        |x: Complex64| Complex32::new(x.re as f32, x.im as f32), |x: Complex64| x.conj();
    Complex64 => Complex64, Complex64::new(1.0, 0.0), Complex64::new(0.0, 0.0),
        |x| x, |x| x, |x: Complex64| x.conj();
);

/// A product's gradient, its factors, and the walk over rows of destination, factors, gradient and
/// what else is a factor.
struct Factors<'a> {
    /// The first is the destination's, which may be written.
    sources: [Src<'a>; 4],
    rows: Walk<4>,
    steps: [isize; 4],
    index: &'a Positions,
    groups: Groups,
    entries: usize,
}

/// `dst[i] = g[index[i]]` times the conjugate of the product of all `x[j]` with `j != i` that name
/// the same place, and of what `first` has there; along `axis`, for floats and complex numbers.
///
/// # Errors
/// No memory for what is kept.
pub fn products_of_others(
    dst: Dst<'_>,
    g: Src<'_>,
    x: Src<'_>,
    first: Option<Src<'_>>,
    axis: usize,
    index: &Positions,
) -> Result<()> {
    assert_eq!(dst.layout().shape(), x.layout().shape(), "a gradient for each factor");
    let factors = Factors::new(dst, [x, g, first.unwrap_or(g)], axis, index)?;
    dispatch!(field dst.dtype(), T => match factors.is_narrow() {
        true => factors.others::<T, 1>(first.is_some()),
        false => factors.others::<T, LANES>(first.is_some()),
    },
        else unreachable!("inference refuses gradients of {}", dst.dtype()))
}

/// `dst = g` times the conjugate of the product of all `x[i]` that name the place, along `axis`.
///
/// # Errors
/// No memory for groups.
pub fn products_of_all(
    dst: Dst<'_>,
    g: Src<'_>,
    x: Src<'_>,
    axis: usize,
    index: &Positions,
) -> Result<()> {
    assert_eq!(dst.layout().shape(), g.layout().shape(), "a gradient for each place");
    let factors = Factors::new(dst, [x, g, g], axis, index)?;
    copy(dst, g);
    dispatch!(field dst.dtype(), T => match factors.is_narrow() {
        true => factors.all::<T, 1>(),
        false => factors.all::<T, LANES>(),
    },
        else unreachable!("inference refuses gradients of {}", dst.dtype()));
    Ok(())
}

impl<'a> Factors<'a> {
    fn new(dst: Dst<'a>, sources: [Src<'a>; 3], axis: usize, index: &'a Positions) -> Result<Self> {
        for src in &sources {
            dst.expect_apart(src);
            assert_eq!(dst.dtype(), src.dtype(), "one dtype");
        }
        let [x, g, first] = sources;
        let sources = [dst.as_src(), x, g, first];
        let layouts = sources.map(|src| src.layout());
        let steps = layouts.map(|layout| layout.strides()[axis]);
        let rows = Walk::of_rows(layouts, axis);
        let [_, entries, places, others] = layouts.map(|layout| layout.shape()[axis]);
        let named = index.values().iter().all(|&at| is_inside(at, places));
        assert!(index.values().len() == entries && named, "a place for each row");
        assert_eq!(places, others, "as many places");
        let mut groups = Groups::with_capacity(entries, places, false)?;
        groups.fill_from(index, |entry| entry);
        Ok(Factors { sources, rows, steps, index, groups, entries })
    }

    /// Whether elements are multiplied one by one: those that lie further apart than rows are rows of
    /// their own.
    fn is_narrow(&self) -> bool {
        let apart = self.rows.run_strides()[1].unsigned_abs() > self.steps[1].unsigned_abs();
        apart || self.rows.run_len() == 1
    }

    /// Calls `visit` with the elements of every group that are multiplied side by side: where they
    /// begin in the walk, how many they are, their place and its entries.
    fn each<T: Precise, const LANES: usize>(
        &self,
        visit: impl Fn(&Run<4>, usize, Members<'_>) + Sync,
    ) {
        let Factors { rows, groups, entries, .. } = self;
        let named = |entry: usize| self.index.values()[entry] as usize;
        let threads = threads::num_threads();
        let columns = if groups.largest() > entries / threads { threads } else { 1 };
        let cost = 4 * size_of::<T>() * (1 + entries / groups.len().max(1));
        let cut = |part: usize, parts: usize| groups.cut(part, parts);
        each_row(rows, &cut, size_of::<T>(), cost, columns, |run, group| {
            let (place, members) = (groups.place(group, named), groups.members(group));
            if members.len() == 0 {
                return;
            }
            let width = (KEPT / members.len()).clamp(1, LANES);
            for start in (0..run.len).step_by(width) {
                let by = |n: usize| run.offsets[n] + start as isize * run.strides[n];
                let part = Run {
                    position: run.position + start,
                    offsets: std::array::from_fn(by),
                    len: (run.len - start).min(width),
                    ..run
                };
                visit(&part, place, members);
            }
        });
    }

    /// Where the elements of a run lie in a row of a source, and how far apart.
    fn at(&self, which: usize, run: &Run<4>, row: usize) -> (*const u8, isize) {
        let by = run.offsets[which] + row as isize * self.steps[which];
        (self.sources[which].origin().wrapping_offset(by), run.strides[which])
    }

    fn others<T: Precise, const LANES: usize>(&self, own: bool) -> Result<()> {
        let width = self.rows.len();
        let large = self.groups.largest() > KEPT;
        let spare = if large { self.entries.saturating_mul(width) } else { 0 };
        let mut spare = Scratch::<T::Wide>::new(spare)?;
        let spare = Shared(spare.as_mut_ptr());
        self.each::<T, LANES>(|run, place, members| {
            let (n, count) = (run.len, members.len());
            let mut kept = [MaybeUninit::<T::Wide>::uninit(); KEPT];
            let kept = kept.as_mut_ptr().cast::<T::Wide>();
            // Those that don't fit are kept at their entry and element.
            let kept = |k: usize| match count > KEPT {
                true => spare.get().wrapping_add(members.get(k) * width + run.position),
                false => kept.wrapping_add(k * n),
            };
            let mut product = [T::ONE; LANES];
            // SAFETY: the run lies inside of the rows, the place and the entries inside of their
            // axes; there is room for `n` products of each entry, which are written before they are
            // read; and no other thread has these elements.
            unsafe {
                if own {
                    let (from, stride) = self.at(3, run, place);
                    each::<T>(n, (from, stride), |k, value| product[k] = value.up());
                }
                for member in 0..count {
                    let before = kept(member);
                    each::<T>(n, self.at(1, run, members.get(member)), |k, value| {
                        before.add(k).write(product[k]);
                        product[k] = T::times(value.up(), product[k]);
                    });
                }
                let mut gradient = [T::ONE; LANES];
                each::<T>(n, self.at(2, run, place), |k, value| gradient[k] = value.up());
                product = [T::ONE; LANES];
                for member in (0..count).rev() {
                    let (entry, before) = (members.get(member), kept(member));
                    let (to, stride) = self.at(0, run, entry);
                    each::<T>(n, self.at(1, run, entry), |k, value| {
                        let others = before.add(k).read() * product[k];
                        let grad = T::down(T::times_conjugate(gradient[k], others));
                        to.cast_mut().offset(k as isize * stride).cast::<T>().write_unaligned(grad);
                        product[k] = T::times(value.up(), product[k]);
                    });
                }
            }
        });
        Ok(())
    }

    fn all<T: Precise, const LANES: usize>(&self) {
        self.each::<T, LANES>(|run, place, members| {
            let n = run.len;
            let mut product = [T::ONE; LANES];
            // SAFETY: as for `others`.
            unsafe {
                each::<T>(n, self.at(1, run, members.get(0)), |k, value| product[k] = value.up());
                for member in 1..members.len() {
                    each::<T>(n, self.at(1, run, members.get(member)), |k, value| {
                        product[k] = product[k] * value.up();
                    });
                }
                let (to, stride) = self.at(0, run, place);
                each::<T>(n, self.at(2, run, place), |k, value| {
                    let grad = T::down(T::times_conjugate(value.up(), product[k]));
                    to.cast_mut().offset(k as isize * stride).cast::<T>().write_unaligned(grad);
                });
            }
        });
    }
}
