//! Makes the same calls on strided and on contiguous tensors of the same values, and compares the
//! bits. Contiguous ones are compared with naive implementations elsewhere.

use inlay::{DType, PutAlongAxis, Reduce, Scatter, Slice, SliceScatter, Tensor, set_num_threads};
use inlay_cpu::tuning::{GRAIN, TILE};

use super::threads::{bytes, values};
use crate::support::{Rng, tuning};

/// Views of one shape with the same values in several layouts: contiguous, transposed, reversed,
/// and every other element of a row.
fn views(x: &Tensor) -> Vec<(&'static str, Tensor)> {
    let (rows, columns) = (x.shape()[0], x.shape()[1]);
    let turned = x.transpose(&[1, 0]).unwrap().copy().unwrap().transpose(&[1, 0]).unwrap();
    let reverse = |x: &Tensor| {
        let back = Slice { start: None, stop: None, step: -1 };
        x.slice(&SliceScatter::new(0, back)).unwrap().slice(&SliceScatter::new(1, back)).unwrap()
    };
    let reversed = reverse(&reverse(x).copy().unwrap());
    let wide = Tensor::zeros(&[rows, 2 * columns], x.dtype()).unwrap();
    let every_other = SliceScatter::new(1, Slice { start: None, stop: None, step: 2 });
    let gaps = wide.slice_scatter(x, &every_other).unwrap().slice(&every_other).unwrap();
    vec![("contiguous", x.clone()), ("turned", turned), ("reversed", reversed), ("gaps", gaps)]
}

/// Calls `results` with operands in every pair of layouts, for shapes whose sides are not multiples
/// of tiles, with boxes of the usual size and with small ones.
fn check(results: impl Fn(&Tensor, &Tensor, &Tensor) -> Vec<Tensor>) {
    let _released = tuning::released();
    let _grain = GRAIN.set(1 << 10);
    let mut rng = Rng(83);
    let usual = TILE.get();
    for (dtype, shape) in [
        (DType::F32, [130, 97]),
        (DType::F64, [9, 1700]),
        (DType::U8, [1700, 40]),
        (DType::C64, [64, 67]),
        (DType::F16, [300, 33]),
    ] {
        let x = values(&mut rng, dtype, &shape);
        let y = values(&mut rng, dtype, &shape);
        let mask = values(&mut rng, DType::U8, &shape).less_than(50).unwrap();
        for (threads, tile) in [(1, usual), (3, 4 << 10), (64, usual), (64, 1)] {
            let _tile = TILE.set(tile);
            set_num_threads(threads);
            let results = |x: &Tensor, y: &Tensor, mask: &Tensor| -> Vec<Vec<u8>> {
                results(x, y, mask).iter().map(bytes).collect()
            };
            let expected = results(&x, &y, &mask);
            for (first, x) in views(&x) {
                for ((second, y), (_, mask)) in views(&y).into_iter().zip(views(&mask)) {
                    let found = results(&x, &y, &mask);
                    let other = found.iter().zip(&expected).position(|(found, want)| found != want);
                    let call = format!("{first} and {second} {dtype} {shape:?}, {threads} threads");
                    assert_eq!(other, None, "{call} in tiles of {tile}");
                }
            }
        }
    }
}

#[test]
fn strided_operands_of_arithmetic_give_the_bits_of_contiguous_ones() {
    check(|x, y, mask| {
        let in_place = x.copy().unwrap();
        in_place.add_(y).unwrap();
        vec![
            x.add(y).unwrap(),
            x.multiply(y).unwrap(),
            x.equal(y).unwrap(),
            x.negative().unwrap(),
            x.cast(DType::C128).unwrap(),
            mask.where_(x, y).unwrap(),
            in_place,
        ]
    });
}

#[test]
fn strided_operands_of_masks_give_the_bits_of_contiguous_ones() {
    check(|x, y, mask| {
        let few = mask.i((3.., ..)).unwrap().masked_fill(&mask.i((3.., ..)).unwrap(), false);
        let in_place = x.copy().unwrap();
        in_place.masked_scatter_(mask, y).unwrap();
        vec![
            x.masked_fill(mask, 7).unwrap(),
            x.masked_select(mask).unwrap(),
            x.i((3.., ..)).unwrap().masked_select(&few.unwrap()).unwrap(),
            x.masked_scatter(mask, y).unwrap(),
            in_place,
        ]
    });
}

#[test]
fn strided_operands_of_reductions_give_the_bits_of_contiguous_ones() {
    check(|x, _, _| {
        let mut results = vec![x.sum(None, false).unwrap(), x.mean(None, false).unwrap()];
        for axis in [0, 1] {
            results.push(x.sum(axis, false).unwrap());
            results.push(x.prod(axis, false).unwrap());
            if x.dtype() != DType::C64 {
                results.push(x.amax(axis, false).unwrap());
            }
        }
        results
    });
}

#[test]
fn strided_operands_of_gathers_and_scatters_give_the_bits_of_contiguous_ones() {
    check(|x, y, mask| {
        let mut results = vec![];
        for axis in [0i64, 1] {
            let size = x.shape()[axis as usize] as i64;
            let index = Tensor::arange(0, size, 1, DType::I64).unwrap();
            let index = index.multiply(&index).unwrap();
            let index: Vec<i64> = index.to_vec::<i64>().unwrap().iter().map(|k| k % size).collect();
            let index = Tensor::from_slice(&index, &[index.len()]).unwrap();
            // An index of the strides of the mask.
            let along = mask.cast(DType::I64).unwrap().multiply(size - 1).unwrap();
            let turned = along.transpose(&[1, 0]).unwrap().copy().unwrap();
            let turned = turned.transpose(&[1, 0]).unwrap();
            results.push(x.index_select(&index, axis).unwrap());
            results.push(x.take_along_axis(&along, axis, false).unwrap());
            results.push(x.take_along_axis(&turned, axis, false).unwrap());
            results.push(x.scatter(&index, y, Scatter::overwrite().axis(axis)).unwrap());
            let sum = Scatter::reduce(Reduce::Sum).axis(axis);
            results.push(x.scatter(&index, y, sum).unwrap());
            results.push(x.scatter(&index, y, sum.include_self(true)).unwrap());
            results.push(x.put_along_axis(&turned, y, PutAlongAxis::assign(axis)).unwrap());
            let sum = PutAlongAxis::reduce(axis, Reduce::Sum);
            results.push(x.put_along_axis(&along, y, sum).unwrap());
            let in_place = x.copy().unwrap();
            in_place.scatter_(&index, y, Scatter::reduce(Reduce::Sum).axis(axis)).unwrap();
            results.push(in_place);
        }
        results
    });
}

#[test]
fn strided_tensors_of_three_axes_give_the_bits_of_contiguous_ones() {
    let _released = tuning::released();
    let mut rng = Rng(89);
    let x = values(&mut rng, DType::F32, &[17, 40, 33]);
    let mask = values(&mut rng, DType::U8, &[17, 40, 33]).less_than(30).unwrap();
    let results = |x: &Tensor, mask: &Tensor| -> Vec<Vec<u8>> {
        let calls = [
            x.add(x).unwrap(),
            x.masked_select(mask).unwrap(),
            x.masked_scatter(mask, x).unwrap(),
            x.sum(1, false).unwrap(),
            x.sum(None, false).unwrap(),
        ];
        calls.iter().map(bytes).collect()
    };
    let expected = results(&x, &mask);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut back = [0; 3];
        order.iter().enumerate().for_each(|(k, &axis)| back[axis as usize] = k as i64);
        let turn =
            |x: &Tensor| x.transpose(&order).unwrap().copy().unwrap().transpose(&back).unwrap();
        for tile in [TILE.get(), 8 << 10, 1] {
            let _tile = TILE.set(tile);
            assert!(results(&turn(&x), &turn(&mask)) == expected, "{order:?} in tiles of {tile}");
        }
    }
}
