//! Arrays for naive implementations: a shape and the bytes of each element, in row-major order.

use std::ptr::NonNull;

use inlay::{DType, Device, Item, Layout, Slice, SliceScatter, Tensor, bf16, current_device, f16};

use super::Rng;

/// The bytes of an element. Bytes beyond the size of its dtype are ignored.
pub(crate) type Cell = [u8; 16];

#[derive(Clone, PartialEq)]
pub(crate) struct Nd {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) cells: Vec<Cell>,
}

impl std::fmt::Debug for Nd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?}", self.dtype, self.shape, self.tensor())
    }
}

pub(crate) fn cell(bytes: &[u8]) -> Cell {
    let mut cell = [0; 16];
    cell[..bytes.len()].copy_from_slice(bytes);
    cell
}

impl Nd {
    pub(crate) fn new(dtype: DType, shape: &[usize], cells: Vec<Cell>) -> Self {
        assert_eq!(cells.len(), shape.iter().product::<usize>());
        Nd { dtype, shape: shape.to_vec(), cells }
    }

    /// Random values that are often equal: small numbers and zeros, and for floats sometimes NaN
    /// and infinity.
    pub(crate) fn random(rng: &mut Rng, dtype: DType, shape: &[usize]) -> Self {
        let count = shape.iter().product();
        let cells = (0..count).map(|_| random_cell(rng, dtype)).collect();
        Nd::new(dtype, shape, cells)
    }

    /// An index of `dtype` into an axis of `size`. Signed dtypes also get negative entries.
    pub(crate) fn random_index(rng: &mut Rng, dtype: DType, shape: &[usize], size: usize) -> Self {
        let count = shape.iter().product();
        let range = dtype.integer_range().unwrap();
        let cells = (0..count).map(|_| {
            let low = (-(size as i128)).max(range.0);
            let high = (size as i128 - 1).min(range.1);
            int_cell(rng.between(low as i64, high as i64).into())
        });
        Nd::new(dtype, shape, cells.collect())
    }

    pub(crate) fn bools(rng: &mut Rng, shape: &[usize], one_in: usize) -> Self {
        let count = shape.iter().product();
        let cells = (0..count).map(|_| cell(&[u8::from(rng.chance(one_in))])).collect();
        Nd::new(DType::Bool, shape, cells)
    }

    pub(crate) fn of_tensor(tensor: &Tensor) -> Self {
        let copy = tensor.cpu().unwrap().copy().unwrap();
        let size = copy.dtype().size();
        // SAFETY: `copy` is contiguous and on the CPU, so `numel * size` initialized bytes start at
        // `data_ptr`. It is the only handle to them.
        let bytes = unsafe { std::slice::from_raw_parts(copy.data_ptr(), copy.numel() * size) };
        let cells = bytes.chunks_exact(size).map(cell).collect();
        Nd::new(copy.dtype(), copy.shape(), cells)
    }

    /// Returns a contiguous tensor on the current device.
    pub(crate) fn tensor(&self) -> Tensor {
        let order: Vec<usize> = (0..self.shape.len()).collect();
        self.lay(&order, |_| (1, 0, false), 0).to(current_device()).unwrap()
    }

    /// Returns a tensor of the same elements with a random layout: any order and direction of axes,
    /// gaps of any number of bytes, and any alignment.
    pub(crate) fn scattered(&self, rng: &mut Rng) -> Tensor {
        if rng.chance(4) {
            return self.tensor();
        }
        let order = rng.permutation(self.shape.len());
        let plan: Vec<(usize, usize, bool)> = self
            .shape
            .iter()
            .map(|_| (1 + rng.below(3), *rng.pick(&[0, 0, 1, 3, 8]), rng.chance(3)))
            .collect();
        let offset = *rng.pick(&[0, 0, 1, 5, 64]);
        match current_device() {
            Device::Cpu => self.lay(&order, |axis| plan[axis], offset),
            Device::Gpu => self.cut(&order, |axis| plan[axis], offset),
        }
    }

    /// Like [`Nd::lay`], but makes a view of a larger tensor, which also works for GPU memory. Gaps
    /// are whole elements.
    fn cut(
        &self,
        order: &[usize],
        plan: impl Fn(usize) -> (usize, usize, bool),
        offset: usize,
    ) -> Tensor {
        let rank = self.shape.len();
        if rank == 0 {
            let row = Nd::new(self.dtype, &[4], vec![self.cells[0]; 4]).tensor();
            return row.index(&[Item::At((offset % 4) as i64)]).unwrap();
        }
        let span = |axis: usize| self.shape[axis].saturating_sub(1) * plan(axis).0;
        let before = |axis: usize| if order.last() == Some(&axis) { offset % 4 } else { 0 };
        let sizes: Vec<usize> =
            order.iter().map(|&axis| before(axis) + span(axis) + 1 + plan(axis).1 % 4).collect();
        let count = sizes.iter().product();
        let mut whole = Nd::new(self.dtype, &sizes, vec![[0xA5; 16]; count]);
        for (at, cell) in indices(&self.shape).zip(&self.cells) {
            let place = |&axis: &usize| {
                let (times, _, backwards) = plan(axis);
                let step = at[axis] * times;
                before(axis) + if backwards { span(axis) - step } else { step }
            };
            whole.set(&order.iter().map(place).collect::<Vec<_>>(), *cell);
        }
        let mut part = SliceScatter::default();
        for (at, &axis) in order.iter().enumerate() {
            let (times, _, backwards) = plan(axis);
            let (first, last) = (before(axis) as i64, (before(axis) + span(axis)) as i64);
            let step = times as i64;
            let slice = match (self.shape[axis], backwards) {
                (0, _) => Slice::new(0, 0, 1),
                (_, false) => Slice::new(first, last + 1, step),
                (_, true) => Slice {
                    start: Some(last),
                    stop: first.checked_sub(1).filter(|k| *k >= 0),
                    step: -step,
                },
            };
            part = part.and(at as i64, slice);
        }
        let place = |axis| order.iter().position(|&other| other == axis).unwrap() as i64;
        let perm: Vec<i64> = (0..rank).map(place).collect();
        whole.tensor().slice(&part).unwrap().transpose(&perm).unwrap()
    }

    /// Returns a tensor that has stride 0 on the axes for which `held` is true. The elements of
    /// `self` along those axes must be equal.
    pub(crate) fn held(&self, rng: &mut Rng, held: &[bool]) -> Tensor {
        let slim: Vec<usize> = self
            .shape
            .iter()
            .zip(held)
            .map(|(&n, &held)| if held { n.min(1) } else { n })
            .collect();
        let cells = indices(&slim).map(|at| self.at(&at)).collect();
        let slim = Nd::new(self.dtype, &slim, cells).scattered(rng);
        if self.shape.contains(&0) {
            self.tensor()
        } else {
            slim.broadcast_to(&self.shape).unwrap()
        }
    }

    /// Returns a tensor with the given layout. `order` lists the axes from outermost to innermost.
    /// For each axis, `plan` gives a factor and a number of bytes by which the stride is enlarged,
    /// and whether the axis is reversed.
    fn lay(
        &self,
        order: &[usize],
        plan: impl Fn(usize) -> (usize, usize, bool),
        offset: usize,
    ) -> Tensor {
        let size = self.dtype.size();
        let rank = self.shape.len();
        let mut strides = vec![0isize; rank];
        let (mut reach, mut origin) = (size, offset);
        for &axis in order.iter().rev() {
            let (times, gap, backwards) = plan(axis);
            let step = reach * times + gap;
            let span = step * self.shape[axis].saturating_sub(1);
            strides[axis] = if backwards { -(step as isize) } else { step as isize };
            origin += if backwards { span } else { 0 };
            reach += span;
        }
        let mut bytes = vec![0xA5u8; offset + reach];
        for (at, cell) in indices(&self.shape).zip(&self.cells) {
            let by: isize = at.iter().zip(&strides).map(|(&k, &stride)| k as isize * stride).sum();
            let start = origin.wrapping_add_signed(by);
            bytes[start..start + size].copy_from_slice(&cell[..size]);
        }
        let layout = Layout::over(&self.shape, &strides, origin);
        let bytes: Box<[u8]> = bytes.into_boxed_slice();
        let len = bytes.len();
        let ptr = NonNull::new(Box::into_raw(bytes).cast::<u8>()).unwrap();
        let owner = Box::new(Freed(ptr, len));
        // SAFETY: `ptr` and `len` come from a leaked box of initialized bytes, which `owner` frees.
        // No other code has the pointer.
        unsafe { Tensor::from_foreign(ptr, len, layout, self.dtype, true, owner) }.unwrap()
    }

    fn flat(&self, at: &[usize]) -> usize {
        at.iter().zip(&self.shape).fold(0, |flat, (&k, &size)| flat * size + k)
    }

    pub(crate) fn at(&self, at: &[usize]) -> Cell {
        self.cells[self.flat(at)]
    }

    pub(crate) fn set(&mut self, at: &[usize], cell: Cell) {
        let flat = self.flat(at);
        self.cells[flat] = cell;
    }

    /// An element of an integer array as a number.
    pub(crate) fn int(&self, at: &[usize]) -> i128 {
        to_int(self.dtype, &self.at(at))
    }

    /// Makes elements along the held axes equal.
    pub(crate) fn hold(&mut self, held: &[bool]) {
        if self.shape.contains(&0) {
            return;
        }
        for at in indices(&self.shape.clone()) {
            let first: Vec<usize> =
                at.iter().zip(held).map(|(&k, &held)| if held { 0 } else { k }).collect();
            self.set(&at, self.at(&first));
        }
    }
}

/// The owner of a tensor's memory. Dropping it frees the memory.
struct Freed(NonNull<u8>, usize);
// SAFETY: it owns plain bytes, which any thread may free.
unsafe impl Send for Freed {}
// SAFETY: a shared reference gives no access to the bytes.
unsafe impl Sync for Freed {}
impl Drop for Freed {
    fn drop(&mut self) {
        let bytes = std::ptr::slice_from_raw_parts_mut(self.0.as_ptr(), self.1);
        // SAFETY: `lay` got pointer and length from `Box::into_raw`, and this runs once.
        drop(unsafe { Box::from_raw(bytes) });
    }
}

/// All index tuples of a shape in row-major order.
pub(crate) fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    let count: usize = shape.iter().product();
    (0..count).map(move |mut flat| {
        let mut at = vec![0; shape.len()];
        for (k, &size) in at.iter_mut().zip(&shape).rev() {
            *k = flat % size;
            flat /= size;
        }
        at
    })
}

pub(crate) fn int_cell(value: i128) -> Cell {
    value.to_le_bytes()
}

pub(crate) fn to_int(dtype: DType, cell: &Cell) -> i128 {
    let size = dtype.size();
    let value = i128::from_le_bytes(*cell) & ((1i128 << (8 * size)) - 1);
    let negative = !dtype.is_unsigned() && value >> (8 * size - 1) & 1 == 1;
    if negative { value - (1i128 << (8 * size)) } else { value }
}

fn random_cell(rng: &mut Rng, dtype: DType) -> Cell {
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-7, 3e4];
    let float = |rng: &mut Rng| {
        if rng.chance(12) { *rng.pick(&special) } else { rng.between(-9, 9) as f64 / 4.0 }
    };
    match dtype {
        DType::Bool => cell(&[u8::from(rng.chance(2))]),
        DType::F16 => cell(&f16::from_f64(float(rng)).to_le_bytes()),
        DType::BF16 => cell(&bf16::from_f64(float(rng)).to_le_bytes()),
        DType::F32 => cell(&(float(rng) as f32).to_le_bytes()),
        DType::F64 => cell(&float(rng).to_le_bytes()),
        DType::C64 => {
            let (re, im) = (float(rng) as f32, float(rng) as f32);
            cell(&[re.to_le_bytes(), im.to_le_bytes()].concat())
        }
        DType::C128 => {
            let (re, im) = (float(rng), float(rng));
            cell(&[re.to_le_bytes(), im.to_le_bytes()].concat())
        }
        // All bits are random, so that sums and products wrap.
        _ => {
            let bytes = rng.next().to_le_bytes();
            cell(&bytes[..dtype.size()])
        }
    }
}
