//! Texts recorded from NumPy 2.4, whose rules these are.

use inlay_cpu::Element;

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
    check(&f16s(&[256.25, 256.75]), &[2], "[256.2, 256.8]");
    check(&[524288.03125f32], &[1], "[524288.]");
    check(&[1.000000015], &[1], "[1.00000001]");
    check(&[0.1250000025], &[1], "[0.125]");
    check(&f16s(&[5.960_464_5e-8]), &[1], "[6.e-08]");
    check(&f16s(&[9.536_743e-7]), &[1], "[9.5e-07]");
    check(&[5.684341886080802e-14], &[1], "[5.68434189e-14]");
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
            assert_eq!(f16::from_f32(super::float::to_odd(read(half))), half);
        }
        if brain.is_finite() {
            assert_eq!(bf16::from_f32(super::float::to_odd(read(brain))), brain);
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
    let x = tensor(&std::array::from_fn::<_, 1200, _>(|k| k as i32), &[40, 30]);
    let view = x.transpose(&[1, 0]).expect("a permutation");
    let view = view.index(&[Item::Slice(Slice::new(None, None, -3))]).expect("in range");
    let expected = "\
Tensor([[  29,   59,   89,  119,  149,  179,  209,  239,  269,  299,  329,
          359,  389,  419,  449,  479,  509,  539,  569,  599,  629,  659,
          689,  719,  749,  779,  809,  839,  869,  899,  929,  959,  989,
         1019, 1049, 1079, 1109, 1139, 1169, 1199],
        [  26,   56,   86,  116,  146,  176,  206,  236,  266,  296,  326,
          356,  386,  416,  446,  476,  506,  536,  566,  596,  626,  656,
          686,  716,  746,  776,  806,  836,  866,  896,  926,  956,  986,
         1016, 1046, 1076, 1106, 1136, 1166, 1196],
        [  23,   53,   83,  113,  143,  173,  203,  233,  263,  293,  323,
          353,  383,  413,  443,  473,  503,  533,  563,  593,  623,  653,
          683,  713,  743,  773,  803,  833,  863,  893,  923,  953,  983,
         1013, 1043, 1073, 1103, 1133, 1163, 1193],
        [  20,   50,   80,  110,  140,  170,  200,  230,  260,  290,  320,
          350,  380,  410,  440,  470,  500,  530,  560,  590,  620,  650,
          680,  710,  740,  770,  800,  830,  860,  890,  920,  950,  980,
         1010, 1040, 1070, 1100, 1130, 1160, 1190],
        [  17,   47,   77,  107,  137,  167,  197,  227,  257,  287,  317,
          347,  377,  407,  437,  467,  497,  527,  557,  587,  617,  647,
          677,  707,  737,  767,  797,  827,  857,  887,  917,  947,  977,
         1007, 1037, 1067, 1097, 1127, 1157, 1187],
        [  14,   44,   74,  104,  134,  164,  194,  224,  254,  284,  314,
          344,  374,  404,  434,  464,  494,  524,  554,  584,  614,  644,
          674,  704,  734,  764,  794,  824,  854,  884,  914,  944,  974,
         1004, 1034, 1064, 1094, 1124, 1154, 1184],
        [  11,   41,   71,  101,  131,  161,  191,  221,  251,  281,  311,
          341,  371,  401,  431,  461,  491,  521,  551,  581,  611,  641,
          671,  701,  731,  761,  791,  821,  851,  881,  911,  941,  971,
         1001, 1031, 1061, 1091, 1121, 1151, 1181],
        [   8,   38,   68,   98,  128,  158,  188,  218,  248,  278,  308,
          338,  368,  398,  428,  458,  488,  518,  548,  578,  608,  638,
          668,  698,  728,  758,  788,  818,  848,  878,  908,  938,  968,
          998, 1028, 1058, 1088, 1118, 1148, 1178],
        [   5,   35,   65,   95,  125,  155,  185,  215,  245,  275,  305,
          335,  365,  395,  425,  455,  485,  515,  545,  575,  605,  635,
          665,  695,  725,  755,  785,  815,  845,  875,  905,  935,  965,
          995, 1025, 1055, 1085, 1115, 1145, 1175],
        [   2,   32,   62,   92,  122,  152,  182,  212,  242,  272,  302,
          332,  362,  392,  422,  452,  482,  512,  542,  572,  602,  632,
          662,  692,  722,  752,  782,  812,  842,  872,  902,  932,  962,
          992, 1022, 1052, 1082, 1112, 1142, 1172]], shape=[10, 40], dtype=int32)";
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
