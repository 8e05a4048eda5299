// 64-bit and 128-bit integers as vectors of words, lowest word first. Results wrap.

fn pair_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn pair_neg(a: vec2<u32>) -> vec2<u32> { return pair_add(~a, vec2<u32>(1u, 0u)); }

// The 64-bit product of two words.
fn word_mul(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let left = (a >> 16u) * (b & 0xffffu);
    let right = (a & 0xffffu) * (b >> 16u);
    let middle = (low >> 16u) + (left & 0xffffu) + (right & 0xffffu);
    let high = (a >> 16u) * (b >> 16u) + (left >> 16u) + (right >> 16u) + (middle >> 16u);
    return vec2<u32>((low & 0xffffu) | (middle << 16u), high);
}

fn pair_mul(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = word_mul(a.x, b.x);
    return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}

fn pair_less(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn pair_equal(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x == b.x && a.y == b.y; }

// Shifts. A shift by 64 bits or more gives 0.
fn pair_shl(a: vec2<u32>, by: u32) -> vec2<u32> {
    if (by == 0u) { return a; }
    if (by >= 64u) { return vec2<u32>(0u, 0u); }
    if (by >= 32u) { return vec2<u32>(0u, a.x << (by - 32u)); }
    return vec2<u32>(a.x << by, (a.y << by) | (a.x >> (32u - by)));
}

fn pair_shr(a: vec2<u32>, by: u32) -> vec2<u32> {
    if (by == 0u) { return a; }
    if (by >= 64u) { return vec2<u32>(0u, 0u); }
    if (by >= 32u) { return vec2<u32>(a.y >> (by - 32u), 0u); }
    return vec2<u32>((a.x >> by) | (a.y << (32u - by)), a.y >> by);
}

fn quad_add(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
    let low = pair_add(a.xy, b.xy);
    let high = pair_add(a.zw, b.zw);
    let carry = select(0u, 1u, pair_less(low, a.xy));
    return vec4<u32>(low, pair_add(high, vec2<u32>(carry, 0u)));
}

fn quad_neg(a: vec4<u32>) -> vec4<u32> { return quad_add(~a, vec4<u32>(1u, 0u, 0u, 0u)); }

// Divides a signed 128-bit number by a count and rounds down. Returns the low half of the quotient.
fn quad_floor(sum: vec4<u32>, count: u32) -> vec2<u32> {
    let negative = (sum.w >> 31u) == 1u;
    var rest = sum;
    // Rounding a negative number down is rounding its absolute value up.
    if (negative) { rest = quad_add(quad_neg(sum), vec4<u32>(count - 1u, 0u, 0u, 0u)); }
    var quotient = vec4<u32>(0u);
    var left = 0u;
    for (var word = 3; word >= 0; word--) {
        var digit = 0u;
        for (var bit = 31; bit >= 0; bit--) {
            let over = (left >> 31u) == 1u;
            left = (left << 1u) | ((rest[word] >> u32(bit)) & 1u);
            if (over || left >= count) {
                left -= count;
                digit |= 1u << u32(bit);
            }
        }
        quotient[word] = digit;
    }
    if (negative) { quotient = quad_neg(quotient); }
    return quotient.xy;
}
