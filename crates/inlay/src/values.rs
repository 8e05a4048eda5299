//! Tensors of plain Rust values: numbers, arrays, slices and vectors.

use inlay_core::{DType, Error, Result, Shape, ShapeText};
use inlay_cpu::Element;

use crate::array::Array;
use crate::data::layout_of;
use crate::device::{self, Device};
use crate::sizes::{IntoShape, sizes_of};
use crate::{Complex32, Complex64, Scalar, Tensor, bf16, f16};

/// An element, or an array of such values: `f32`, `[f32; 3]`, `[[f32; 3]; 2]`.
///
/// ```
/// use inlay::Tensor;
///
/// assert_eq!(Tensor::from([[[0u8; 4]; 3]; 2]).shape(), [2, 3, 4]);
/// ```
pub trait Nested: Sized {
    /// The type of the elements.
    #[doc(hidden)]
    type Of: Element;

    /// Appends the sizes of one value.
    #[doc(hidden)]
    fn sizes(shape: &mut Shape);

    /// Returns the elements of several values.
    #[doc(hidden)]
    fn flat(values: &[Self]) -> &[Self::Of];
}

macro_rules! elements {
    ($($type:ty)*) => { $(
        impl Nested for $type {
            type Of = $type;

            fn sizes(_: &mut Shape) {}

            fn flat(values: &[$type]) -> &[$type] {
                values
            }
        }

        impl Values for $type {
            type Of = $type;

            fn shape(&self) -> Shape {
                Shape::new()
            }

            fn flat(&self) -> &[$type] {
                std::slice::from_ref(self)
            }
        }

        impl From<$type> for Tensor {
            fn from(value: $type) -> Self {
                plain(&[value], &[])
            }
        }
    )* };
}
elements!(bool u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 Complex32 Complex64);

impl<V: Nested, const N: usize> Nested for [V; N] {
    type Of = V::Of;

    fn sizes(shape: &mut Shape) {
        shape.push(N);
        V::sizes(shape);
    }

    fn flat(values: &[[V; N]]) -> &[V::Of] {
        V::flat(values.as_flattened())
    }
}

/// Values of which [`Tensor::new`] makes a tensor: a number, or an array, slice or vector of
/// numbers or of nested arrays.
///
/// ```
/// use inlay::Tensor;
///
/// let rows = vec![[1, 2], [3, 4], [5, 6]];
/// assert_eq!(Tensor::new(&rows)?.shape(), [3, 2]);
/// assert_eq!(Tensor::new(&rows[1..])?.shape(), [2, 2]);
/// assert_eq!(Tensor::new(7)?.rank(), 0);
/// # Ok::<(), inlay::Error>(())
/// ```
pub trait Values {
    /// The type of the elements.
    #[doc(hidden)]
    type Of: Element;

    /// Returns the shape.
    #[doc(hidden)]
    fn shape(&self) -> Shape;

    /// Returns the elements in row-major order.
    #[doc(hidden)]
    fn flat(&self) -> &[Self::Of];
}

impl<V: Nested, const N: usize> Values for [V; N] {
    type Of = V::Of;

    fn shape(&self) -> Shape {
        self[..].shape()
    }

    fn flat(&self) -> &[V::Of] {
        self[..].flat()
    }
}

impl<V: Nested> Values for [V] {
    type Of = V::Of;

    fn shape(&self) -> Shape {
        let mut shape = Shape::from_slice(&[self.len()]);
        V::sizes(&mut shape);
        shape
    }

    fn flat(&self) -> &[V::Of] {
        V::flat(self)
    }
}

impl<V: Nested> Values for Vec<V> {
    type Of = V::Of;

    fn shape(&self) -> Shape {
        self[..].shape()
    }

    fn flat(&self) -> &[V::Of] {
        self[..].flat()
    }
}

impl<V: Values + ?Sized> Values for &V {
    type Of = V::Of;

    fn shape(&self) -> Shape {
        (**self).shape()
    }

    fn flat(&self) -> &[V::Of] {
        (**self).flat()
    }
}

impl Tensor {
    /// Makes a tensor of a number, or of an array, a slice or a vector, which may have arrays as
    /// elements. The dtype is that of the numbers.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]])?;
    /// assert_eq!((x.shape(), x.dtype()), (&[2, 3][..], DType::I32));
    /// let y = Tensor::new(&vec![0.5f32; 4])?;
    /// assert_eq!((y.shape(), y.dtype()), (&[4][..], DType::F32));
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn new(values: impl Values) -> Result<Self> {
        of_flat("new", values.flat(), &values.shape())
    }

    /// Makes a tensor of a shape from its elements in row-major order.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(x.shape(), [2, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape with another number of elements.
    pub fn from_slice<T: Element>(values: &[T], shape: impl IntoShape) -> Result<Self> {
        let op = "from_slice";
        of_flat(op, values, &sizes_of(op, &shape.numbers())?)
    }

    /// Makes a 0-D tensor of a number, in the dtype of its type. Like a plain number, it is on the
    /// CPU, and can be used with tensors on any device.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let half = Tensor::scalar(0.5f32)?;
    /// assert_eq!((half.rank(), half.dtype()), (0, DType::F32));
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn scalar<T: Element>(value: T) -> Result<Self> {
        crate::scalar::single(value)
    }

    /// Makes a 0-D tensor of a plain number in `dtype`, for bindings. Errors name `op` and `arg`.
    ///
    /// # Errors
    /// A number that the dtype does not take.
    #[doc(hidden)]
    pub fn number(
        op: &'static str,
        arg: &'static str,
        value: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<Self> {
        value.into().to_tensor(op, arg, dtype)
    }

    /// Returns all elements in row-major order.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.to_vec::<i32>()?, [1, 2, 3, 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A type other than that of the elements; a symbolic tensor.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.expect_type::<T>("to_vec")?;
        device::load(self.array())
    }

    /// Returns the element of a tensor that has exactly one, of any rank.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1.0f32, 2.0, 3.0]);
    /// assert_eq!(x.sum(None, false)?.item::<f32>()?, 6.0);
    /// assert!(x.item::<f32>().is_err());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A type other than that of the elements, another number of elements, a symbolic tensor.
    pub fn item<T: Element>(&self) -> Result<T> {
        let op = "item";
        self.expect_type::<T>(op)?;
        let several = || Error::Argument {
            op,
            arg: "self",
            got: format!("of shape {}", ShapeText::of(self.shape())),
            expected: "a single element".into(),
        };
        if self.numel() != 1 {
            return Err(several());
        }
        device::load::<T>(self.array())?.pop().ok_or_else(several)
    }

    /// Fails unless the tensor has elements of type `T`.
    pub(crate) fn expect_type<T: Element>(&self, op: &'static str) -> Result<()> {
        self.expect_dtype(op, T::DTYPE)?;
        self.expect_elements(op)
    }
}

/// Makes a tensor on the current device.
fn of_flat<T: Element>(op: &'static str, values: &[T], shape: &[usize]) -> Result<Tensor> {
    layout_of(op, shape, T::DTYPE, values.len())?;
    let array = Array::new(op, T::DTYPE, shape)?;
    device::store(&array, values)?;
    Ok(Tensor::from_array(array))
}

/// Makes a tensor of plain data on the CPU, which can be used with tensors on any device.
///
/// A conversion can't return an error. The only one here is that memory is exhausted, and then the
/// process is aborted, as `Vec` does.
fn plain<T: Element>(values: &[T], shape: &[usize]) -> Tensor {
    let store = || {
        let array = Array::on(Device::Cpu, "from", T::DTYPE, shape)?;
        device::store(&array, values)?;
        Ok::<_, Error>(Tensor::from_array(array).plain())
    };
    let full = |_| std::alloc::handle_alloc_error(std::alloc::Layout::for_value(values));
    store().unwrap_or_else(full)
}

/// Makes a tensor of an array, which may have arrays as elements. It is on the CPU, and can be used with tensors
/// on any device, as numbers can; [`Tensor::new`] makes one on the current device.
///
/// ```
/// use inlay::Tensor;
///
/// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
/// let y = (x + 1)?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0, 4.0, 5.0]);
/// # Ok::<(), inlay::Error>(())
/// ```
impl<V: Nested, const N: usize> From<[V; N]> for Tensor {
    fn from(values: [V; N]) -> Self {
        plain(values.flat(), &values.shape())
    }
}

impl<V: Nested> From<Vec<V>> for Tensor {
    fn from(values: Vec<V>) -> Self {
        plain(values.flat(), &values.shape())
    }
}

impl<V: Nested> From<&[V]> for Tensor {
    fn from(values: &[V]) -> Self {
        plain(values.flat(), &values.shape())
    }
}
