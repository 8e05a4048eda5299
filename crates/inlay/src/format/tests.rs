//! Texts recorded from NumPy 2.4, whose rules these are.

use inlay_cpu::Element;
use inlay_cpu::rounding::{bf16_from_f64, f16_from_f64};

use super::text;
use crate::{Complex32, Complex64, Item, Slice, Tensor, bf16, f16};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

fn tensor<T: Element>(values: &[T], shape: &[usize]) -> Tensor {
    Tensor::from_slice(values, shape).expect("a small tensor")
}

fn check<T: Element>(values: &[T], shape: &[usize], expected: &str) {
    let expected = format!("Tensor({expected}, shape={shape:?}, dtype={})", T::DTYPE);
    assert_eq!(text(&tensor(values, shape)), expected);
}

fn f16s(values: &[f32]) -> Vec<f16> {
    values.iter().map(|&value| f16::from_f32(value)).collect()
}

fn bf16s(values: &[f32]) -> Vec<bf16> {
    values.iter().map(|&value| bf16::from_f32(value)).collect()
}

fn c64s(values: &[(f32, f32)]) -> Vec<Complex32> {
    values.iter().map(|&(re, im)| Complex32::new(re, im)).collect()
}

fn c128s(values: &[(f64, f64)]) -> Vec<Complex64> {
    values.iter().map(|&(re, im)| Complex64::new(re, im)).collect()
}

/// The shape and the dtype follow the values; the prefix is part of the indentation.
#[test]
fn the_frame() {
    let x = tensor(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2]);
    let expected = "\
Tensor([[1., 2.],
        [3., 4.]], shape=[2, 2], dtype=float32)";
    assert_eq!(format!("{x:?}"), expected);
}

#[test]
fn bools_align_unless_alone() {
    check(&[true, false, true], &[3], "[ True, False,  True]");
    check(&[true], &[], "True");
    check(&[false], &[], "False");
    check(&[true], &[1], "[ True]");
    check(
        &[true, false, true, false],
        &[2, 2],
        "[[ True, False],
        [ True, False]]",
    );
}

#[test]
fn integers_are_padded_to_the_widest() {
    check(&[0u8, 200, 7], &[3], "[  0, 200,   7]");
    check(&[-128i8, 127], &[2], "[-128,  127]");
    check(&[65535u16, 0], &[2], "[65535,     0]");
    check(&[-1i16, -32768], &[2], "[    -1, -32768]");
    check(&[u32::MAX], &[1], "[4294967295]");
    check(&[i32::MIN, 5], &[2], "[-2147483648,           5]");
    check(&[u64::MAX, 0], &[2], "[18446744073709551615,                    0]");
    check(&[i64::MIN, i64::MAX], &[2], "[-9223372036854775808,  9223372036854775807]");
    check(&[-3i64], &[], "-3");
    check(
        &[1i32, -2, 30, 4],
        &[2, 2],
        "[[ 1, -2],
        [30,  4]]",
    );
}

#[test]
fn digits_are_as_few_as_tell_the_number_but_eight_at_most() {
    check(&[0.1f32, 0.25, 3.0], &[3], "[0.1 , 0.25, 3.  ]");
    check(&[0.1, 0.2, 0.30000000000000004], &[3], "[0.1, 0.2, 0.3]");
    check(&[1.0 / 3.0, 2.0 / 3.0], &[2], "[0.33333333, 0.66666667]");
    check(&[1.0f32 / 3.0, 2.0 / 3.0], &[2], "[0.33333334, 0.6666667 ]");
    check(&f16s(&[1.0 / 3.0, 0.1]), &[2], "[0.3333, 0.1   ]");
    check(&[9.9999999999, 1.0], &[2], "[10.,  1.]");
    check(&[-0.0f32, 0.0], &[2], "[-0.,  0.]");
    check(&[0.1f32], &[], "0.1");
    check(&[-1234.5678], &[], "-1234.5678");
}

#[test]
fn ties_between_digits_go_to_the_even_one() {
    // Among the shortest texts of the number.
    check(&f16s(&[256.25, 256.75]), &[2], "[256.2, 256.8]");
    check(&[2f32.powi(21) + 0.25], &[1], "[2.0971522e+06]");
    // Cut after eight digits.
    check(&[1.0 / 512.0, 3.0 / 512.0], &[2], "[0.00195312, 0.00585938]");
}

#[test]
fn powers_of_two_may_be_told_only_by_the_farther_digits() {
    check(&f16s(&[0.015625]), &[1], "[0.01563]");
    check(&[2f32.powi(87)], &[1], "[1.5474251e+26]");
    check(&[2f32.powi(-96)], &[1], "[1.2621775e-29]");
}

#[test]
fn exponents_are_for_large_small_and_uneven() {
    check(&f16s(&[999.5]), &[1], "[999.5]");
    check(&f16s(&[1000.0]), &[1], "[1.e+03]");
    check(&[999999.0f32, 1000.0], &[2], "[999999.,   1000.]");
    check(&[1000000.0f32], &[1], "[1.e+06]");
    check(&[99999999.0, 100000.0], &[2], "[99999999.,   100000.]");
    check(&[100000000.0], &[1], "[1.e+08]");
    check(&[0.0001f32], &[1], "[0.0001]");
    check(&f16s(&[0.0001]), &[1], "[0.0001]");
    check(&[9e-05f32], &[1], "[9.e-05]");
    check(&[1000.0, 1.0], &[2], "[1000.,    1.]");
    check(&[1001.0, 1.0], &[2], "[1.001e+03, 1.000e+00]");
    check(&[0.1f32, 12345.678], &[2], "[1.0000000e-01, 1.2345678e+04]");
    check(&[0.1, 1.23456789e-05], &[2], "[1.00000000e-01, 1.23456789e-05]");
    check(&[0.1f32, 1.2345678e-05, 0.0], &[3], "[1.0000000e-01, 1.2345678e-05, 0.0000000e+00]");
    check(&[1e-310, 1.0], &[2], "[1.e-310, 1.e+000]");
    check(&[5e-324, f64::MAX], &[2], "[4.94065646e-324, 1.79769313e+308]");
    check(&[-1e-09, 0.0], &[2], "[-1.e-09,  0.e+00]");
    check(&[123456789.12345679], &[1], "[1.23456789e+08]");
    check(&[1e+300, 1e-300], &[2], "[1.e+300, 1.e-300]");
}

#[test]
fn specials_are_as_wide_as_numbers() {
    check(&[f32::NAN, 1.0], &[2], "[nan,  1.]");
    check(&[NAN, INF], &[2], "[nan, inf]");
    check(&[-INF, NAN], &[2], "[-inf,  nan]");
    check(&[f32::NAN], &[1], "[nan]");
    check(&f16s(&[-f32::INFINITY]), &[], "-inf");
    check(&[-INF, 0.5], &[2], "[-inf,  0.5]");
    check(&[INF, 1e10, -2.0], &[3], "[    inf,  1.e+10, -2.e+00]");
    check(&[f32::NAN, -0.0, 1e-05], &[3], "[    nan, -0.e+00,  1.e-05]");
}

#[test]
fn complex_parts_align_apart() {
    check(&c64s(&[(1.0, 2.0), (3.0, -4.0)]), &[2], "[1.+2.j, 3.-4.j]");
    check(&c128s(&[(1.5, 0.25), (-10.0, 3.0)]), &[2], "[  1.5+0.25j, -10. +3.j  ]");
    check(
        &c128s(&[(NAN, 1.0), (1.0, 0.001), (INF, -INF)]),
        &[3],
        "[nan+1.j   ,  1.+0.001j, inf  -infj]",
    );
    check(&c128s(&[(1e10, 1.0), (1.0, -1e-10)]), &[2], "[1.e+10+1.e+00j, 1.e+00-1.e-10j]");
    check(&c64s(&[(1.0, -1.0)]), &[], "1.-1.j");
    check(&c128s(&[(NAN, NAN)]), &[1], "[nan+nanj]");
    check(&c64s(&[(-0.0, -0.0), (0.1, 0.2)]), &[2], "[-0. -0.j ,  0.1+0.2j]");
}

#[test]
fn lines_wrap_and_blocks_are_apart() {
    check(
        &std::array::from_fn::<_, 30, _>(|k| k as i64),
        &[30],
        "[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16,
        17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29]",
    );
    check(
        &std::array::from_fn::<_, 20, _>(|k| k as f32 / 8.0),
        &[20],
        "[0.   , 0.125, 0.25 , 0.375, 0.5  , 0.625, 0.75 , 0.875, 1.   ,
        1.125, 1.25 , 1.375, 1.5  , 1.625, 1.75 , 1.875, 2.   , 2.125,
        2.25 , 2.375]",
    );
    check(
        &std::array::from_fn::<_, 12, _>(|k| Complex32::new(k as f32, -(k as f32))),
        &[2, 6],
        "[[ 0. -0.j,  1. -1.j,  2. -2.j,  3. -3.j,  4. -4.j,  5. -5.j],
        [ 6. -6.j,  7. -7.j,  8. -8.j,  9. -9.j, 10.-10.j, 11.-11.j]]",
    );
    check(
        &[0u8, 1, 2, 3, 4, 5, 6, 7],
        &[2, 2, 2],
        "[[[0, 1],
         [2, 3]],

        [[4, 5],
         [6, 7]]]",
    );
    check(
        &[0u8, 1, 2, 3],
        &[2, 1, 1, 2],
        "[[[[0, 1]]],


        [[[2, 3]]]]",
    );
}

#[test]
fn bfloats_follow_the_rules_of_the_others() {
    // NumPy has none for them. Two digits always survive the type, so 100 is large.
    check(&bf16s(&[1.0, 0.1, 3.140625]), &[3], "[1.  , 0.1 , 3.14]");
    check(&bf16s(&[99.5]), &[1], "[99.5]");
    check(&bf16s(&[100.0, 1.0]), &[2], "[1.e+02, 1.e+00]");
    check(&bf16s(&[32.25]), &[1], "[32.2]");
    check(&bf16s(&[3.389e38]), &[], "3.39e+38");
    check(&bf16s(&[9.2e-41, f32::NAN]), &[2], "[9.e-41,    nan]");
}

/// Reading the text of a number gives it back.
#[test]
fn halves_survive_their_text() {
    fn read<T: Element>(value: T) -> f64 {
        let text = text(&tensor(&[value], &[]));
        let number = text.trim_start_matches("Tensor(").split(',').next();
        number.and_then(|number| number.parse().ok()).expect("a number")
    }
    for bits in 0..=u16::MAX {
        let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
        if half.is_finite() {
            assert_eq!(f16_from_f64(read(half)), half);
        }
        if brain.is_finite() {
            assert_eq!(bf16_from_f64(read(brain)), brain);
        }
    }
}

#[test]
fn no_elements() {
    check::<f32>(&[], &[0, 3], "[]");
    check::<bool>(&[], &[0], "[]");
    check::<Complex64>(&[], &[2, 0, usize::MAX], "[]");
}

#[test]
fn more_than_a_thousand_are_summarized() {
    check(&[0u8; 1001], &[1001], "[0, 0, 0, ..., 0, 0, 0]");
    assert!(!text(&tensor(&[0u8; 1000], &[1000])).contains("..."));
    check(
        &std::array::from_fn::<_, 3000, _>(|k| k as f32 / 4.0),
        &[1000, 3],
        "[[0.0000e+00, 2.5000e-01, 5.0000e-01],
        [7.5000e-01, 1.0000e+00, 1.2500e+00],
        [1.5000e+00, 1.7500e+00, 2.0000e+00],
        ...,
        [7.4775e+02, 7.4800e+02, 7.4825e+02],
        [7.4850e+02, 7.4875e+02, 7.4900e+02],
        [7.4925e+02, 7.4950e+02, 7.4975e+02]]",
    );
    // Values that are not shown have no part in the format.
    let hidden = std::array::from_fn::<_, 2000, _>(|k| if k == 1000 { 1e30 } else { 1.0 });
    check(&hidden, &[2000], "[1., 1., 1., ..., 1., 1., 1.]");
    check(
        &std::array::from_fn::<_, 1008, _>(|k| k as u16),
        &[2, 7, 72],
        "[[[   0,    1,    2, ...,   69,   70,   71],
         [  72,   73,   74, ...,  141,  142,  143],
         [ 144,  145,  146, ...,  213,  214,  215],
         ...,
         [ 288,  289,  290, ...,  357,  358,  359],
         [ 360,  361,  362, ...,  429,  430,  431],
         [ 432,  433,  434, ...,  501,  502,  503]],

        [[ 504,  505,  506, ...,  573,  574,  575],
         [ 576,  577,  578, ...,  645,  646,  647],
         [ 648,  649,  650, ...,  717,  718,  719],
         ...,
         [ 792,  793,  794, ...,  861,  862,  863],
         [ 864,  865,  866, ...,  933,  934,  935],
         [ 936,  937,  938, ..., 1005, 1006, 1007]]]",
    );
}

#[test]
fn views_are_read_where_they_are() {
    let x = tensor(&std::array::from_fn::<_, 3600, _>(|k| k as i32), &[60, 60]);
    let view = x.transpose(&[1, 0]).expect("a permutation");
    let view = view.index(&[Item::Slice(Slice::new(None, None, -3))]).expect("in range");
    let expected = "\
Tensor([[  59,  119,  179, ..., 3479, 3539, 3599],
        [  56,  116,  176, ..., 3476, 3536, 3596],
        [  53,  113,  173, ..., 3473, 3533, 3593],
        ...,
        [   8,   68,  128, ..., 3428, 3488, 3548],
        [   5,   65,  125, ..., 3425, 3485, 3545],
        [   2,   62,  122, ..., 3422, 3482, 3542]], shape=[20, 60], dtype=int32)";
    assert_eq!(text(&view), expected);
}

/// Only what is shown is read: these would not fit in memory.
#[test]
fn repeated_elements_need_no_memory() {
    let row = tensor(&[1i32, 2, 3], &[3]);
    let expected = "\
Tensor([[1, 2, 3],
        [1, 2, 3],
        [1, 2, 3],
        ...,
        [1, 2, 3],
        [1, 2, 3],
        [1, 2, 3]], shape=[1099511627776, 3], dtype=int32)";
    assert_eq!(text(&row.broadcast_to(&[1 << 40, 3]).expect("stretches")), expected);

    let one = tensor(&[0.5f64], &[]);
    for rank in 0..=8 {
        let large = text(&one.broadcast_to(&vec![usize::MAX; rank]).expect("stretches"));
        assert_eq!(large.matches("0.5").count(), 6usize.pow(rank as u32));
        let small = text(&one.broadcast_to(&vec![1; rank]).expect("stretches"));
        assert!(small.starts_with(&format!(
            "Tensor({}0.5{}, ",
            "[".repeat(rank),
            "]".repeat(rank)
        )));
    }
    let most = one.broadcast_to(&[7; 20]).expect("stretches");
    assert_eq!(text(&most), format!("Tensor(..., shape={:?}, dtype=float64)", [7; 20]));
}
