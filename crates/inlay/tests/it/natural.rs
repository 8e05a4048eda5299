//! What users write first, from other libraries or from habit: it compiles, and does what they
//! expect.

use inlay::{
    Complex32, DType, Device, Diagonal, Error, Item, PutAlongAxis, Reduce, Result, Scalar, Scatter,
    Slice, SliceScatter, Slices, Tensor, bf16, f16,
};

/// Fails unless the elements are these, of this type.
#[track_caller]
fn holds<T: inlay::Element + PartialEq + std::fmt::Debug>(tensor: &Tensor, expected: &[T]) {
    assert_eq!(tensor.to_vec::<T>().unwrap(), expected);
}

fn matrix() -> Tensor {
    Tensor::from([[0.0f32, 1.0, 2.0], [3.0, 4.0, 5.0]])
}

#[test]
fn operators_take_tensors_and_numbers() -> Result<()> {
    let (a, b) = (Tensor::from([1.0f32, 2.0]), Tensor::from([10.0f32, 20.0]));
    holds(&(&a + &b)?, &[11.0f32, 22.0]);
    holds(&(&a - b.clone())?, &[-9.0f32, -18.0]);
    holds(&(a.clone() * &b)?, &[10.0f32, 40.0]);
    holds(&(b.clone() / a.clone())?, &[10.0f32, 10.0]);
    holds(&(a.clone() * 2.0)?, &[2.0f32, 4.0]);
    holds(&(&a + 1)?, &[2.0f32, 3.0]);
    holds(&(&a / 2f32)?, &[0.5f32, 1.0]);
    holds(&(2.0 * &a)?, &[2.0f32, 4.0]);
    holds(&(1 - &a)?, &[0.0f32, -1.0]);
    holds(&(1u8 / a.clone())?, &[1.0f32, 0.5]);
    holds(&(-&a)?, &[-1.0f32, -2.0]);
    holds(&(-a)?, &[-1.0f32, -2.0]);
    Ok(())
}

#[test]
fn expressions_need_few_question_marks() -> Result<()> {
    let (a, b) = (Tensor::from([1.0f32, 2.0]), Tensor::from([10.0f32, 20.0]));
    holds(&(&a * 2.0 + &b)?, &[12.0f32, 24.0]);
    holds(&((&a * 2.0)? + &b)?, &[12.0f32, 24.0]);
    holds(&(&b - &a * 2.0)?, &[8.0f32, 16.0]);
    holds(&(&a * &b - b.clone() + &a)?, &[1.0f32, 22.0]);
    holds(&((&a + 1)? * (&b + 1))?, &[22.0f32, 63.0]);
    holds(&a.multiply(&b - &a)?.add(1)?, &[10.0f32, 37.0]);
    Ok(())
}

#[test]
fn operators_return_errors_instead_of_panicking() {
    let (a, b) = (Tensor::from([1.0f32, 2.0]), Tensor::from([1.0f32, 2.0, 3.0]));
    let text = |result: Result<Tensor>| result.unwrap_err().to_string();
    assert_eq!(text(&a + &b), "add: shapes [2] and [3] do not broadcast together");
    // The first error of a chain comes out.
    assert_eq!(text(&a + &b - &a), "add: shapes [2] and [3] do not broadcast together");
    assert_eq!(text(&a - (&a + &b)), "add: shapes [2] and [3] do not broadcast together");
    let integers = Tensor::from([1, 2]);
    let expected = "is a float, which a int32 tensor does not take without a cast";
    assert_eq!(text(&integers * 0.5), format!("multiply: y {expected}"));
    assert_eq!(text(0.5 - &integers), format!("subtract: x {expected}"));
    assert!(matches!(&a + &integers, Err(Error::DTypeMismatch { .. })));
}

#[test]
fn comparisons_take_numbers() -> Result<()> {
    let x = Tensor::from([1, 2, 3]);
    holds(&x.greater_than(1)?, &[false, true, true]);
    holds(&x.equal(&x)?, &[true, true, true]);
    holds(&x.masked_fill(&x.less_than(3)?, 0)?, &[0, 0, 3]);
    holds(&x.index_fill(&Tensor::from([0i64]), 0, 9u8)?, &[9, 2, 3]);
    Ok(())
}

#[test]
fn gradients_flow_through_operators() -> Result<()> {
    let x = Tensor::from([1.0f32, 2.0]).with_gradient()?;
    let loss = ((&x * &x)? * 3.0 - &x)?.sum(None, false)?;
    loss.backward(None, false)?;
    holds(&x.grad().unwrap(), &[5.0f32, 11.0]);
    Ok(())
}

#[test]
fn tensors_are_made_of_plain_values() -> Result<()> {
    let x = Tensor::from([1.0f32, 2.0]);
    assert_eq!((x.shape(), x.dtype()), (&[2][..], DType::F32));
    let x = Tensor::from([[1, 2], [3, 4]]);
    assert_eq!((x.shape(), x.dtype()), (&[2, 2][..], DType::I32));
    holds(&x, &[1, 2, 3, 4]);
    let x = Tensor::from([[[1u8; 4]; 3]; 2]);
    assert_eq!(x.shape(), [2, 3, 4]);
    holds(&Tensor::from(vec![1i64, 2]), &[1i64, 2]);
    assert_eq!(Tensor::from(vec![[1.0, 2.0]; 5]).shape(), [5, 2]);
    assert_eq!(Tensor::from(Vec::<f32>::new()).shape(), [0]);
    holds(&Tensor::from(&[true, false][..]), &[true, false]);
    assert_eq!(Tensor::from(1.5f32).item::<f32>()?, 1.5);
    holds(&Tensor::new(&[1.0, 2.0])?, &[1.0, 2.0]);
    holds(&Tensor::new(vec![f16::ONE])?, &[f16::ONE]);
    assert_eq!(Tensor::new(3i64)?.rank(), 0);
    assert_eq!(Tensor::scalar(1.0)?.item::<f64>()?, 1.0);
    assert_eq!(Tensor::scalar(1u8)?.dtype(), DType::U8);
    let converted: Tensor = [1, 2, 3].into();
    assert_eq!(converted.numel(), 3);
    Ok(())
}

#[test]
fn single_elements_come_out() -> Result<()> {
    assert_eq!(matrix().sum(None, false)?.item::<f32>()?, 15.0);
    assert_eq!(matrix().i((1, 1))?.item::<f32>()?, 4.0);
    assert_eq!(matrix().i((1.., ..1))?.item::<f32>()?, 3.0);
    let text = matrix().item::<f32>().unwrap_err().to_string();
    assert_eq!(text, "item: self is of shape [2, 3], expected a single element");
    let text = Tensor::scalar(1i64)?.item::<f32>().unwrap_err().to_string();
    assert_eq!(text, "item: self has dtype int64, expected float32");
    Ok(())
}

#[test]
fn tensors_print() {
    assert_eq!(Tensor::from([1, 2]).to_string(), "[1, 2]");
    assert_eq!(format!("{}", matrix()), "[[0.0, 1.0, 2.0],\n [3.0, 4.0, 5.0]]");
    assert_eq!(format!("{:.1}", Tensor::from(0.25f64)), "0.2");
    assert_eq!(format!("{:?}", Tensor::from(1)), "Tensor(1, shape=[], dtype=int32)");
}

#[test]
fn any_number_is_a_scalar() {
    let integers: [Scalar; 10] = [
        1i8.into(),
        1i16.into(),
        1i32.into(),
        1i64.into(),
        1isize.into(),
        1u8.into(),
        1u16.into(),
        1u32.into(),
        1u64.into(),
        1usize.into(),
    ];
    assert!(integers.iter().all(|scalar| *scalar == Scalar::Int(1)));
    let floats: [Scalar; 4] = [1f32.into(), 1f64.into(), f16::ONE.into(), bf16::ONE.into()];
    assert!(floats.iter().all(|scalar| *scalar == Scalar::Float(1.0)));
    assert_eq!(Scalar::from(true), Scalar::Bool(true));
    assert_eq!(
        Scalar::from(Complex32::new(1.0, 2.0)),
        Scalar::Complex(inlay::Complex64::new(1.0, 2.0))
    );
    assert_eq!(Scalar::from(u64::MAX), Scalar::Int(u64::MAX.into()));
}

#[test]
fn sizes_are_of_any_integer_and_any_list() -> Result<()> {
    let shape = vec![2usize, 3];
    for x in [
        Tensor::zeros([2, 3], DType::F32)?,
        Tensor::zeros(&[2, 3], DType::F32)?,
        Tensor::ones([2usize, 3], DType::F32)?,
        Tensor::ones(&shape, DType::F32)?,
        Tensor::full(shape.clone(), 1, DType::F32)?,
        Tensor::full(&shape[..], 1.5, DType::F32)?,
        Tensor::zeros(matrix().shape(), matrix().dtype())?,
        Tensor::from_slice(&[0.0f32; 6], [2i64, 3])?,
        matrix().reshape([3, 2])?.reshape(&[2, -1])?,
        matrix().reshape(&shape)?,
        Tensor::zeros([1, 3], DType::F32)?.broadcast_to([2, 3])?,
        Tensor::zeros(3, DType::F32)?.broadcast_to(matrix().shape())?,
        Tensor::scatter_nd(&Tensor::from([[1]]), &Tensor::zeros([1, 3], DType::F32)?, [2, 3])?,
    ] {
        assert_eq!(x.shape(), [2, 3]);
    }
    assert_eq!(Tensor::zeros((), DType::F32)?.rank(), 0);
    assert_eq!(Tensor::zeros(4, DType::F32)?.shape(), [4]);
    assert_eq!(matrix().reshape(-1)?.shape(), [6]);
    Ok(())
}

#[test]
fn negative_and_huge_sizes_are_errors() {
    let text = |result: Result<Tensor>| result.unwrap_err().to_string();
    let expected = "zeros: shape is [2, -1], expected sizes of at least 0";
    assert_eq!(text(Tensor::zeros([2, -1], DType::F32)), expected);
    assert!(text(matrix().broadcast_to([-2, 3])).starts_with("broadcast_to: shape is [-2, 3]"));
    assert!(text(matrix().reshape([-1, -1])).contains("at most one -1"));
    assert!(text(matrix().reshape([-2, 3])).contains("sizes, and at most one -1"));
    assert!(text(Tensor::zeros([u64::MAX, 2], DType::F32)).contains("more memory"));
    assert!(matrix().reshape([u64::MAX, 2]).is_err());
}

#[test]
fn axes_are_of_any_integer_and_any_list() -> Result<()> {
    let x = matrix();
    holds(&x.sum(0, false)?, &[3.0f32, 5.0, 7.0]);
    holds(&x.sum(-1, false)?, &[3.0f32, 12.0]);
    assert_eq!(x.sum([0, 1], true)?.shape(), [1, 1]);
    assert_eq!(x.mean(None, true)?.shape(), [1, 1]);
    let axes = vec![0usize];
    holds(&x.amax(&axes, false)?, &[3.0f32, 4.0, 5.0]);
    assert_eq!(x.prod(&axes[..], false)?.shape(), [3]);
    assert_eq!(x.transpose([1, 0])?.shape(), [3, 2]);
    assert_eq!(x.transpose(None)?.shape(), [3, 2]);
    let last = x.rank() - 1;
    holds(&x.index_select(&Tensor::from([2]), last)?, &[2.0f32, 5.0]);
    assert_eq!(Tensor::concat(&[&x, &x], 1usize)?.shape(), [2, 6]);
    assert_eq!(Tensor::concat(&[x.clone(), x.clone()], 0)?.shape(), [4, 3]);
    assert_eq!(Tensor::stack(&vec![x.clone(); 3], -1)?.shape(), [2, 3, 3]);
    holds(&x.tril(0)?.i(0)?, &[0.0f32, 0.0, 0.0]);
    assert!(x.sum(usize::MAX, false).is_err());
    Ok(())
}

#[test]
fn index_expressions_are_tuples() -> Result<()> {
    let x = matrix();
    holds(&x.i(1)?, &[3.0f32, 4.0, 5.0]);
    holds(&x.i(-1)?, &[3.0f32, 4.0, 5.0]);
    holds(&x.i((.., 1..3))?, &[1.0f32, 2.0, 4.0, 5.0]);
    holds(&x.i((.., 1usize))?, &[1.0f32, 4.0]);
    holds(&x.i((0, ..=1))?, &[0.0f32, 1.0]);
    holds(&x.i((.., -1..))?, &[2.0f32, 5.0]);
    holds(&x.i((.., ..=-2))?, &[0.0f32, 1.0, 3.0, 4.0]);
    holds(&x.i((0, Slice::from(..).step(-1)))?, &[2.0f32, 1.0, 0.0]);
    let rows = Tensor::from([1i64, 0, 1]);
    holds(&x.i((&rows, 0))?, &[3.0f32, 0.0, 3.0]);
    holds(&x.i((.., rows.clone()))?.i(0)?, &[1.0f32, 0.0, 1.0]);
    holds(&x.i((.., [2, 0]))?, &[2.0f32, 0.0, 5.0, 3.0]);
    holds(&x.i((.., vec![2usize]))?, &[2.0f32, 5.0]);
    holds(&x.i(&x.greater_than(3)?)?, &[4.0f32, 5.0]);
    assert_eq!(x.i((Item::NewAxis, Item::Ellipsis, 0))?.shape(), [1, 2]);
    assert_eq!(x.i(())?.shape(), [2, 3]);
    assert_eq!(x.i(..)?.shape(), [2, 3]);
    let eight = Tensor::zeros([1; 8], DType::F32)?;
    assert_eq!(eight.i((0, 0, 0, 0, 0, 0, 0, ..))?.shape(), [1]);
    let text = x.i((.., 3)).unwrap_err().to_string();
    assert_eq!(text, "getitem: index is 3, out of range for axis 1 of size 3");
    Ok(())
}

#[test]
fn parts_are_set_to_tensors_and_numbers() -> Result<()> {
    let x = Tensor::zeros([2, 3], DType::I32)?;
    x.set((.., 0), 7)?;
    x.set((0, 1..), &Tensor::from([1, 2]))?.set((1, -1), Tensor::from(9))?;
    holds(&x, &[7, 1, 2, 7, 0, 9]);
    x.set(.., 0)?;
    x.set((.., [0, 2]), 5)?;
    holds(&x, &[5, 0, 5, 5, 0, 5]);
    x.set(&x.equal(5)?, 1)?;
    holds(&x, &[1, 0, 1, 1, 0, 1]);
    let text = x.set((.., 0), 0.5).unwrap_err().to_string();
    assert!(text.starts_with("setitem: value is a float"), "{text}");
    holds(&x, &[1, 0, 1, 1, 0, 1]);
    Ok(())
}

#[test]
fn options_go_by_value() -> Result<()> {
    let (x, y) = (Tensor::zeros([2, 4], DType::I32)?, Tensor::from([[1, 2], [3, 4]]));
    holds(&x.slice_scatter(&y, (1, 2..4))?, &[0, 0, 1, 2, 0, 0, 3, 4]);
    let at = SliceScatter::new(1, ..).step(2);
    holds(&x.slice_scatter(&y, at.clone())?, &[1, 0, 2, 0, 3, 0, 4, 0]);
    assert_eq!(x.slice(&at)?.shape(), [2, 2]);
    assert_eq!(x.slice(Slices::new(0, 1..).and(1usize, -1..))?.shape(), [1, 1]);
    x.slice_scatter_(&y, (-1, ..2))?;
    holds(&x, &[1, 2, 0, 0, 3, 4, 0, 0]);
    let row = Tensor::from([9, 9, 9, 9]);
    holds(&x.select_scatter(&row, (0, -1))?, &[1, 2, 0, 0, 9, 9, 9, 9]);
    holds(&x.diagonal(1)?, &[2, 0]);
    holds(&x.diagonal_scatter(&Tensor::from([8, 8]), 0)?.diagonal(Diagonal::default())?, &[8, 8]);
    Ok(())
}

#[test]
fn both_scatters_leave_the_old_value_out_unless_asked() -> Result<()> {
    let (x, index) = (Tensor::from([10, 10]), Tensor::from([0i64, 0]));
    let updates = Tensor::from([1, 2]);
    holds(&x.scatter(&index, &updates, Scatter::reduce(Reduce::Sum))?, &[3, 10]);
    holds(&x.put_along_axis(&index, &updates, PutAlongAxis::reduce(0, Reduce::Sum))?, &[3, 10]);
    let how = Scatter::reduce(Reduce::Sum).include_self(true).axis(0usize);
    holds(&x.scatter(&index, &updates, how)?, &[13, 10]);
    let how = PutAlongAxis::reduce(0, Reduce::Sum).include_self(true);
    holds(&x.put_along_axis(&index, &updates, how)?, &[13, 10]);
    Ok(())
}

#[test]
fn shapes_change_and_repeat() -> Result<()> {
    let x = Tensor::from([[1, 2], [3, 4]]);
    assert_eq!(x.unsqueeze(0)?.shape(), [1, 2, 2]);
    assert_eq!(x.unsqueeze([0, -1])?.squeeze(None)?.shape(), [2, 2]);
    assert_eq!(x.unsqueeze(-1)?.squeeze(2)?.shape(), [2, 2]);
    assert_eq!(x.flatten(0, -1)?.shape(), [4]);
    holds(&Tensor::zeros_like(&x)?, &[0, 0, 0, 0]);
    holds(&x.ones_like()?, &[1, 1, 1, 1]);
    holds(&x.full_like(7)?, &[7, 7, 7, 7]);
    holds(&x.gather_nd(&Tensor::from([[1i64, 0]]))?, &[3]);
    Ok(())
}

#[test]
fn names_parse_and_errors_list_them() {
    let reductions = [
        (Reduce::Sum, &["sum", "add"][..]),
        (Reduce::Mul, &["mul", "prod", "multiply"]),
        (Reduce::Mean, &["mean"]),
        (Reduce::Amax, &["amax", "max"]),
        (Reduce::Amin, &["amin", "min"]),
    ];
    for (reduce, names) in reductions {
        assert!(names.iter().all(|name| name.parse() == Ok(reduce)));
    }
    assert_eq!("int64".parse(), Ok(DType::I64));
    assert_eq!("cpu".parse(), Ok(Device::Cpu));
    fn error<T: std::str::FromStr<Err: std::error::Error>>(name: &str) -> String {
        name.parse::<T>().err().unwrap().to_string()
    }
    assert_eq!(
        error::<Reduce>("median"),
        "parse: reduction is \"median\", expected one of sum, mul, mean, amax, amin (or add, prod, \
         multiply, max, min)"
    );
    assert!(
        error::<DType>("f32")
            .ends_with("float16, bfloat16, float32, float64, complex64, complex128")
    );
    assert!(error::<Device>("tpu").contains("\"cpu\", \"gpu\""));
}

/// A function of a user, whose error type is any error.
fn parse_and_reduce(name: &str) -> std::result::Result<f32, Box<dyn std::error::Error>> {
    let reduce: Reduce = name.parse()?;
    let x = Tensor::zeros(1, DType::F32)?;
    let how = Scatter::reduce(reduce);
    Ok(x.scatter(&Tensor::from([0, 0]), &Tensor::from([2.0f32, 4.0]), how)?.item()?)
}

#[test]
fn errors_go_through_question_marks() {
    assert_eq!(parse_and_reduce("mean").unwrap(), 3.0);
    assert!(parse_and_reduce("median").is_err());
}
