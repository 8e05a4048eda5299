//! Which vector instructions the machine has, found out once; every kernel that asks has a plain
//! path too.

/// A set of instructions that a kernel is written for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Simd {
    /// What the compiler makes of plain loops: always there.
    Portable,
    /// AVX-512 with byte and word lanes, and with expansion and compression of them (VBMI2).
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Simd {
    /// The fastest that this machine has.
    pub(crate) fn best() -> Simd {
        #[cfg(target_arch = "x86_64")]
        {
            // The macro keeps what it has found out; asking again is a load.
            let has = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vbmi2")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            if has {
                return Simd::Avx512;
            }
        }
        Simd::Portable
    }

    /// All that this machine has, for tests that pit them against each other.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Simd> {
        let mut all = vec![Simd::Portable];
        if Simd::best() != Simd::Portable {
            all.push(Simd::best());
        }
        all
    }
}
