//! Tests of index expressions with several tensors, against a loop over the elements.

use inlay::{DType, Item, Slice, Tensor};

use super::{check_read, check_write, random_slice};
use crate::support::device::also_on_gpu;
use crate::support::naive::slice_positions;
use crate::support::nd::indices;
use crate::support::{Nd, Rng};

/// One item for each axis of a tensor.
enum Part {
    At(usize),
    Slice(Slice),
    Index(Nd),
}

/// The places that parts name, in row-major order of the result, and its shape.
fn places(shape: &[usize], parts: &[Part]) -> (Vec<Vec<usize>>, Vec<usize>) {
    let has_axes = |part: &Part| matches!(part, Part::Index(index) if !index.shape.is_empty());
    let is_slice = |part: &Part| matches!(part, Part::Slice(_));
    let first = parts.iter().position(has_axes).unwrap_or(0);
    let last = parts.iter().rposition(has_axes).unwrap_or(0);
    let separated = parts[first..=last].iter().any(is_slice);
    let before = if separated { 0 } else { parts[..first].iter().filter(|p| is_slice(p)).count() };
    let mut common: Vec<usize> = vec![];
    for part in parts {
        let Part::Index(index) = part else { continue };
        let missing = index.shape.len().saturating_sub(common.len());
        common.splice(0..0, std::iter::repeat_n(1, missing));
        let extra = common.len() - index.shape.len();
        for (size, &own) in common[extra..].iter_mut().zip(&index.shape) {
            *size = if *size == 1 { own } else { *size };
        }
    }
    let lens = parts.iter().zip(shape).filter_map(|(part, &size)| match part {
        Part::Slice(slice) => Some(slice_positions(*slice, size).len()),
        _ => None,
    });
    let mut out: Vec<usize> = lens.collect();
    out.splice(before..before, common.iter().copied());
    let place = |at: Vec<usize>| {
        let ours = &at[before..before + common.len()];
        let mut theirs = at[..before].iter().chain(&at[before + common.len()..]);
        let axis = |(part, &size): (&Part, &usize)| match part {
            Part::At(position) => *position,
            Part::Slice(slice) => slice_positions(*slice, size)[*theirs.next().unwrap()],
            Part::Index(index) => {
                let tail = ours[ours.len() - index.shape.len()..].iter().zip(&index.shape);
                let at: Vec<usize> = tail.map(|(&k, &len)| if len == 1 { 0 } else { k }).collect();
                let value = index.int(&at);
                (if value < 0 { value + size as i128 } else { value }) as usize
            }
        };
        parts.iter().zip(shape).map(axis).collect()
    };
    (indices(&out).map(place).collect(), out)
}

fn random_parts(rng: &mut Rng, shape: &[usize]) -> Vec<Part> {
    let part = |&size: &usize| match rng.below(6) {
        0 => Part::At(rng.below(size)),
        1 | 2 => Part::Slice(random_slice(rng, size)),
        _ => {
            let shapes: [&[usize]; 5] = [&[2, 3], &[3], &[2, 1], &[1], &[]];
            let dtype = *rng.pick(&[DType::I64, DType::I32, DType::I8]);
            let shape = rng.pick(&shapes);
            Part::Index(Nd::random_index(rng, dtype, shape, size))
        }
    };
    shape.iter().map(part).collect()
}

#[test]
fn expressions_with_several_tensors_read_and_write_their_places() {
    let mut rng = Rng(41);
    for round in 0..60 {
        let rng = &mut rng;
        let shape: Vec<usize> = (0..2 + rng.below(3)).map(|_| 1 + rng.below(4)).collect();
        let dtype = [DType::F32, DType::I16, DType::C128][round % 3];
        let x = Nd::random(rng, dtype, &shape);
        let parts = random_parts(rng, &shape);
        let (places, out) = places(&shape, &parts);
        let items: Vec<Item> = parts
            .iter()
            .map(|part| match part {
                Part::At(position) => Item::At(*position as i64),
                Part::Slice(slice) => Item::Slice(*slice),
                Part::Index(index) => Item::Tensor(index.scattered(rng)),
            })
            .collect();

        let read = Nd::new(dtype, &out, places.iter().map(|place| x.at(place)).collect());
        let tensor = x.scattered(rng);
        check_read(&read, || tensor.index(&items));

        let value = Nd::random(rng, dtype, &out);
        let mut written = x.clone();
        for (place, at) in places.iter().zip(indices(&out)) {
            written.set(place, value.at(&at));
        }
        let value = value.scattered(rng);
        let write = |x: &Tensor| x.assign(&items, &value);
        let fresh = |x: &Tensor| x.copy().and_then(|x| write(&x).map(|()| x));
        check_write(rng, &x, &written, fresh, write);
    }
}

also_on_gpu!(expressions_with_several_tensors_read_and_write_their_places);
