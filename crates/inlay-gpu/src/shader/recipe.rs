//! The typed parts of a kernel. Its WGSL source is generated from them, and they are the key of its
//! compiled pipeline.

use std::fmt::Write;
use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use super::operand::Operand;

const FNV_PRIME: u64 = 0x100_0000_01b3;

/// A constant piece of WGSL with a hash that is computed at compile time, so that a launch doesn't
/// read the text to find its pipeline.
#[derive(Debug, Eq)]
pub(crate) struct Wgsl {
    hash: u64,
    text: &'static str,
}

impl Wgsl {
    pub(crate) const fn new(text: &'static str) -> Self {
        // FNV-1a.
        let (bytes, mut hash, mut at) = (text.as_bytes(), 0xcbf2_9ce4_8422_2325, 0);
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u64).wrapping_mul(FNV_PRIME);
            at += 1;
        }
        Wgsl { hash, text }
    }
}

impl PartialEq for Wgsl {
    fn eq(&self, other: &Self) -> bool {
        // Most often it is the same constant. The text decides when two constants share a hash.
        std::ptr::eq(self, other) || (self.hash == other.hash && self.text == other.text)
    }
}

impl Hash for Wgsl {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Pieces of WGSL, one after the other, as a `&'static Wgsl`.
macro_rules! wgsl {
    ($($text:expr),+ $(,)?) => {
        const { &$crate::shader::Wgsl::new(concat!($($text),+)) }
    };
}
pub(crate) use wgsl;

/// A WGSL file, relative to the file that names it, as a `&'static Wgsl`.
macro_rules! wgsl_file {
    ($path:literal) => {
        $crate::shader::wgsl!(include_str!($path))
    };
}
pub(crate) use wgsl_file;

/// What calls the body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Driver {
    /// Nothing: the body has its own `work(i)`.
    Work,
    /// `to[i] = value(i)` in a dense destination.
    Dense,
    /// The same for elements smaller than a word. One thread owns each word.
    Packed,
    /// `to[at_to(i)] = value(i)`.
    Strided,
    /// `to[address(i)] = value(i)`, where the body has `address(i)`.
    Placed,
}

/// All that shapes the source of a kernel on one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Recipe {
    /// For the tools that list shaders; no part of the source.
    pub(super) name: &'static str,
    /// The body, and the texts that it needs.
    pub(super) texts: SmallVec<[&'static Wgsl; 10]>,
    /// Constants of type u32.
    pub(super) constants: SmallVec<[(&'static str, u32); 8]>,
    pub(super) operands: SmallVec<[Operand; 6]>,
    /// The layouts that the body reads with `at_name(i)`: each name, and its number of axes.
    pub(super) layouts: SmallVec<[(&'static str, usize); 4]>,
    /// Parameter words before those of the layouts.
    pub(super) plain_params: usize,
    /// Parameter words in all.
    pub(super) params: usize,
    pub(super) driver: Driver,
    /// Whether the body has `keep(i)`, which tells which elements are written.
    pub(super) partial: bool,
    /// Whether the body reports what is wrong with `wrong_at`.
    pub(super) checks: bool,
}

/// A hash of numbers alone, since it is computed for every launch. Names are left to the comparison:
/// kernels that differ in a name only are rare.
impl Hash for Recipe {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let texts = self.texts.iter().map(|text| text.hash);
        let constants = self.constants.iter().map(|(_, value)| u64::from(*value));
        let operands = self.operands.iter().map(|operand| {
            operand.size as u64 | (operand.access as u64) << 8 | (operand.windows as u64) << 16
        });
        let layouts = self.layouts.iter().map(|(_, axes)| *axes as u64);
        let flags = u64::from(self.partial) | u64::from(self.checks) << 1;
        let rest = self.driver as u64 | flags << 8 | (self.plain_params as u64) << 16;
        let parts = texts.chain(constants).chain(operands).chain(layouts);
        // As FNV-1a, by words instead of bytes. The rotation lets high bits reach low ones.
        let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(FNV_PRIME).rotate_left(29);
        state.write_u64(parts.fold(rest, mix));
    }
}

impl Recipe {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn checks(&self) -> bool {
        self.checks
    }

    /// How the kernel sees each binding: the status, the parameters, and the operands.
    pub(crate) fn bindings(&self) -> Vec<wgpu::BufferBindingType> {
        let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
        let uniform = wgpu::BufferBindingType::Uniform;
        let status = if self.checks { storage(false) } else { uniform };
        let operands = self.operands.iter().flat_map(|operand| {
            std::iter::repeat_n(storage(operand.is_read_only()), operand.windows)
        });
        [status, uniform].into_iter().chain(operands).collect()
    }

    /// The WGSL source, for a device whose bindings have `window` bytes at most.
    pub(crate) fn source(&self, window: u64) -> String {
        let head = include_str!("head.wgsl");
        let mut text = format!("const PARAMS: u32 = {}u;\n{head}", self.params / 4);
        text.push_str(match self.checks {
            true => include_str!("checking.wgsl"),
            false => include_str!("checked.wgsl"),
        });
        for (name, value) in &self.constants {
            let _ = writeln!(text, "const {name}: u32 = {value}u;");
        }
        let mut at = self.plain_params;
        let _ = writeln!(text, "fn first_word() -> u32 {{ return {}; }}", param(at));
        at += 1;
        for &(name, axes) in &self.layouts {
            layout_text(&mut text, name, at, axes);
            at += 1 + 2 * axes;
        }
        let mut binding = 2;
        for operand in &self.operands {
            operand.text(&mut text, &mut binding, window);
        }
        self.texts.iter().for_each(|part| text.push_str(part.text));
        text.push_str(match self.driver {
            Driver::Work => "",
            Driver::Dense => include_str!("dense.wgsl"),
            Driver::Packed => include_str!("packed.wgsl"),
            Driver::Strided => concat!(include_str!("strided.wgsl"), include_str!("put.wgsl")),
            Driver::Placed => include_str!("put.wgsl"),
        });
        if self.driver != Driver::Work && !self.partial {
            text.push_str("fn keep(i: u32) -> bool { return true; }\n");
        }
        text + include_str!("main.wgsl")
    }
}

/// A word of the parameters.
fn param(at: usize) -> String {
    format!("U[{}][{}]", at / 4, at % 4)
}

/// `at_name(i)`: the address of element `i` of a layout. Its parameters begin at `at`: the address of
/// the first element, and the size and the step of each axis.
fn layout_text(text: &mut String, name: &str, at: usize, axes: usize) {
    let _ = write!(text, "fn at_{name}(i: u32) -> u32 {{ var at = {}; ", param(at));
    let mut rest = String::from("i");
    for axis in (1..axes).rev() {
        let (size, step) = (param(at + 1 + 2 * axis), param(at + 2 + 2 * axis));
        let _ = write!(text, "let r{axis} = {rest} / {size}; ");
        let _ = write!(text, "at += ({rest} - r{axis} * {size}) * {step}; ");
        rest = format!("r{axis}");
    }
    if axes > 0 {
        let _ = write!(text, "at += {rest} * {}; ", param(at + 2));
    }
    text.push_str("return at; }\n");
}
