// Converts an element to another dtype. The element is split into a sign, a 64-bit integer and an
// exponent, and composed again with one rounding. Only integer arithmetic is used.

const BOOL: u32 = 0u;
const UNSIGNED: u32 = 1u;
const SIGNED: u32 = 2u;
const FLOAT: u32 = 3u;

const FINITE: u32 = 0u;
const INFINITE: u32 = 1u;
const NAN: u32 = 2u;

// The number m * 2^e. For NaN, m has the bits of the mantissa, aligned to the highest bit.
struct Real {
    kind: u32,
    negative: bool,
    m: vec2<u32>,
    e: i32,
}

fn is_zero(a: vec2<u32>) -> bool { return a.x == 0u && a.y == 0u; }

// The number of leading zeros.
fn leading(a: vec2<u32>) -> u32 {
    if (a.y != 0u) { return countLeadingZeros(a.y); }
    return 32u + countLeadingZeros(a.x);
}

// The lowest `count` bits.
fn lowest(a: vec2<u32>, count: u32) -> vec2<u32> {
    return pair_shr(pair_shl(a, 64u - count), 64u - count);
}

// Splits an element of the source dtype.
fn apart(bits: vec2<u32>) -> Real {
    if (FROM_KIND == BOOL) {
        return Real(FINITE, false, vec2<u32>(select(0u, 1u, bits.x != 0u), 0u), 0);
    }
    if (FROM_KIND == UNSIGNED) { return Real(FINITE, false, bits, 0); }
    if (FROM_KIND == SIGNED) {
        // This shift moves the sign bit to the highest bit.
        let top = pair_shl(bits, 64u - FROM_BITS);
        if ((top.y >> 31u) == 0u) { return Real(FINITE, false, bits, 0); }
        return Real(FINITE, true, pair_shr(pair_neg(top), 64u - FROM_BITS), 0);
    }
    let digits = FROM_DIGITS - 1u;
    let negative = (pair_shr(bits, FROM_BITS - 1u).x & 1u) == 1u;
    let full = (1u << (FROM_BITS - FROM_DIGITS)) - 1u;
    let exponent = pair_shr(bits, digits).x & full;
    let mantissa = lowest(bits, digits);
    if (exponent == full) {
        if (is_zero(mantissa)) { return Real(INFINITE, negative, mantissa, 0); }
        return Real(NAN, negative, pair_shl(mantissa, 64u - digits), 0);
    }
    let e = max(i32(exponent), 1) - i32(FROM_BIAS) - i32(digits);
    if (exponent == 0u) { return Real(FINITE, negative, mantissa, e); }
    return Real(FINITE, negative, mantissa | pair_shl(vec2<u32>(1u, 0u), digits), e);
}

// Composes a float and rounds to nearest, ties to even.
fn to_float(x: Real) -> vec2<u32> {
    let digits = TO_DIGITS - 1u;
    var sign = vec2<u32>(0u, 0u);
    if (x.negative) { sign = pair_shl(vec2<u32>(1u, 0u), TO_BITS - 1u); }
    let full = pair_shl(vec2<u32>((1u << (TO_BITS - TO_DIGITS)) - 1u, 0u), digits);
    if (x.kind == INFINITE) { return sign | full; }
    if (x.kind == NAN) {
        let quiet = pair_shl(vec2<u32>(1u, 0u), digits - 1u);
        return sign | full | quiet | pair_shr(x.m, 64u - digits);
    }
    if (is_zero(x.m)) { return sign; }
    let zeros = leading(x.m);
    let m = pair_shl(x.m, zeros);
    // The exponent of the highest bit of m.
    let high = x.e - i32(zeros) + 63;
    let bias = i32(TO_BIAS);
    if (high > bias) { return sign | full; }
    let below = max(1 - bias - high, 0);
    // The number of low bits that are dropped. A subnormal result has fewer digits.
    let drop = 64 - i32(TO_DIGITS) + below;
    if (drop > 64) { return sign; }
    let whole = pair_shr(m, u32(drop));
    let half = (pair_shr(m, u32(drop) - 1u).x & 1u) == 1u;
    let more = !is_zero(lowest(m, u32(drop) - 1u));
    var result = whole;
    if (below == 0) {
        // The exponent field is 1 too small, because the hidden bit of the mantissa adds 1 to it.
        result = pair_add(result, pair_shl(vec2<u32>(u32(high + bias - 1), 0u), digits));
    }
    if (half && (more || (whole.x & 1u) == 1u)) { result = pair_add(result, vec2<u32>(1u, 0u)); }
    return sign | result;
}

// Composes an integer. Integers wrap. Floats are truncated and saturate, and NaN becomes 0.
fn to_integer(x: Real) -> vec2<u32> {
    if (FROM_KIND != FLOAT) {
        if (x.negative) { return pair_neg(x.m); }
        return x.m;
    }
    if (x.kind == NAN) { return vec2<u32>(0u, 0u); }
    var size = x.m;
    var over = x.kind == INFINITE;
    if (!over && x.e > 0) {
        over = !is_zero(x.m) && x.e > i32(leading(x.m));
        size = pair_shl(x.m, u32(x.e));
    } else if (!over) {
        size = pair_shr(x.m, u32(-x.e));
    }
    if (TO_KIND == UNSIGNED) {
        if (x.negative) { return vec2<u32>(0u, 0u); }
        let largest = pair_shr(vec2<u32>(0xffffffffu, 0xffffffffu), 64u - TO_BITS);
        if (over || pair_less(largest, size)) { return largest; }
        return size;
    }
    let end = pair_shl(vec2<u32>(1u, 0u), TO_BITS - 1u);
    if (x.negative) {
        if (over || pair_less(end, size)) { return end; }
        return pair_neg(size);
    }
    if (over || !pair_less(size, end)) { return pair_add(end, vec2<u32>(0xffffffffu, 0xffffffffu)); }
    return size;
}

// Between equal float formats all bits are kept, also those of NaN.
fn converted(bits: vec2<u32>) -> vec2<u32> {
    let same = FROM_KIND == FLOAT && TO_KIND == FLOAT && FROM_DIGITS == TO_DIGITS;
    if (same) { return bits; }
    return together(apart(bits));
}

// Composes an element of the destination dtype.
fn together(x: Real) -> vec2<u32> {
    if (TO_KIND == FLOAT) { return to_float(x); }
    return to_integer(x);
}

fn value(i: u32) -> Stored {
    let element = load_a(at_a(i));
    if (TO_KIND == BOOL) {
        let x = apart(re(element));
        let y = apart(im(element));
        let nothing = x.kind == FINITE && is_zero(x.m) && y.kind == FINITE && is_zero(y.m);
        return join(vec2<u32>(select(1u, 0u, nothing), 0u), vec2<u32>(0u, 0u));
    }
    var other = vec2<u32>(0u, 0u);
    if (FROM_KIND == FLOAT && TO_KIND == FLOAT) { other = converted(im(element)); }
    return join(converted(re(element)), other);
}
