// f16 is computed as a 32-bit float. `num` is exact, `raw` rounds once, ties to even.
fn num(h: u32) -> f32 {
    let sign = (h & 0x8000u) << 16u;
    let mantissa = h & 0x3ffu;
    let exponent = (h >> 10u) & 0x1fu;
    if (exponent == 0x1fu) {
        let quiet = select(0u, 0x400000u, mantissa != 0u);
        return bitcast<f32>(sign | 0x7f800000u | quiet | (mantissa << 13u));
    }
    if (exponent == 0u) {
        // A subnormal f16 is a multiple of 2^-24, which is a normal 32-bit float.
        return bitcast<f32>(sign | bitcast<u32>(f32(mantissa) * 5.9604644775390625e-8));
    }
    return bitcast<f32>(sign | ((exponent + 112u) << 23u) | (mantissa << 13u));
}

fn raw(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let sign = (bits >> 16u) & 0x8000u;
    let size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) { return sign | 0x7e00u | ((size >> 13u) & 0x3ffu); }
    if (size >= 0x477ff000u) { return sign | 0x7c00u; }
    if (size >= 0x38800000u) {
        let rounded = size + 0xfffu + ((size >> 13u) & 1u);
        return sign | ((rounded - 0x38000000u) >> 13u);
    }
    if (size <= 0x33000000u) { return sign; }
    // The result is subnormal: a multiple of 2^-24.
    let shift = 126u - (size >> 23u);
    let mantissa = (size & 0x7fffffu) | 0x800000u;
    let whole = mantissa >> shift;
    let rest = mantissa & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    let up = rest > half || (rest == half && (whole & 1u) == 1u);
    return sign | (whole + select(0u, 1u, up));
}
