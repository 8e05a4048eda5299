//! Naive implementations of the operations, which process one element after the other.

use inlay::{Complex32, Complex64, DType, Reduce, Slice, bf16, f16};

use super::Nd;
use super::nd::{Cell, cell, indices, int_cell, to_int};

/// Converts an index value to a position.
fn position(value: i128, size: usize) -> usize {
    (if value < 0 { value + size as i128 } else { value }) as usize
}

pub(crate) fn slice_positions(slice: Slice, size: usize) -> Vec<usize> {
    let slice = slice.resolve(size).unwrap();
    (0..slice.len).map(|k| (slice.start as isize + k as isize * slice.step) as usize).collect()
}

pub(crate) fn slice_scatter(x: &Nd, y: &Nd, axes: &[(usize, Slice)]) -> Nd {
    let mut out = x.clone();
    for at in indices(&y.shape) {
        let mut to = at.clone();
        for &(axis, slice) in axes {
            to[axis] = slice_positions(slice, x.shape[axis])[at[axis]];
        }
        out.set(&to, y.at(&at));
    }
    out
}

pub(crate) fn diagonal_scatter(x: &Nd, src: &Nd, offset: i64, axis1: usize, axis2: usize) -> Nd {
    let mut out = x.clone();
    for at in indices(&x.shape) {
        if at[axis2] as i64 - at[axis1] as i64 == offset {
            let kept = (0..at.len()).filter(|&k| k != axis1 && k != axis2).map(|k| at[k]);
            let from: Vec<usize> = kept.chain([at[axis1].min(at[axis2])]).collect();
            out.set(&at, src.at(&from));
        }
    }
    out
}

/// Broadcasts `small` to a larger shape, and returns its element at an index of that shape.
fn broadcast_at(small: &Nd, at: &[usize]) -> Cell {
    let tail = &at[at.len() - small.shape.len()..];
    let at: Vec<usize> =
        tail.iter().zip(&small.shape).map(|(&k, &size)| if size == 1 { 0 } else { k }).collect();
    small.at(&at)
}

pub(crate) fn masked_scatter(x: &Nd, mask: &Nd, source: &Nd) -> Nd {
    let mut out = x.clone();
    let mut next = source.cells.iter();
    for at in indices(&x.shape) {
        if broadcast_at(mask, &at)[0] != 0 {
            out.set(&at, *next.next().unwrap());
        }
    }
    out
}

pub(crate) fn masked_select(x: &Nd, mask: &Nd) -> Nd {
    let true_places = indices(&x.shape).filter(|at| broadcast_at(mask, at)[0] != 0);
    let cells: Vec<Cell> = true_places.map(|at| x.at(&at)).collect();
    Nd::new(x.dtype, &[cells.len()], cells)
}

pub(crate) fn select(condition: &Nd, x: &Nd, y: &Nd, shape: &[usize]) -> Nd {
    let choose = |at: Vec<usize>| {
        let from = if broadcast_at(condition, &at)[0] != 0 { x } else { y };
        broadcast_at(from, &at)
    };
    Nd::new(x.dtype, shape, indices(shape).map(choose).collect())
}

/// Along `axis`, `updates` is as long as the index, or longer.
pub(crate) fn scatter(
    x: &Nd,
    index: &Nd,
    updates: &Nd,
    axis: usize,
    reduce: Option<(Reduce, bool)>,
) -> Nd {
    let mut met: Vec<Vec<Cell>> = vec![vec![]; x.cells.len()];
    let mut shape = updates.shape.clone();
    shape[axis] = index.cells.len();
    for at in indices(&shape) {
        let mut to = at.clone();
        to[axis] = position(index.int(&[at[axis]]), x.shape[axis]);
        let flat = to.iter().zip(&x.shape).fold(0, |flat, (&k, &size)| flat * size + k);
        met[flat].push(updates.at(&at));
    }
    combine(x, met, reduce)
}

/// Index and values have one shape. On the other axes, they are not larger than `x`.
pub(crate) fn put_along_axis(
    x: &Nd,
    index: &Nd,
    values: &Nd,
    axis: usize,
    reduce: Option<(Reduce, bool)>,
) -> Nd {
    let mut met: Vec<Vec<Cell>> = vec![vec![]; x.cells.len()];
    for at in indices(&index.shape) {
        let mut to = at.clone();
        to[axis] = position(index.int(&at), x.shape[axis]);
        let flat = to.iter().zip(&x.shape).fold(0, |flat, (&k, &size)| flat * size + k);
        met[flat].push(values.at(&at));
    }
    combine(x, met, reduce)
}

fn combine(x: &Nd, met: Vec<Vec<Cell>>, reduce: Option<(Reduce, bool)>) -> Nd {
    let mut out = x.clone();
    for (place, values) in met.into_iter().enumerate() {
        let Some(last) = values.last() else { continue };
        out.cells[place] = match reduce {
            None => *last,
            Some((how, include_self)) => {
                let own = include_self.then_some(x.cells[place]);
                let all: Vec<Cell> = own.into_iter().chain(values).collect();
                reduced(x.dtype, how, &all)
            }
        };
    }
    out
}

pub(crate) fn take_along_axis(x: &Nd, index: &Nd, axis: usize) -> Nd {
    let take = |at: Vec<usize>| {
        let mut from = at.clone();
        from[axis] = position(index.int(&at), x.shape[axis]);
        x.at(&from)
    };
    Nd::new(x.dtype, &index.shape, indices(&index.shape).map(take).collect())
}

pub(crate) fn index_select(x: &Nd, index: &Nd, axis: usize) -> Nd {
    let mut shape = x.shape.clone();
    shape[axis] = index.cells.len();
    let take = |at: Vec<usize>| {
        let mut from = at.clone();
        from[axis] = position(index.int(&[at[axis]]), x.shape[axis]);
        x.at(&from)
    };
    Nd::new(x.dtype, &shape, indices(&shape).map(take).collect())
}

pub(crate) fn keep_triangle(x: &Nd, lower: bool, offset: i64) -> Nd {
    let keep = |at: Vec<usize>| {
        let [.., r, c] = at[..] else { panic!("a matrix") };
        let distance = c as i64 - r as i64;
        let inside = if lower { distance <= offset } else { distance >= offset };
        if inside { x.at(&at) } else { [0; 16] }
    };
    Nd::new(x.dtype, &x.shape, indices(&x.shape).map(keep).collect())
}

/// A sequential loop over the values.
pub(crate) fn reduced(dtype: DType, how: Reduce, values: &[Cell]) -> Cell {
    macro_rules! floats {
        ($wide:ty, $load:expr, $store:expr) => {{
            let values: Vec<$wide> = values.iter().map($load).collect();
            let total = match how {
                Reduce::Sum | Reduce::Mean => values.iter().copied().reduce(|a, b| a + b),
                Reduce::Mul => values.iter().copied().reduce(|a, b| a * b),
                Reduce::Amax => values.iter().copied().reduce(|a, b| match a.is_nan() || a >= b {
                    true => a,
                    false => b,
                }),
                Reduce::Amin => values.iter().copied().reduce(|a, b| match a.is_nan() || a <= b {
                    true => a,
                    false => b,
                }),
            };
            let total = total.unwrap();
            let count = values.len() as $wide;
            ($store)(if how == Reduce::Mean { total / count } else { total })
        }};
    }
    macro_rules! complexes {
        ($t:ty, $part:ty, $size:literal) => {{
            let part = |c: &Cell, at: usize| {
                <$part>::from_le_bytes(c[at * $size..(at + 1) * $size].try_into().unwrap())
            };
            let values = values.iter().map(|c| <$t>::new(part(c, 0), part(c, 1)));
            let count = values.len() as $part;
            let total = match how {
                Reduce::Mul => values.reduce(|a, b| a * b),
                _ => values.reduce(|a, b| a + b),
            };
            let total = total.unwrap();
            let total = if how == Reduce::Mean { total / count } else { total };
            cell(&[total.re.to_le_bytes(), total.im.to_le_bytes()].concat())
        }};
    }
    match dtype {
        DType::Bool => {
            let mut values = values.iter().map(|c| c[0] != 0);
            cell(&[u8::from(match how {
                Reduce::Sum | Reduce::Amax => values.any(|v| v),
                _ => values.all(|v| v),
            })])
        }
        DType::F16 => floats!(f32, |c| f16::from_le_bytes([c[0], c[1]]).to_f32(), |v| cell(
            &f16::from_f32(v).to_le_bytes()
        )),
        DType::BF16 => floats!(f32, |c| bf16::from_le_bytes([c[0], c[1]]).to_f32(), |v| cell(
            &bf16::from_f32(v).to_le_bytes()
        )),
        DType::F32 => {
            floats!(f32, |c| f32::from_le_bytes(c[..4].try_into().unwrap()), |v: f32| cell(
                &v.to_le_bytes()
            ))
        }
        DType::F64 => {
            floats!(f64, |c| f64::from_le_bytes(c[..8].try_into().unwrap()), |v: f64| cell(
                &v.to_le_bytes()
            ))
        }
        DType::C64 => complexes!(Complex32, f32, 4),
        DType::C128 => complexes!(Complex64, f64, 8),
        _ => {
            let numbers = values.iter().map(|c| to_int(dtype, c));
            let count = values.len() as i128;
            let total = match how {
                Reduce::Sum => numbers.sum(),
                Reduce::Mul => numbers.fold(1i128, i128::wrapping_mul),
                Reduce::Mean => numbers.sum::<i128>().div_euclid(count),
                Reduce::Amax => numbers.max().unwrap(),
                Reduce::Amin => numbers.min().unwrap(),
            };
            let mut out = int_cell(total);
            out[dtype.size()..].fill(0);
            out
        }
    }
}
