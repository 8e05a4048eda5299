//! Tensors as text: the values as NumPy prints an array's, then shape and dtype.

mod float;
#[cfg(test)]
mod tests;

use std::fmt::Display;

use inlay_core::{DType, Error, Layout, Result, Shape, Strides};
use inlay_cpu::Element;
use num_complex::Complex;

use crate::array::Array;
use crate::{Complex32, Complex64, Device, Tensor, bf16, device, f16};
use float::Float;

// NumPy's default print options.
const LINE_WIDTH: usize = 75;
/// A tensor of more elements is summarized: long axes show only their ends.
const THRESHOLD: usize = 1000;
/// How many positions each end of a long axis shows.
const EDGE: usize = 3;

/// NumPy's summary keeps up to 6 positions of every axis, however many axes. Past rank 8 that may
/// be more than memory holds, and nobody would read it.
const MOST_SHOWN: usize = 6usize.pow(8);

const PREFIX: &str = "Tensor(";
/// Stands for what is not shown.
const GAP: &str = "...";

/// The text of a tensor.
pub(crate) fn text(tensor: &Tensor) -> String {
    // Printing can't fail, so values that can't be had are a gap.
    let values = values(tensor.array()).unwrap_or_else(|_| GAP.into());
    let device = match tensor.device() {
        Device::Cpu => String::new(),
        device => format!(", device={device}"),
    };
    format!("{PREFIX}{values}, shape={:?}, dtype={}{device})", tensor.shape(), tensor.dtype())
}

fn values(array: &Array) -> Result<String> {
    let numel = array.layout.numel();
    if numel == 0 {
        return Ok("[]".into());
    }
    let summarize = numel > THRESHOLD;
    let axes: Vec<Axis> = array.shape().iter().map(|&size| Axis::new(size, summarize)).collect();
    let array = array.with_layout(shown(&array.layout, &axes));
    let numel = array.layout.numel();
    if numel > MOST_SHOWN {
        return Err(Error::OutOfMemory { bytes: numel.saturating_mul(array.dtype.size()) });
    }
    Ok(arrange(&words(&array)?, axes))
}

/// What is shown of an axis, and where in it the arrangement is.
struct Axis {
    /// How many positions are shown.
    shown: usize,
    /// Whether positions between the first and the last `EDGE` are left out.
    gap: bool,
    at: usize,
}

impl Axis {
    fn new(size: usize, summarize: bool) -> Self {
        let gap = summarize && size > 2 * EDGE;
        Axis { shown: if gap { 2 * EDGE } else { size }, gap, at: 0 }
    }
}

/// The elements that are shown, as a view, so that no others are read: an axis with a gap becomes
/// two, one of its two ends and one of the positions in an end.
fn shown(layout: &Layout, axes: &[Axis]) -> Layout {
    let mut shape = Shape::new();
    let mut strides = Strides::new();
    for ((&size, &stride), axis) in layout.shape().iter().zip(layout.strides()).zip(axes) {
        if axis.gap {
            shape.push(2);
            // It fits, as the axis has such an element; sizes past `isize` have stride 0.
            strides.push(((size - EDGE) as isize).wrapping_mul(stride));
        }
        shape.push(if axis.gap { EDGE } else { size });
        strides.push(stride);
    }
    Layout::strided(shape, strides, layout.offset())
}

/// The elements as text in row-major order, padded to a common width.
fn words(array: &Array) -> Result<Vec<String>> {
    match array.dtype {
        DType::Bool => {
            let width = if array.layout.rank() == 0 { 0 } else { "False".len() };
            let word = |value: &bool| format!("{:>width$}", if *value { "True" } else { "False" });
            Ok(device::load::<bool>(array)?.iter().map(word).collect())
        }
        DType::U8 => integers::<u8>(array),
        DType::I8 => integers::<i8>(array),
        DType::U16 => integers::<u16>(array),
        DType::I16 => integers::<i16>(array),
        DType::U32 => integers::<u32>(array),
        DType::I32 => integers::<i32>(array),
        DType::U64 => integers::<u64>(array),
        DType::I64 => integers::<i64>(array),
        DType::F16 => floats::<f16>(array),
        DType::BF16 => floats::<bf16>(array),
        DType::F32 => floats::<f32>(array),
        DType::F64 => floats::<f64>(array),
        DType::C64 => Ok(complexes(&device::load::<Complex32>(array)?)),
        DType::C128 => Ok(complexes(&device::load::<Complex64>(array)?)),
    }
}

fn integers<T: Element + Display>(array: &Array) -> Result<Vec<String>> {
    let words: Vec<String> = device::load::<T>(array)?.iter().map(T::to_string).collect();
    let width = words.iter().map(String::len).max().unwrap_or(0);
    Ok(words.iter().map(|word| format!("{word:>width$}")).collect())
}

fn floats<T: Element + Float>(array: &Array) -> Result<Vec<String>> {
    Ok(float::words(&device::load::<T>(array)?, false))
}

fn complexes<T: Float>(values: &[Complex<T>]) -> Vec<String> {
    let real: Vec<T> = values.iter().map(|value| value.re).collect();
    let imaginary: Vec<T> = values.iter().map(|value| value.im).collect();
    let parts = float::words(&real, false).into_iter().zip(float::words(&imaginary, true));
    let join = |(real, imaginary): (String, String)| {
        // The unit follows the last digit; what pads the part follows the unit.
        let digits = imaginary.trim_end();
        format!("{real}{digits}j{:pad$}", "", pad = imaginary.len() - digits.len())
    };
    parts.map(join).collect()
}

/// The words in nested brackets, in lines of a limited width.
fn arrange(words: &[String], mut axes: Vec<Axis>) -> String {
    let rank = axes.len();
    let mut page = Page {
        text: "[".repeat(rank),
        column: PREFIX.len() + rank,
        indent: PREFIX.len() + rank,
        // Room is kept for the comma or the bracket that follows a word, and for the brackets
        // of all outer axes.
        limit: LINE_WIDTH.saturating_sub(rank),
    };
    for (k, word) in words.iter().enumerate() {
        if k > 0 {
            let (ended, gap) = step(&mut axes);
            page.text.push_str(&"]".repeat(ended));
            page.separate(ended);
            if gap {
                page.word(GAP);
                page.separate(ended);
            }
            page.text.push_str(&"[".repeat(ended));
        }
        page.word(word);
    }
    page.text.push_str(&"]".repeat(rank));
    page.text
}

/// Goes to the next position; says how many axes began anew, and whether the axis before them
/// has its gap here.
fn step(axes: &mut [Axis]) -> (usize, bool) {
    for (ended, axis) in axes.iter_mut().rev().enumerate() {
        axis.at += 1;
        if axis.at < axis.shown {
            return (ended, axis.gap && axis.at == EDGE);
        }
        axis.at = 0;
    }
    (axes.len(), false)
}

struct Page {
    text: String,
    /// How wide the last line is, the prefix included.
    column: usize,
    /// The column in which the elements of a row begin.
    indent: usize,
    /// The column at which a word ends at the latest.
    limit: usize,
}

impl Page {
    /// A word, on a new line if it doesn't fit on this one but may on that.
    fn word(&mut self, word: &str) {
        if self.column + word.len() > self.limit && self.column > self.indent {
            self.text.truncate(self.text.trim_end().len());
            self.text.push('\n');
            self.text.push_str(&" ".repeat(self.indent));
            self.column = self.indent;
        }
        self.text.push_str(word);
        self.column += word.len();
    }

    /// What lies between two elements, or between two blocks of `axes` axes.
    fn separate(&mut self, axes: usize) {
        if axes == 0 {
            self.text.push_str(", ");
            self.column += 2;
        } else {
            self.text.push(',');
            self.text.push_str(&"\n".repeat(axes));
            self.text.push_str(&" ".repeat(self.indent - axes));
            // The brackets that open the block fill the rest; a gap fits whatever the column.
            self.column = self.indent;
        }
    }
}
