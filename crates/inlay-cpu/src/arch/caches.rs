//! The sizes of the data caches, as the system reports them.

use std::sync::OnceLock;

/// The sizes in bytes of the data caches that one core uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caches {
    /// The size of the first level.
    pub first: usize,
    /// The size of the second level.
    pub second: usize,
    /// The size of the last level, which cores may share.
    pub last: usize,
}

impl Caches {
    /// The sizes that are assumed if the system reports none.
    const DEFAULT: Caches = Caches { first: 32 << 10, second: 1 << 20, last: 32 << 20 };

    /// Clamps the sizes to plausible values. A virtual machine may report the whole last-level
    /// cache of its host (several hundred MiB), although it gets only a small part of it. An
    /// emulator may report a cache of a few KiB.
    fn bounded(self) -> Caches {
        let first = self.first.clamp(16 << 10, 256 << 10);
        let second = self.second.clamp(256 << 10, 16 << 20);
        Caches { first, second, last: self.last.max(second).clamp(4 << 20, 64 << 20) }
    }
}

/// Returns the cache sizes of this machine. They are read once.
pub fn caches() -> Caches {
    static CACHES: OnceLock<Caches> = OnceLock::new();
    *CACHES.get_or_init(|| reported().unwrap_or(Caches::DEFAULT).bounded())
}

/// Reads the sizes from sysfs, where Linux has a directory for each cache of a processor.
#[cfg(target_os = "linux")]
fn reported() -> Option<Caches> {
    let entries = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let read = |entry: std::fs::DirEntry| {
        let text = |name: &str| std::fs::read_to_string(entry.path().join(name)).ok();
        described(&text("level")?, &text("type")?, &text("size")?)
    };
    of_levels(entries.flatten().filter_map(read))
}

/// Parses the level and the size in bytes of a data cache from the files of its directory. Returns
/// `None` for an instruction cache.
#[cfg(any(test, target_os = "linux"))]
fn described(level: &str, kind: &str, size: &str) -> Option<(usize, usize)> {
    if kind.trim() == "Instruction" {
        return None;
    }
    let size = size.trim();
    let digits = size.trim_end_matches(|unit: char| !unit.is_ascii_digit());
    let unit = match &size[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    Some((level.trim().parse().ok()?, digits.parse::<usize>().ok()?.checked_mul(unit)?))
}

/// Reads the size of each level by `sysctl`. On macOS the second level may be the last one.
#[cfg(target_os = "macos")]
fn reported() -> Option<Caches> {
    let levels = [c"hw.l1dcachesize", c"hw.l2cachesize", c"hw.l3cachesize"];
    of_levels(levels.into_iter().zip(1..).filter_map(|(name, level)| {
        let (mut value, mut len) = (0u64, size_of::<u64>());
        // SAFETY: the name is a C string, and the system writes at most `len` bytes to `value`.
        let failed = unsafe {
            let to = (&raw mut value).cast();
            libc::sysctlbyname(name.as_ptr(), to, &raw mut len, std::ptr::null_mut(), 0)
        };
        let bytes = usize::try_from(value).ok()?;
        (failed == 0 && bytes > 0).then_some((level, bytes))
    }))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn reported() -> Option<Caches> {
    None
}

/// Returns the caches that pairs of level and bytes describe, or `None` if the first or the second
/// level is missing.
#[cfg(any(test, target_os = "linux", target_os = "macos"))]
fn of_levels(levels: impl Iterator<Item = (usize, usize)>) -> Option<Caches> {
    let mut levels: Vec<(usize, usize)> = levels.filter(|&(_, bytes)| bytes > 0).collect();
    levels.sort_unstable();
    let of = |wanted: usize| levels.iter().find(|&&(level, _)| level == wanted).map(|&(_, b)| b);
    Some(Caches { first: of(1)?, second: of(2)?, last: levels.last()?.1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_become_sizes() {
        let texts = [
            ("1\n", "Data\n", "48K\n"),
            ("1\n", "Instruction\n", "64K\n"),
            ("3\n", "Unified\n", "1G\n"),
            ("2\n", "Unified\n", "2048K\n"),
        ];
        let caches = of_levels(texts.into_iter().filter_map(|(l, k, s)| described(l, k, s)));
        let expected = Caches { first: 48 << 10, second: 2 << 20, last: 1 << 30 };
        assert_eq!(caches, Some(expected));
        // A last level of 1 GiB is clamped.
        assert_eq!(expected.bounded(), Caches { last: 64 << 20, ..expected });
        assert_eq!(described("1", "Data", "many"), None);
        assert_eq!(described("1", "Data", "32X"), None);
        assert_eq!(of_levels([(1, 32 << 10)].into_iter()), None);
        assert_eq!(
            of_levels([(1, 1 << 10), (2, 1 << 14)].into_iter()).map(|c| c.last),
            Some(1 << 14)
        );
    }

    #[test]
    fn defaults_and_this_machine_are_within_bounds() {
        assert_eq!(Caches::DEFAULT.bounded(), Caches::DEFAULT);
        assert_eq!(caches().bounded(), caches());
    }
}
