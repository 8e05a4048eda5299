//! Calls with random arguments. Each must give a result or an error, and a failed write must change
//! nothing.

use inlay::{
    DType, DiagonalScatter, Item, PutAlongAxis, Reduce, Result, Scatter, SelectScatter, Slice,
    SliceScatter, Tensor,
};
use proptest::prelude::*;

use crate::support::{Nd, Rng};

const NUMBERS: [i64; 13] = [0, 1, 2, 3, -1, -2, -3, 5, -9, i64::MAX, i64::MIN, 1 << 40, -(1 << 40)];

fn number(rng: &mut Rng) -> i64 {
    let spread = if rng.chance(6) { NUMBERS.len() } else { 6 };
    NUMBERS[rng.below(spread)]
}

fn shape(rng: &mut Rng) -> Vec<usize> {
    let rank = *rng.pick(&[0, 1, 1, 2, 2, 2, 3, 5]);
    (0..rank).map(|_| *rng.pick(&[0, 1, 2, 2, 3, 3])).collect()
}

fn tensor(rng: &mut Rng) -> Tensor {
    let shape = shape(rng);
    let dtype = match rng.chance(3) {
        true => *rng.pick(&DType::ALL),
        false => *rng.pick(&[DType::F32, DType::I64, DType::Bool]),
    };
    let array = match dtype {
        DType::I64 => Nd::random_index(rng, dtype, &shape, 3),
        _ => Nd::random(rng, dtype, &shape),
    };
    array.scattered(rng)
}

fn slice(rng: &mut Rng) -> Slice {
    let end = |rng: &mut Rng| (!rng.chance(3)).then(|| number(rng));
    Slice { start: end(rng), stop: end(rng), step: number(rng) }
}

fn item(rng: &mut Rng) -> Item {
    match rng.below(7) {
        0 | 1 => Item::At(number(rng)),
        2 | 3 => Item::Slice(slice(rng)),
        4 => Item::Ellipsis,
        5 => Item::NewAxis,
        _ => Item::Tensor(tensor(rng)),
    }
}

fn reduce(rng: &mut Rng) -> Reduce {
    *rng.pick(&[Reduce::Sum, Reduce::Mul, Reduce::Mean, Reduce::Amax, Reduce::Amin])
}

/// An in-place write with random operands.
fn write(rng: &mut Rng, x: &Tensor) -> Result<()> {
    let (a, b) = (tensor(rng), tensor(rng));
    match rng.below(9) {
        0 => {
            let how = match rng.chance(2) {
                true => Scatter::overwrite(),
                false => Scatter::reduce(reduce(rng)).include_self(rng.chance(2)),
            };
            x.scatter_(&a, &b, how.axis(number(rng))).map(drop)
        }
        1 => {
            let at = SliceScatter::new(number(rng), slice(rng));
            let at = if rng.chance(2) { at.and(number(rng), slice(rng)) } else { at };
            x.slice_scatter_(&a, &at).map(drop)
        }
        2 => {
            let (offset, axis1, axis2) = (number(rng), number(rng), number(rng));
            x.diagonal_scatter_(&a, DiagonalScatter { offset, axis1, axis2 }).map(drop)
        }
        3 => x.masked_scatter_(&a, &b).map(drop),
        4 => {
            let axis = number(rng);
            let how = match rng.chance(2) {
                true => PutAlongAxis::assign(axis),
                false => PutAlongAxis::reduce(axis, reduce(rng)),
            };
            x.put_along_axis_(&a, &b, how.broadcast(rng.chance(2))).map(drop)
        }
        5 => x.masked_fill_(&a, &b).map(drop),
        6 => x.index_fill_(&a, number(rng), &b).map(drop),
        7 => {
            let (axis, index) = (number(rng), number(rng));
            x.select_scatter_(&a, SelectScatter { axis, index }).map(drop)
        }
        _ => {
            let items: Vec<Item> = (0..rng.below(4)).map(|_| item(rng)).collect();
            x.assign(&items, &a)
        }
    }
}

fn read(rng: &mut Rng, x: &Tensor) -> Result<Tensor> {
    let (a, b) = (tensor(rng), tensor(rng));
    let numbers = |rng: &mut Rng| (0..rng.below(4)).map(|_| number(rng)).collect::<Vec<i64>>();
    match rng.below(14) {
        0 => x.index(&(0..rng.below(4)).map(|_| item(rng)).collect::<Vec<_>>()),
        1 => x.index_select(&a, number(rng)),
        2 => x.take_along_axis(&a, number(rng), rng.chance(2)),
        3 => x.masked_select(&a),
        4 => x.diagonal(DiagonalScatter {
            offset: number(rng),
            axis1: number(rng),
            axis2: number(rng),
        }),
        5 => x.tril(number(rng)),
        6 => x.triu(number(rng)),
        7 => x.reshape(&numbers(rng)),
        8 => x.transpose(&numbers(rng)),
        9 => x.broadcast_to(&shape(rng)),
        10 => x.where_(&a, &b),
        11 => x.sum(numbers(rng), rng.chance(2)),
        12 => x.cast(*rng.pick(&DType::ALL)),
        _ => match rng.below(4) {
            0 => x.add(&a),
            1 => x.subtract(&a),
            2 => x.divide(&a),
            _ => x.less_than(&a),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_failed_write_changes_nothing(seed: u64) {
        let rng = &mut Rng(seed);
        let x = tensor(rng);
        let before = Nd::of_tensor(&x);
        if let Err(error) = write(rng, &x) {
            prop_assert!(!error.to_string().is_empty());
            prop_assert_eq!(Nd::of_tensor(&x).cells, before.cells, "{}", error);
        }
    }

    #[test]
    fn a_read_gives_a_result_or_an_error(seed: u64) {
        let rng = &mut Rng(seed);
        let x = tensor(rng);
        if let Ok(result) = read(rng, &x) {
            prop_assert!(result.numel() < 100_000);
            let text = format!("{result:?}");
            prop_assert!(text.starts_with("Tensor("));
        }
    }
}

#[cfg(feature = "gpu")]
mod gpu {
    use super::{read, tensor, write};
    use crate::support::device::on_gpu;
    use crate::support::{Nd, Rng};

    #[test]
    fn a_failed_write_changes_nothing() {
        on_gpu(|| {
            for seed in 0..1000 {
                let rng = &mut Rng(seed);
                let x = tensor(rng);
                let before = Nd::of_tensor(&x);
                if let Err(error) = write(rng, &x) {
                    assert_eq!(Nd::of_tensor(&x).cells, before.cells, "{seed}: {error}");
                }
            }
        });
    }

    #[test]
    fn a_read_gives_what_the_cpu_gives() {
        for seed in 0..1000 {
            let run = || {
                let rng = &mut Rng(seed);
                let x = tensor(rng);
                read(rng, &x).map(|result| result.cpu().unwrap())
            };
            let text = |result: inlay::Result<_>| format!("{result:?}");
            assert_eq!(text(on_gpu(run)), text(run()), "{seed}");
        }
    }
}
