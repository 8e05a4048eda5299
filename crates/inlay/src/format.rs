//! The texts of a tensor. `Display` shows the elements in nested brackets; `Debug` adds shape, dtype
//! and device.

use std::fmt;

use inlay_core::{DType, Error, Layout, Result, Shape, Strides};
use inlay_cpu::Element;

use crate::array::Array;
use crate::{Complex32, Complex64, Device, Tensor, bf16, device, f16};

/// The number of elements above which a tensor is summarised: long axes show only their ends.
const THRESHOLD: usize = 1000;

/// The number of positions that a summary shows at each end of a long axis.
const EDGE: usize = 3;

/// The maximum number of elements of a summary, which grows exponentially with the rank.
const MOST: usize = 1 << 21;

const PREFIX: &str = "Tensor(";
const GAP: &str = "...";

/// The elements, then shape, dtype and device. `{:.2?}` gives floats two digits.
///
/// ```
/// let x = inlay::Tensor::from([1.0f32, 0.25]);
/// assert_eq!(format!("{x:?}"), "Tensor([ 1.0, 0.25], shape=[2], dtype=float32)");
/// ```
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.symbolic_text() {
            return f.write_str(&text);
        }
        let elements = elements(self, f.precision(), PREFIX.len());
        write!(f, "{PREFIX}{elements}, shape={:?}, dtype={}", self.shape(), self.dtype())?;
        match self.device() {
            Device::Cpu => f.write_str(")"),
            device => write!(f, ", device={device})"),
        }
    }
}

/// The elements. `{:.2}` gives floats two digits.
///
/// ```
/// let x = inlay::Tensor::from([[1, 20], [3, 4]]);
/// assert_eq!(x.to_string(), "[[ 1, 20],\n [ 3,  4]]");
/// assert_eq!(format!("{:.2}", inlay::Tensor::from(1.0f32 / 3.0)), "0.33");
/// ```
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbolic_text() {
            Some(text) => f.write_str(&text),
            None => f.write_str(&elements(self, f.precision(), 0)),
        }
    }
}

/// Returns the elements as text that begins in column `indent`.
fn elements(tensor: &Tensor, precision: Option<usize>, indent: usize) -> String {
    // Printing must not fail, so elements that can't be read are shown as a gap.
    let shown = try_elements(tensor, precision, indent);
    shown.unwrap_or_else(|_| GAP.into())
}

fn try_elements(tensor: &Tensor, precision: Option<usize>, indent: usize) -> Result<String> {
    let numel = tensor.numel();
    if numel == 0 {
        return Ok("[]".into());
    }
    let summary = numel > THRESHOLD;
    let shown = if summary { tensor.corners(EDGE)? } else { tensor.clone() };
    let mut words = words(shown.array(), precision)?;
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.iter_mut().for_each(|word| *word = format!("{word:>width$}"));
    let mut text = String::new();
    nest(&mut text, &words, shown.shape(), summary, indent + 1);
    Ok(text)
}

/// Appends `words`, which are the elements of `shape`, in brackets. An axis inside of the brackets
/// starts in column `indent`.
fn nest(text: &mut String, words: &[String], shape: &[usize], summary: bool, indent: usize) {
    let Some((&size, inner)) = shape.split_first() else { return text.push_str(&words[0]) };
    let separator = match inner.len() {
        0 => ", ".into(),
        axes => format!(",{}{}", "\n".repeat(axes), " ".repeat(indent)),
    };
    let cut = summary && size > 2 * EDGE;
    text.push('[');
    for (at, part) in words.chunks(words.len() / size).enumerate() {
        if cut && at > EDGE && at < size - EDGE {
            continue;
        }
        if at > 0 {
            text.push_str(&separator);
        }
        match cut && at == EDGE {
            true => text.push_str(GAP),
            false => nest(text, part, inner, summary, indent + 1),
        }
    }
    text.push(']');
}

/// Returns the elements as text, in row-major order.
fn words(array: &Array, precision: Option<usize>) -> Result<Vec<String>> {
    fn each<T: Element>(array: &Array, word: impl Fn(&T) -> String) -> Result<Vec<String>> {
        Ok(device::load::<T>(array)?.iter().map(word).collect())
    }
    fn float<T: fmt::Debug>(precision: Option<usize>) -> impl Fn(&T) -> String {
        move |value| match precision {
            Some(digits) => format!("{value:.digits$?}"),
            None => format!("{value:?}"),
        }
    }
    fn complex<T: fmt::Display>(precision: Option<usize>) -> impl Fn(&T) -> String {
        move |value| match precision {
            Some(digits) => format!("{value:.digits$}"),
            None => value.to_string(),
        }
    }
    // The `Debug` text of a float shows that it is one: 1.0, not 1.
    match array.dtype {
        DType::Bool => each::<bool>(array, bool::to_string),
        DType::U8 => each::<u8>(array, u8::to_string),
        DType::I8 => each::<i8>(array, i8::to_string),
        DType::U16 => each::<u16>(array, u16::to_string),
        DType::I16 => each::<i16>(array, i16::to_string),
        DType::U32 => each::<u32>(array, u32::to_string),
        DType::I32 => each::<i32>(array, i32::to_string),
        DType::U64 => each::<u64>(array, u64::to_string),
        DType::I64 => each::<i64>(array, i64::to_string),
        DType::F16 => each::<f16>(array, float(precision)),
        DType::BF16 => each::<bf16>(array, float(precision)),
        DType::F32 => each::<f32>(array, float(precision)),
        DType::F64 => each::<f64>(array, float(precision)),
        DType::C64 => each::<Complex32>(array, complex(precision)),
        DType::C128 => each::<Complex64>(array, complex(precision)),
    }
}

impl Tensor {
    /// Returns a copy without the middle of long axes, for a summary. An axis of more than
    /// `2 * edge` positions keeps the first `edge + 1` and the last `edge + 1`. The axis is then
    /// still longer than `2 * edge`, so a printer that sees only the copy knows where to put a gap.
    ///
    /// Only the elements that the copy has are read.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::arange(0, 100, 1, DType::I32)?;
    /// assert_eq!(x.corners(2)?.to_vec::<i32>()?, [0, 1, 2, 97, 98, 99]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A symbolic tensor; also a tensor with so many long axes that the copy would have millions of
    /// elements.
    pub fn corners(&self, edge: usize) -> Result<Tensor> {
        self.expect_elements("corners")?;
        let array = self.array();
        let (mut kept, mut shape, mut strides) = (Vec::new(), Shape::new(), Strides::new());
        for (&size, &stride) in array.shape().iter().zip(array.layout.strides()) {
            let cut = size > edge.saturating_mul(2);
            if cut {
                // An axis of the two ends. The product fits, because the last end is in memory;
                // sizes that exceed `isize` have stride 0.
                shape.push(2);
                strides.push(((size - edge - 1) as isize).wrapping_mul(stride));
            }
            shape.push(if cut { edge + 1 } else { size });
            strides.push(stride);
            kept.push(if cut { 2 * (edge + 1) } else { size });
        }
        let numel = kept.iter().fold(1usize, |product, size| product.saturating_mul(*size));
        if numel > MOST {
            return Err(Error::OutOfMemory { bytes: numel.saturating_mul(array.dtype.size()) });
        }
        let ends = array.with_layout(Layout::over(&shape, &strides, array.layout.offset()));
        Tensor::from_array(ends).copy()?.reshape(kept)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "what fails here fails the test")]
mod tests {
    use crate::{Complex32, Item, Slice, Tensor};

    fn text(tensor: &Tensor) -> String {
        format!("{tensor:?}")
    }

    #[test]
    fn rows_are_aligned_and_followed_by_shape_and_dtype() {
        let x = Tensor::from_slice(&[1.0f32, -0.25, 30.0, f32::NAN], &[2, 2]).unwrap();
        let expected = "\
Tensor([[  1.0, -0.25],
        [ 30.0,   NaN]], shape=[2, 2], dtype=float32)";
        assert_eq!(text(&x), expected);
        let x = Tensor::from_slice(&[true, false], &[2, 1, 1]).unwrap();
        let expected = "\
Tensor([[[ true]],

        [[false]]], shape=[2, 1, 1], dtype=bool)";
        assert_eq!(text(&x), expected);
    }

    #[test]
    fn scalars_have_no_brackets_and_empty_tensors_no_elements() {
        let x = Tensor::from_slice(&[Complex32::new(1.0, -2.0)], ()).unwrap();
        assert_eq!(text(&x), "Tensor(1-2i, shape=[], dtype=complex64)");
        let x = Tensor::from_slice::<u8>(&[], &[2, 0]).unwrap();
        assert_eq!(text(&x), "Tensor([], shape=[2, 0], dtype=uint8)");
    }

    #[test]
    fn more_than_a_thousand_elements_are_summarised() {
        let x: Vec<i32> = (0..3600).collect();
        let x = Tensor::from_slice(&x, &[60, 60]).unwrap();
        let x = x.transpose(&[1, 0]).unwrap();
        let x = x.index(&[Item::Slice(Slice::new(None, None, -3))]).unwrap();
        let expected = "\
Tensor([[  59,  119,  179, ..., 3479, 3539, 3599],
        [  56,  116,  176, ..., 3476, 3536, 3596],
        [  53,  113,  173, ..., 3473, 3533, 3593],
        ...,
        [   8,   68,  128, ..., 3428, 3488, 3548],
        [   5,   65,  125, ..., 3425, 3485, 3545],
        [   2,   62,  122, ..., 3422, 3482, 3542]], shape=[20, 60], dtype=int32)";
        assert_eq!(text(&x), expected);
        let x = Tensor::from_slice(&[0u8; 1000], &[1000]).unwrap();
        assert!(!text(&x).contains("..."));
    }

    /// These tensors would not fit in memory.
    #[test]
    fn only_the_elements_that_are_shown_are_read() {
        let one = Tensor::scalar(0.5f64).unwrap();
        for rank in 0..=5 {
            let large = one.broadcast_to(&vec![usize::MAX; rank]).unwrap();
            assert_eq!(text(&large).matches("0.5").count(), 6usize.pow(rank as u32));
        }
        let most = one.broadcast_to(&[7; 20]).unwrap();
        assert_eq!(text(&most), format!("Tensor(..., shape={:?}, dtype=float64)", [7; 20]));
    }

    #[test]
    fn display_shows_only_the_elements_in_the_asked_precision() {
        let x = Tensor::from([[1.0f32, -0.25], [30.0, 1.0 / 3.0]]);
        assert_eq!(format!("{x:.2}"), "[[ 1.00, -0.25],\n [30.00,  0.33]]");
        assert_eq!(Tensor::from([7u8, 10]).to_string(), "[ 7, 10]");
        assert_eq!(format!("{:.1}", Tensor::from(Complex32::new(1.0, -2.0))), "1.0-2.0i");
    }

    #[test]
    fn corners_keep_one_position_more_than_is_shown() {
        let x = Tensor::from_slice(&[0u8, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[10]).unwrap();
        assert_eq!(x.corners(1).unwrap().to_vec::<u8>().unwrap(), [0, 1, 8, 9]);
        assert_eq!(x.corners(5).unwrap().to_vec::<u8>().unwrap().len(), 10);
        assert_eq!(x.corners(usize::MAX).unwrap().shape(), [10]);
    }
}
