//! Tests that every kernel compiles for every dtype that it supports, and returns an error for
//! views that don't fit.

use crate::kernels::{self, Bits, Positions};
use crate::{Buffer, View, current, scope, store};
use inlay_core::{
    Arithmetic, Combine, Comparison, DType, Error, Fold, Kind, Layout, Reduce, Result, Triangle,
    Unary,
};

/// A tensor on the device.
struct Tensor {
    buffer: Buffer,
    layout: Layout,
    dtype: DType,
}

impl Tensor {
    fn new(dtype: DType, shape: &[usize]) -> Self {
        let layout = Layout::contiguous("test", shape, dtype.size()).expect("a small layout");
        let buffer = Buffer::new(layout.numel() * dtype.size()).expect("a device");
        store(&buffer, &vec![0; buffer.len()]).expect("a successful upload");
        Tensor { buffer, layout, dtype }
    }

    fn view(&self) -> View<'_> {
        View { buffer: &self.buffer, layout: &self.layout, dtype: self.dtype }
    }

    /// A matrix that is not contiguous, because it is transposed.
    fn strided(dtype: DType, shape: &[usize]) -> Self {
        let (rows, cols) = (shape[0], shape[1]);
        let mut tensor = Tensor::new(dtype, &[cols, rows]);
        tensor.layout = tensor.layout.transpose(&[1, 0]);
        tensor
    }
}

fn positions(shape: &[usize], size: usize) -> Result<Positions> {
    let index = Tensor::new(DType::I64, shape);
    Positions::read(index.view(), size, Box::new(|at| panic!("entry {at} is 0")))
}

const ROWS: [usize; 2] = [4, 3];

/// Records every kernel for one dtype. `make` makes the destinations.
fn record_all(dtype: DType, make: fn(DType, &[usize]) -> Tensor) -> Result<()> {
    let kind = dtype.kind();
    let double = matches!(dtype, DType::F64 | DType::C128);
    let has_double = current()?.adapter().has_float64;
    let [to, a, b] = [(); 3].map(|()| make(dtype, &ROWS));
    let [to, a, b] = [&to, &a, &b].map(Tensor::view);
    let truth = make(DType::Bool, &ROWS);
    let truth = truth.view();
    let (rows, elements) = (positions(&[4], 4)?, positions(&ROWS, 4)?);

    kernels::copy(to, a)?;
    kernels::gather_rows(to, a, 0, &rows)?;
    kernels::gather_elements(to, a, 0, &elements)?;
    for base in [None, Some(b)] {
        kernels::scatter_rows("test", to, base, 0, &rows, a, Combine::Assign)?;
        kernels::scatter_elements("test", to, base, 0, &elements, a, Combine::Assign)?;
        kernels::blend(to, truth, a, base)?;
    }
    kernels::keep_triangle(to, a, Triangle::Lower, 0)?;
    let mask = make(DType::Bool, &ROWS);
    let bits = Bits::read(mask.view())?;
    kernels::expand(to, None, &bits, a)?;
    kernels::expand(to, Some(b), &bits, a)?;
    kernels::compress(to, a, &bits)?;
    for other in DType::ALL {
        kernels::cast(make(other, &ROWS).view(), a)?;
    }
    if double && !has_double {
        return Ok(());
    }

    for op in [Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply] {
        kernels::arithmetic(op, to, Some(a), b)?;
        kernels::arithmetic(op, to, None, b)?;
    }
    if matches!(kind, Kind::Float | Kind::Complex) {
        kernels::arithmetic(Arithmetic::Divide, to, Some(a), b)?;
        kernels::arithmetic(Arithmetic::Divide, to, None, b)?;
        if !matches!(dtype, DType::F32 | DType::C64) || has_double {
            kernels::products_of_others(to, b, a, None, 0, &rows)?;
            kernels::products_of_others(to, b, a, Some(b), 0, &rows)?;
            kernels::products_of_all(to, b, a, 0, &rows)?;
        }
    }
    kernels::unary(Unary::Negative, to, a)?;
    kernels::unary(Unary::Conjugate, to, a)?;
    for op in [Comparison::Equal, Comparison::NotEqual, Comparison::Same] {
        kernels::compare(op, truth, a, b)?;
    }
    kernels::scan_rows(to, a, b, 0, &rows, false)?;
    let mut folds = vec![Fold::Sum, Fold::Prod];
    let mut reduces = vec![Reduce::Sum, Reduce::Mul];
    if kind != Kind::Complex {
        for op in [Comparison::Less, Comparison::LessEqual, Comparison::Greater] {
            kernels::compare(op, truth, a, b)?;
        }
        kernels::compare(Comparison::GreaterEqual, truth, a, b)?;
        folds.extend([Fold::Amax, Fold::Amin]);
        reduces.extend([Reduce::Amax, Reduce::Amin]);
    }
    if kind != Kind::Bool {
        folds.push(Fold::Mean);
        reduces.push(Reduce::Mean);
    }
    // These sizes need kernels that join blocks in pairs and that reduce a place in parts.
    let many = Tensor::new(dtype, &[1500, 1]);
    for fold in folds {
        let wide =
            matches!(fold, Fold::Sum | Fold::Prod) && matches!(kind, Kind::Integer | Kind::Bool);
        let to = make(if wide { DType::I64 } else { dtype }, &[1, 1]);
        kernels::fold(fold, to.view(), many.view(), &[true, false])?;
    }
    let entries = 16 * (1 << 15) + 1;
    let (long, updates) = (positions(&[entries], 4)?, Tensor::new(dtype, &[entries, 1]));
    let wide = View {
        layout: &updates.layout.broadcast_to(&[entries, 3]).expect("one column broadcasts"),
        ..updates.view()
    };
    for reduce in reduces {
        let combine = Combine::Reduce { reduce, include_self: true };
        for base in [None, Some(b)] {
            kernels::scatter_rows("test", to, base, 0, &rows, a, combine)?;
        }
        kernels::scatter_rows("test", to, None, 0, &long, wide, combine)?;
    }
    Ok(())
}

/// Records commands and discards them, so nothing is submitted.
fn compile_all(make: fn(DType, &[usize]) -> Tensor) {
    for dtype in DType::ALL {
        let recorded = scope(|| {
            record_all(dtype, make)?;
            Err::<(), _>(Error::Device { reason: "recorded".into() })
        });
        let text = recorded.expect_err("always").error.to_string();
        assert!(text.ends_with("recorded"), "{dtype}: {text}");
    }
}

#[test]
fn every_kernel_compiles_for_every_dtype() {
    compile_all(Tensor::new);
}

#[test]
fn every_kernel_compiles_for_strided_views() {
    compile_all(Tensor::strided);
}

#[test]
fn kernels_of_indices_compile() {
    let recorded = scope(|| {
        let (index, many) = (positions(&ROWS, 4)?, positions(&[1000], 1 << 20)?);
        kernels::winning_elements(Tensor::new(DType::Bool, &ROWS).view(), &index, 0, 4)?;
        let words = Tensor::new(DType::I64, &[1000]);
        many.store(words.view())?;
        many.expect_chain(false, Box::new(|_| unreachable!("nothing is submitted")))?;
        kernels::neighbours(words.view(), &many, 1 << 20, true)?;
        for dtype in [DType::U8, DType::I16, DType::I32, DType::I64] {
            let to = Tensor::new(dtype, &[2, 6]);
            kernels::triangle_indices(to.view(), Triangle::Lower, (3, 3), 0)?;
        }
        Err::<(), _>(Error::Device { reason: "recorded".into() })
    });
    assert!(recorded.expect_err("always").error.to_string().ends_with("recorded"));
}

#[test]
fn views_that_do_not_fit_are_refused() {
    let (to, short) = (Tensor::new(DType::F32, &[4, 3]), Tensor::new(DType::F32, &[3, 3]));
    let double = Tensor::new(DType::F64, &[4, 3]);
    let (to, short, double) = (to.view(), short.view(), double.view());
    let from = Tensor::new(DType::F32, &[4, 3]);
    let from = from.view();
    let outside = Layout::over(&[4, 3], &[12, 4], 4);
    let crooked = Layout::over(&[4, 2], &[12, 4], 2);
    let repeated = Layout::over(&[4, 3], &[0, 4], 0);
    let (rows, wide) =
        (positions(&[4], 4).expect("a device"), positions(&[4], 9).expect("a device"));
    let mask = Tensor::new(DType::Bool, &[4, 2]);
    let bits = Bits::read(mask.view()).expect("a device");
    let add = Arithmetic::Add;
    let assign = Combine::Assign;
    let refused: [(&str, Result<()>); 19] = [
        ("shape", kernels::copy(to, short)),
        ("dtype", kernels::copy(to, double)),
        ("bounds", kernels::copy(to, View { layout: &outside, ..from })),
        ("bounds of the target", kernels::copy(View { layout: &outside, ..to }, from)),
        ("overlap", kernels::copy(View { layout: &repeated, ..to }, from)),
        (
            "alignment",
            kernels::arithmetic(
                add,
                View { layout: &crooked, ..to },
                Some(View { layout: &crooked, ..from }),
                View { layout: &crooked, ..from },
            ),
        ),
        ("shape of b", kernels::arithmetic(add, to, Some(from), short)),
        ("shape of b in place", kernels::arithmetic(add, to, None, short)),
        ("dtype of a result", kernels::compare(Comparison::Less, to, from, from)),
        ("condition", kernels::blend(to, from, from, None)),
        ("axis", kernels::gather_rows(to, from, 2, &rows)),
        ("rows", kernels::gather_rows(to, short, 0, &wide)),
        ("axis of positions", kernels::gather_rows(to, from, 0, &wide)),
        (
            "broadcast",
            kernels::gather_elements(to, from, 1, &positions(&[9], 3).expect("a device")),
        ),
        ("updates", kernels::scatter_rows("test", to, None, 0, &rows, short, assign)),
        ("base", kernels::scatter_rows("test", to, Some(short), 0, &rows, from, assign)),
        ("mask", kernels::expand(to, None, &bits, from)),
        ("axes", kernels::fold(Fold::Sum, to, from, &[true])),
        ("triangle", kernels::triangle_indices(to, Triangle::Lower, (4, 3), 0)),
    ];
    for (what, result) in refused {
        assert!(result.is_err(), "{what}");
    }
    let floats = Positions::read(from, 4, Box::new(|_| unreachable!("not recorded")));
    assert!(floats.is_err() && Bits::read(from).is_err());
}

#[test]
fn what_has_no_order_is_not_compared() {
    let [to, a] = [DType::Bool, DType::C64].map(|dtype| Tensor::new(dtype, &[3]));
    assert!(kernels::compare(Comparison::Less, to.view(), a.view(), a.view()).is_err());
}
