//! Tests of the gradient rules of the operations, to second order.

use inlay::{
    Complex32, DType, DiagonalScatter, GradOptions, Item, PutAlongAxis, Reduce, Result, Scatter,
    SelectScatter, Slice, SliceScatter, Tensor, set_num_threads,
};

#[cfg(feature = "gpu")]
use super::same_on_gpu;
use super::{Function, REDUCTIONS, check, gradients, ints, leaves, random, seen};
use crate::support::Rng;
use crate::support::device::threads;

/// Runs tests of this module again, on both devices.
macro_rules! same_on_gpu {
    ($($test:ident),* $(,)?) => {
        #[cfg(feature = "gpu")]
        mod gpu {
            $(#[test] fn $test() { super::same_on_gpu(super::$test); })*
        }
    };
}
same_on_gpu!(
    scatter_differentiates,
    put_along_axis_differentiates,
    products_have_one_gradient_recorded_or_not,
    elements_have_the_gradients_of_rows_of_one_element,
    regions_and_masks_differentiate,
    the_rest_differentiates,
);

#[test]
fn scatter_differentiates() {
    let rng = &mut Rng(1);
    for (axis, shape, rows) in
        [(0, vec![4, 2], vec![5, 2]), (1, vec![2, 4], vec![2, 6]), (-1, vec![4], vec![5])]
    {
        let (x, u) = (random(rng, &shape), random(rng, &rows));
        let index = || ints(&[2, 0, -2, 0, 2]);
        let overwrite = Scatter::overwrite().axis(axis);
        let f = move |t: &[Tensor]| t[0].multiply(&t[0])?.scatter(&index(), &t[1], overwrite);
        check("scatter", vec![x.clone(), u.clone()], Box::new(f));
        for reduce in REDUCTIONS {
            for include in [false, true] {
                let how = Scatter::reduce(reduce).include_self(include).axis(axis);
                let index = || ints(&[2, 0, -2, 0, 2]);
                let f = move |t: &[Tensor]| t[0].scatter(&index(), &t[1].multiply(&t[1])?, how);
                check(&format!("scatter {how:?}"), vec![x.clone(), u.clone()], Box::new(f));
            }
        }
    }
    let single = Tensor::from_slice(&[-1i32], ()).unwrap();
    let how = Scatter::reduce(Reduce::Mul).include_self(true);
    let f = move |t: &[Tensor]| t[0].scatter(&single, &t[1], how);
    check("scatter at a 0-D index", vec![random(rng, &[3, 2]), random(rng, &[2])], Box::new(f));
}

#[test]
fn put_along_axis_differentiates() {
    let rng = &mut Rng(2);
    let index = Tensor::from_slice(&[1i64, 0, 1, -1, 1, 1], &[2, 3]).unwrap();
    for broadcast in [false, true] {
        let shape: &[usize] = if broadcast { &[2, 2] } else { &[3, 2] };
        let values: &[usize] = if broadcast { &[1, 3] } else { &[2, 4] };
        let (x, v) = (random(rng, shape), random(rng, values));
        let index = index.clone();
        let at = index.clone();
        let how = PutAlongAxis::assign(1).broadcast(broadcast);
        let f = move |t: &[Tensor]| t[0].put_along_axis(&at, &t[1], how);
        check("put_along_axis", vec![x.clone(), v.clone()], Box::new(f));
        for reduce in REDUCTIONS {
            for include in [false, true] {
                let how =
                    PutAlongAxis::reduce(1, reduce).include_self(include).broadcast(broadcast);
                let at = index.clone();
                let f = move |t: &[Tensor]| t[0].put_along_axis(&at, &t[1], how);
                // A broadcast value ties with itself. The gradient of amax is shared by ties, but a
                // central difference moves all of them together.
                let ties = broadcast && matches!(reduce, Reduce::Amax | Reduce::Amin);
                if !ties {
                    check(&format!("put {how:?}"), vec![x.clone(), v.clone()], Box::new(f));
                }
            }
        }
        let at = index.clone();
        let f = move |t: &[Tensor]| {
            let taken = t[0].take_along_axis(&at, 1, broadcast)?;
            taken.multiply(&taken)
        };
        check("take_along_axis", vec![x], Box::new(f));
    }
}

/// The bits of the gradients of the loss, for every number of threads.
fn gradient_bits(f: &Function, inputs: &[Tensor], create_graph: bool) -> Vec<Vec<u64>> {
    let of = |threads: usize| {
        set_num_threads(threads);
        let found = gradients(f, &leaves(inputs), create_graph).unwrap();
        let bits = |g: Tensor| match g.dtype() {
            DType::C64 => {
                let parts = g.to_vec::<Complex32>().unwrap();
                // The sign of a zero depends on the algorithm. Adding 0 converts -0 to 0.
                let parts = parts.iter().flat_map(|z| [z.re + 0.0, z.im + 0.0]);
                parts.map(|x| f64::from(x).to_bits()).collect()
            }
            _ => {
                let wide = g.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
                wide.into_iter().map(f64::to_bits).collect::<Vec<_>>()
            }
        };
        found.into_iter().map(bits).collect::<Vec<_>>()
    };
    let one = of(1);
    threads().skip(1).for_each(|threads| assert!(of(threads) == one, "{threads} threads"));
    seen(one.clone());
    one
}

/// A gradient that is not recorded is computed by another algorithm. Both must give the same bits:
/// with few and many (2048) factors per place, along rows and across them (64 lanes), with sparse
/// indices (8 places per entry), and with factors of 0.
#[test]
fn products_have_one_gradient_recorded_or_not() {
    let mut rng = Rng(5);
    let half = Tensor::from_slice(&[0.5], ()).unwrap();
    let mut near_one = |shape: [usize; 2], dtype| {
        let x = random(&mut rng, &shape).multiply(&half).unwrap().add(&half).unwrap();
        let zero = SliceScatter::new(0, Slice::new(0, 1, 1)).and(1, Slice::new(0, 1, 1));
        let nothing = Tensor::zeros(&[1, 1], x.dtype()).unwrap();
        x.slice_scatter(&nothing, &zero).unwrap().cast(dtype).unwrap()
    };
    let mut choice = Rng(6);
    let sizes = [(7, 20, 3), (300, 36, 65), (1, 2048, 3), (1, 2049, 2), (2, 4099, 64)];
    for (places, entries, columns) in sizes {
        let index: Vec<i64> = (0..entries).map(|_| choice.below(places) as i64).collect();
        for (axis, include) in [(0, true), (1, false), (1, true)] {
            let shape = |n| if axis == 0 { [n, columns] } else { [columns, n] };
            let index = ints(&index);
            let f: Function = Box::new(move |t| {
                let how = Scatter::reduce(Reduce::Mul).axis(axis).include_self(include);
                t[0].scatter(&index, &t[1], how)
            });
            for dtype in [DType::F64, DType::F32, DType::C64, DType::F16] {
                let inputs = [near_one(shape(places), dtype), near_one(shape(entries), dtype)];
                let [once, again] = [false, true].map(|again| gradient_bits(&f, &inputs, again));
                assert!(once == again, "{places} {entries} {axis} {dtype}");
            }
        }
    }
    for (shape, axes) in [([40, 70], vec![0]), ([40, 70], vec![1]), ([60, 40], vec![0, 1])] {
        let f: Function = Box::new(move |t| t[0].prod(&axes, true));
        for dtype in [DType::F64, DType::BF16] {
            let inputs = [near_one(shape, dtype)];
            let [once, again] = [false, true].map(|again| gradient_bits(&f, &inputs, again));
            assert!(once == again, "prod {shape:?} {dtype}");
        }
    }
}

/// The gradient of `put_along_axis` equals that of a scatter with all elements in one row.
#[test]
fn elements_have_the_gradients_of_rows_of_one_element() {
    let mut rng = Rng(8);
    let (rows, columns, entries) = (90, 70, 130);
    for (axis, shape, part) in
        [(0, [rows, columns], [entries, columns]), (1, [columns, rows], [columns, entries])]
    {
        let inputs = [random(&mut rng, &shape), random(&mut rng, &part)];
        let named: Vec<i64> =
            (0..part[0] * part[1]).map(|_| rng.below(shape[axis]) as i64).collect();
        let flat = named.iter().enumerate().map(|(k, &place)| match axis {
            0 => place * columns as i64 + (k % columns) as i64,
            _ => (k / entries * rows) as i64 + place,
        });
        let flat = ints(&flat.collect::<Vec<_>>());
        let index = Tensor::from_slice(&named, &part).unwrap();
        let combines = REDUCTIONS.into_iter().flat_map(|reduce| [(reduce, false), (reduce, true)]);
        for combine in std::iter::once(None).chain(combines.map(Some)) {
            let (put, scatter) = match combine {
                None => (PutAlongAxis::assign(axis as i64), Scatter::overwrite()),
                Some((reduce, include)) => (
                    PutAlongAxis::reduce(axis as i64, reduce).include_self(include),
                    Scatter::reduce(reduce).include_self(include),
                ),
            };
            let (index, flat) = (index.clone(), flat.clone());
            let along: Function =
                Box::new(move |t| t[0].put_along_axis(&index, &t[1], put.broadcast(false)));
            let by_rows: Function = Box::new(move |t| {
                let rows = t[0].reshape(&[-1])?.scatter(&flat, &t[1].reshape(&[-1])?, scatter)?;
                rows.reshape(&t[0].shape().iter().map(|&n| n as i64).collect::<Vec<_>>())
            });
            let [a, b] = [along, by_rows].map(|f| gradient_bits(&f, &inputs, false));
            assert!(a == b, "{axis} {combine:?}");
        }
    }
}

#[test]
fn regions_and_masks_differentiate() {
    let rng = &mut Rng(3);
    let square = |t: &Tensor| t.multiply(t);
    let at = SliceScatter::new(0, Slice::new(None, None, -2)).and(-1, Slice::new(1, None, 1));
    let f = move |t: &[Tensor]| square(&t[0])?.slice_scatter(&square(&t[1])?, &at);
    check("slice_scatter", vec![random(rng, &[4, 3]), random(rng, &[2, 2])], Box::new(f));
    let at = DiagonalScatter { offset: 1, axis1: 0, axis2: 2 };
    let f = move |t: &[Tensor]| square(&t[0])?.diagonal_scatter(&square(&t[1])?, at);
    check("diagonal_scatter", vec![random(rng, &[3, 2, 3]), random(rng, &[2, 2])], Box::new(f));
    let at = SelectScatter { axis: 1, index: -1 };
    let f = move |t: &[Tensor]| square(&t[0])?.select_scatter(&square(&t[1])?, at);
    check("select_scatter", vec![random(rng, &[2, 3]), random(rng, &[2])], Box::new(f));
    let f = |t: &[Tensor]| {
        let part =
            t[0].index(&[Item::At(1), Item::NewAxis, Item::Slice(Slice::new(None, None, -1))])?;
        part.multiply(&part)
    };
    check("getitem", vec![random(rng, &[2, 3])], Box::new(f));

    let mask = Tensor::from_slice(&[true, false, true], &[3]).unwrap();
    let m = mask.clone();
    let f = move |t: &[Tensor]| square(&t[0])?.masked_scatter(&m, &square(&t[1])?);
    check("masked_scatter", vec![random(rng, &[2, 3]), random(rng, &[3, 2])], Box::new(f));
    let m = mask.clone();
    let f = move |t: &[Tensor]| square(&t[0])?.masked_fill(&m, &square(&t[1])?);
    check("masked_fill", vec![random(rng, &[2, 3]), random(rng, &[])], Box::new(f));
    let m = mask.clone();
    let f = move |t: &[Tensor]| square(&t[0].masked_select(&m)?);
    check("masked_select", vec![random(rng, &[2, 3])], Box::new(f));
    let f = move |t: &[Tensor]| mask.where_(&square(&t[0])?, &square(&t[1])?);
    check("where", vec![random(rng, &[2, 1]), random(rng, &[3])], Box::new(f));
    let f = move |t: &[Tensor]| square(&t[0])?.index_fill(&ints(&[0, -1, 0]), 1, &square(&t[1])?);
    check("index_fill", vec![random(rng, &[2, 3]), random(rng, &[])], Box::new(f));
    let f = move |t: &[Tensor]| square(&t[0].index_select(&ints(&[0, -1, 0]), 1)?);
    check("index_select", vec![random(rng, &[2, 3])], Box::new(f));
    let f =
        move |t: &[Tensor]| square(&t[0])?.tril(0)?.add(&square(&t[0])?.triu(1)?.multiply(&t[0])?);
    check("tril and triu", vec![random(rng, &[3, 3])], Box::new(f));
}

#[test]
fn the_rest_differentiates() {
    let rng = &mut Rng(4);
    let f = |t: &[Tensor]| t[0].add(&t[1])?.multiply(&t[0].subtract(&t[1])?)?.divide(&t[1]);
    check("arithmetic", vec![random(rng, &[2, 3]), random(rng, &[3])], Box::new(f));
    type Reduction = fn(&Tensor, Option<&[i64]>, bool) -> Result<Tensor>;
    let folds: [(&str, Reduction); 5] = [
        ("sum", |x, axes, keepdim| x.sum(axes, keepdim)),
        ("mean", |x, axes, keepdim| x.mean(axes, keepdim)),
        ("prod", |x, axes, keepdim| x.prod(axes, keepdim)),
        ("amax", |x, axes, keepdim| x.amax(axes, keepdim)),
        ("amin", |x, axes, keepdim| x.amin(axes, keepdim)),
    ];
    for (name, fold) in folds {
        for axes in [None, Some(&[0i64][..]), Some(&[2, 0][..])] {
            let axes = axes.map(<[i64]>::to_vec);
            let f = move |t: &[Tensor]| fold(&t[0].multiply(&t[0])?, axes.as_deref(), false);
            check(name, vec![random(rng, &[2, 3, 2])], Box::new(f));
        }
    }
    let f = |t: &[Tensor]| {
        let x = t[0].transpose(&[1, 0])?.reshape(&[6])?.broadcast_to(&[2, 6])?;
        x.multiply(&x)
    };
    check("shapes", vec![random(rng, &[2, 3])], Box::new(f));
    let f = |t: &[Tensor]| {
        let joined = Tensor::concat(&[&t[0], &t[1]], 1)?;
        Tensor::stack(&[&joined, &joined.multiply(&joined)?], 1)
    };
    check("concat and stack", vec![random(rng, &[2, 1]), random(rng, &[2, 2])], Box::new(f));
    let f = |t: &[Tensor]| {
        t[0].index_put(&[&ints(&[0, 1, 0]), &ints(&[1, -1, 1])], &t[1].multiply(&t[1])?, false)
    };
    check("index_put", vec![random(rng, &[2, 2]), random(rng, &[3])], Box::new(f));
    let f = |t: &[Tensor]| {
        let index = Tensor::from_slice(&[0i64, 1, 1, 1, 0, 1], &[3, 2])?;
        t[0].multiply(&t[0])?.scatter_nd_add(&index, &t[1].multiply(&t[1])?)
    };
    check("scatter_nd_add", vec![random(rng, &[2, 2]), random(rng, &[3])], Box::new(f));
}

/// Only the last entry that names a place gets the gradient of the place. The test uses contiguous
/// and strided lanes, numbers of lanes around the block size of 32, and a long axis.
#[test]
fn the_last_entry_of_a_place_has_its_gradient() {
    let rng = &mut Rng(6);
    for (shape, axis, entries) in [
        ([40, 31], 0, 50),
        ([40, 32], 0, 50),
        ([40, 70], 0, 9),
        ([70, 40], 1, 50),
        ([9000, 40], 0, 20),
        ([200_000, 3], 0, 20),
    ] {
        let mut part = shape;
        part[axis] = entries;
        let count = part[0] * part[1];
        // There are few places, so most entries are overwritten by later ones.
        let size = shape[axis] as i64;
        let index: Vec<i64> =
            (0..count).map(|_| rng.between(0, 11) - size * rng.between(0, 1)).collect();
        let weights: Vec<f32> = (0..shape[0] * shape[1]).map(|k| k as f32).collect();
        let mut expected = vec![0.0; count];
        for lane in 0..part[1 - axis] {
            let at = |j: usize, columns: usize| match axis {
                0 => j * columns + lane,
                _ => lane * columns + j,
            };
            for j in 0..entries {
                let place = |j: usize| index[at(j, part[1])].rem_euclid(size);
                if (j + 1..entries).all(|later| place(later) != place(j)) {
                    expected[at(j, part[1])] = weights[at(place(j) as usize, shape[1])];
                }
            }
        }
        let x = Tensor::zeros(&shape, DType::F32).unwrap();
        let values = Tensor::zeros(&part, DType::F32).unwrap().with_gradient().unwrap();
        let index = Tensor::from_slice(&index, &part).unwrap();
        let weights = Tensor::from_slice(&weights, &shape).unwrap();
        for threads in threads() {
            set_num_threads(threads);
            let how = PutAlongAxis::assign(axis as i64).broadcast(false);
            let total = x.put_along_axis(&index, &values, how).unwrap();
            let total = total.multiply(&weights).unwrap().sum(None, false).unwrap();
            let found =
                Tensor::grad_of(&[&total], &[&values], &[], GradOptions::default()).unwrap();
            assert_eq!(found[0].as_ref().unwrap().to_vec::<f32>().unwrap(), expected);
        }
    }
}
