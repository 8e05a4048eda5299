//! The recipe of a kernel: the typed parts from which its WGSL source is generated. The recipe is
//! also the key of the compiled pipeline.

use std::fmt::Write;
use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use super::operand::Operand;

const FNV_PRIME: u64 = 0x100_0000_01b3;

/// A constant piece of WGSL. Its hash is computed at compile time, so a launch finds its pipeline
/// without reading the text.
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
        // Usually both are the same constant. The text is compared only if the hashes are equal.
        std::ptr::eq(self, other) || (self.hash == other.hash && self.text == other.text)
    }
}

impl Hash for Wgsl {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Concatenates pieces of WGSL to a `&'static Wgsl`.
macro_rules! wgsl {
    ($($text:expr),+ $(,)?) => {
        const { &$crate::shader::Wgsl::new(concat!($($text),+)) }
    };
}
pub(crate) use wgsl;

/// Includes a WGSL file as a `&'static Wgsl`. The path is relative to the calling file.
macro_rules! wgsl_file {
    ($path:literal) => {
        $crate::shader::wgsl!(include_str!($path))
    };
}
pub(crate) use wgsl_file;

/// The driver of a kernel: the `work(i)` that calls the body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Driver {
    /// No driver: the body has its own `work(i)`.
    Work,
    /// `to[i] = value(i)` in a dense destination.
    Dense,
    /// Like `Dense`, for elements smaller than a word. Each word is written by one thread.
    Packed,
    /// `to[at_to(i)] = value(i)`.
    Strided,
    /// `to[address(i)] = value(i)`, where the body has `address(i)`.
    Placed,
}

/// All inputs of the source of a kernel on one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Recipe {
    /// A label for debugging tools. It is not part of the source.
    pub(super) name: &'static str,
    /// The body, and the pieces of WGSL that it needs.
    pub(super) texts: SmallVec<[&'static Wgsl; 10]>,
    /// The names and values of constants of type u32.
    pub(super) constants: SmallVec<[(&'static str, u32); 8]>,
    pub(super) operands: SmallVec<[Operand; 6]>,
    /// The layouts for which `at_name(i)` is generated: the name and the number of axes of each.
    pub(super) layouts: SmallVec<[(&'static str, usize); 4]>,
    /// The number of parameter words before those of the layouts.
    pub(super) plain_params: usize,
    /// The number of all parameter words.
    pub(super) params: usize,
    pub(super) driver: Driver,
    /// Whether the body has `keep(i)`, which selects the elements that are written.
    pub(super) partial: bool,
    /// Whether the body reports wrong positions with `wrong_at`.
    pub(super) checks: bool,
}

/// The hash covers only numbers, because it is computed for every launch. Names are compared but
/// not hashed: kernels that differ only in a name are rare.
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
        // FNV-1a on words instead of bytes. The rotation moves high bits to low positions, which a
        // multiplication does not do.
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

    /// The types of the bindings, in order: the status, the parameters, and the operands.
    pub(crate) fn bindings(&self) -> Vec<wgpu::BufferBindingType> {
        let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
        let uniform = wgpu::BufferBindingType::Uniform;
        let status = if self.checks { storage(false) } else { uniform };
        let operands = self.operands.iter().flat_map(|operand| {
            std::iter::repeat_n(storage(operand.is_read_only()), operand.windows)
        });
        [status, uniform].into_iter().chain(operands).collect()
    }

    /// Generates the WGSL source, for a device whose bindings have at most `window` bytes.
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

/// The WGSL expression of a parameter word.
fn param(at: usize) -> String {
    format!("U[{}][{}]", at / 4, at % 4)
}

/// Appends the function `at_name(i)`: the address of element `i` of a layout. Its parameters begin
/// at word `at`, in the order of [`LayoutWords`](crate::layout::LayoutWords).
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
