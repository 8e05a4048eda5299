//! Kernels: a body in WGSL, the numbers and operands it uses, and a driver that calls it for every
//! element.
//!
//! An operand is seen as elements, whatever their width is and however many bindings its buffer
//! takes: the text of `load_a`, `put_to` and the like is made here. A buffer that is larger than a
//! binding is bound as several windows.

use std::fmt::Write;
use std::sync::Arc;

use inlay_core::{Error, Result};
use smallvec::SmallVec;

use crate::View;
use crate::batch::{self, Binding};
use crate::device::Gpu;
use crate::layout::{self, Block};
use crate::memory::Buffer;
use crate::pipeline::{Bound, Pipeline};

/// Threads of a group.
const GROUP: u32 = 256;

/// How a kernel uses an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads elements.
    Read,
    /// Writes, and may read, elements; of elements that are smaller than a word, whole words.
    Write,
    /// Writes single elements wherever they lie: those that are smaller than a word by an atomic
    /// exchange of their own bits.
    Put,
    /// Words that several threads change.
    Atomic,
}

struct Operand<'a> {
    name: &'static str,
    buffer: &'a Buffer,
    /// Bytes of an element.
    size: usize,
    access: Access,
    windows: u64,
}

/// What calls the body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Driver {
    /// The body's own `work(i)`.
    Own,
    /// `to[i] = value(i)` for all elements of a dense destination.
    Dense,
    /// The same for elements of which a word has several: by words.
    Parts,
    /// `to[place(i)] = value(i)`.
    Put,
}

/// A kernel that is being put together. What its text is made of is its key.
pub(crate) struct Kernel<'a> {
    gpu: Arc<Gpu>,
    key: String,
    texts: SmallVec<[&'static str; 6]>,
    operands: SmallVec<[Operand<'a>; 6]>,
    /// Plain words first, then where each block begins.
    params: SmallVec<[u32; 64]>,
    blocks: SmallVec<[Block; 4]>,
    writes_status: bool,
    driver: Driver,
}

const HEAD: &str = include_str!("shader/head.wgsl");
const MAIN: &str = include_str!("shader/main.wgsl");
const DENSE: &str = include_str!("shader/dense.wgsl");
const PARTS: &str = include_str!("shader/parts.wgsl");
const PUT: &str = include_str!("shader/put.wgsl");

/// Parameters come in steps of so many words: few sizes, so that kernels meet again.
const STEP: usize = 32;

impl<'a> Kernel<'a> {
    /// A kernel of that name and body, on the device of `buffer`.
    pub(crate) fn new(name: &'static str, body: &'static str, buffer: &Buffer) -> Self {
        let mut kernel = Kernel {
            gpu: buffer.gpu().clone(),
            key: String::from(name),
            texts: SmallVec::new(),
            operands: SmallVec::new(),
            params: SmallVec::from_slice(&[0, 0]),
            blocks: SmallVec::new(),
            writes_status: false,
            driver: Driver::Own,
        };
        kernel.texts.push(body);
        kernel
    }

    /// Adds a text that the body needs; `name` tells it from others that could stand there.
    pub(crate) fn with(mut self, name: &str, text: &'static str) -> Self {
        self.key.push('+');
        self.key.push_str(name);
        self.texts.push(text);
        self
    }

    /// A constant of the body, of type u32.
    pub(crate) fn constant(mut self, name: &str, value: u32) -> Self {
        let _ = write!(self.key, "+{name}={value}");
        self
    }

    pub(crate) fn operand(
        mut self,
        name: &'static str,
        buffer: &'a Buffer,
        size: usize,
        access: Access,
    ) -> Self {
        // Elements smaller than a word are seen as parts of words, larger ones as vectors of them.
        let windows = buffer.raw().size().div_ceil(self.gpu.window);
        let letter = match access {
            Access::Read => 'r',
            Access::Write => 'w',
            Access::Put => 'p',
            Access::Atomic => 'a',
        };
        let _ = write!(self.key, "+{name}{size}{letter}{windows}");
        self.operands.push(Operand { name, buffer, size, access, windows });
        self
    }

    /// An operand that is read, and where its elements lie: `at_name(i)` in the body.
    pub(crate) fn read(self, name: &'static str, view: View<'a>) -> Result<Self> {
        let size = view.size();
        self.operand(name, view.buffer, size, Access::Read).block(name, view)
    }

    /// A buffer of words that is read.
    pub(crate) fn words(self, name: &'static str, buffer: &'a Buffer) -> Self {
        self.operand(name, buffer, 4, Access::Read)
    }

    /// Where the elements of a view lie, as `at_name(i)`.
    pub(crate) fn block(mut self, name: &'static str, view: View<'_>) -> Result<Self> {
        let block = layout::block(view.layout, view.size())?;
        let _ = write!(self.key, "+@{name}:{}", block.len());
        self.blocks.push(block);
        Ok(self)
    }

    /// Words for the body, which finds them as `own(0)`, `own(1)`, …
    pub(crate) fn params(mut self, words: &[u32]) -> Self {
        self.params.extend_from_slice(words);
        self
    }

    /// A check of what the kernel finds: `wrong(position)` in the body. `explain` says what is wrong
    /// at the first wrong position, for which it keeps so many bytes.
    pub(crate) fn checks(mut self, explain: batch::Explain, keeps: usize) -> Result<Self> {
        let slot = batch::check(&self.gpu, explain, keeps)?;
        self.writes_status = true;
        self.key.push_str("+checks");
        Ok(self.params(&[slot]))
    }

    /// Runs the body's `value(i)` for every element of a destination.
    pub(crate) fn to(mut self, to: View<'a>) -> Result<()> {
        let (size, elements) = (to.size(), layout::count(to.layout.numel())?);
        let dense = layout::is_dense(to.layout, size);
        let per_word = (4 / size).max(1) as u32;
        self.params[1] = elements;
        if dense {
            self.driver = if per_word == 1 { Driver::Dense } else { Driver::Parts };
            let first = to.layout.offset() / size.max(4);
            layout::count((first + 1) * per_word as usize + to.layout.numel())?;
            let first = first as u32;
            let threads = elements.div_ceil(per_word);
            self.operand("to", to.buffer, size, Access::Write).launch(threads, first)
        } else {
            self.driver = Driver::Put;
            self.operand("to", to.buffer, size, Access::Put).block("to", to)?.launch(elements, 0)
        }
    }

    /// Runs `value(i)` for `threads` values that go to `place(i)` of a destination, where `keep(i)`.
    pub(crate) fn put(mut self, to: View<'a>, threads: u32) -> Result<()> {
        self.driver = Driver::Put;
        self.params[1] = threads;
        self.key.push_str("+place");
        self.operand("to", to.buffer, to.size(), Access::Put).block("to", to)?.launch(threads, 0)
    }

    /// Runs the body's own `work(i)` in `threads` threads.
    pub(crate) fn run(self, threads: u32) -> Result<()> {
        self.launch(threads, 0)
    }

    fn launch(mut self, threads: u32, first: u32) -> Result<()> {
        if threads == 0 {
            return Ok(());
        }
        self.gpu.expect_alive()?;
        self.params[0] = threads;
        // The blocks follow the plain words.
        let own = self.params.len() as u32;
        self.params.push(first);
        self.blocks.iter().for_each(|block| self.params.extend_from_slice(block));
        self.params.resize(self.params.len().next_multiple_of(STEP), 0);
        let driver = match self.driver {
            Driver::Own => "own",
            Driver::Dense => "dense",
            Driver::Parts => "parts",
            Driver::Put => "put",
        };
        let _ = write!(self.key, "+{driver}+{own}+{}", self.params.len());
        let status = if self.writes_status { Bound::Write } else { Bound::Uniform };
        let mut bound: SmallVec<[Bound; 8]> = SmallVec::from_slice(&[status, Bound::Uniform]);
        let mut bindings: Vec<Binding> = Vec::new();
        for operand in &self.operands {
            operand.buffer.expect_on(&self.gpu)?;
            let raw = operand.buffer.raw();
            for window in 0..operand.windows {
                let offset = window * self.gpu.window;
                let size = (raw.size() - offset).min(self.gpu.window);
                bindings.push(Binding { raw: raw.clone(), offset, size });
                bound.push(match operand.access {
                    Access::Read => Bound::Read,
                    _ => Bound::Write,
                });
            }
        }
        let most = self.gpu.limits.max_storage_buffers_per_shader_stage as usize;
        if bound.len() > most {
            let reason = format!(
                "the tensors take {} bindings of {} bytes, the device has {most}",
                bound.len(),
                self.gpu.window
            );
            return Err(Error::Device { reason });
        }
        let gpu = self.gpu.clone();
        let pipeline: Arc<Pipeline> =
            gpu.pipelines.get(&gpu, &self.key, &bound, || self.source(own))?;
        let groups = threads.div_ceil(GROUP);
        let across = groups.min(gpu.limits.max_compute_workgroups_per_dimension);
        batch::dispatch(&gpu, pipeline, bindings, &self.params, (across, groups.div_ceil(across)))
    }

    fn source(&self, own: u32) -> String {
        let mut text = format!("const PARAMS: u32 = {}u;\n{HEAD}", self.params.len() / 4);
        let status = match self.writes_status {
            true => include_str!("shader/checking.wgsl"),
            false => include_str!("shader/checked.wgsl"),
        };
        text.push_str(status);
        // The constants and blocks are in the key in their order.
        for part in self.key.split('+').skip(1) {
            if let Some((name, value)) = part.split_once('=') {
                let _ = writeln!(text, "const {name}: u32 = {value}u;");
            }
        }
        let word = |k: usize| format!("U[{}][{}]", k / 4, k % 4);
        let mut at = own as usize + 1;
        for block in self.key.split("+@").skip(1) {
            let block = block.split('+').next().unwrap_or(block);
            let (name, len) = block.split_once(':').unwrap_or((block, "1"));
            let len: usize = len.parse().unwrap_or(1);
            block_text(&mut text, name, at, (len - 1) / 2);
            at += len;
        }
        let _ = writeln!(text, "fn first() -> u32 {{ return {}; }}", word(own as usize));
        let mut binding = 2;
        for operand in &self.operands {
            operand.text(&mut text, &mut binding, self.gpu.window);
        }
        self.texts.iter().for_each(|part| text.push_str(part));
        match self.driver {
            Driver::Own => {}
            Driver::Dense => text.push_str(DENSE),
            Driver::Parts => text.push_str(PARTS),
            Driver::Put => {
                if !self.key.split('+').any(|part| part == "place") {
                    text.push_str("fn place(i: u32) -> u32 { return at_to(i); }\n");
                }
                text.push_str(PUT);
            }
        }
        // A body without a condition keeps everything.
        if self.driver != Driver::Own && !text.contains("fn keep(") {
            text.push_str("fn keep(i: u32) -> bool { return true; }\n");
        }
        text.push_str(MAIN);
        text
    }
}

/// `at_name(i)`: where the i-th element of a layout lies, whose words begin at `at`: the first
/// element, and for each axis its size and step.
fn block_text(text: &mut String, name: &str, at: usize, rank: usize) {
    let word = |k: usize| format!("U[{}][{}]", (at + k) / 4, (at + k) % 4);
    let _ = write!(text, "fn at_{name}(i: u32) -> u32 {{ var at = {}; ", word(0));
    let mut rest = String::from("i");
    for axis in (1..rank).rev() {
        let (size, step) = (word(1 + 2 * axis), word(2 + 2 * axis));
        let _ = write!(text, "let r{axis} = {rest} / {size}; ");
        let _ = write!(text, "at += ({rest} - r{axis} * {size}) * {step}; ");
        rest = format!("r{axis}");
    }
    if rank > 0 {
        let _ = write!(text, "at += {rest} * {}; ", word(2));
    }
    text.push_str("return at; }\n");
}

impl Operand<'_> {
    /// The declarations of its bindings, and the functions that reach elements in them.
    fn text(&self, text: &mut String, binding: &mut u32, window: u64) {
        let Operand { name, size, access, windows, .. } = *self;
        let word = match size {
            8 => "vec2<u32>",
            16 => "vec4<u32>",
            _ => "u32",
        };
        // Elements of a binding.
        let each = window / size.max(4) as u64;
        let atomic = access == Access::Atomic || (access == Access::Put && size < 4);
        let held = if atomic { "atomic<u32>" } else { word };
        let mode = if access == Access::Read { "read" } else { "read_write" };
        for k in 0..windows {
            let _ = writeln!(
                text,
                "@group(0) @binding({binding}) var<storage, {mode}> {name}_{k}: array<{held}>;"
            );
            *binding += 1;
        }
        // The body of a function that does `action` in the window of word `i`.
        let everywhere = |action: &dyn Fn(&str) -> String| {
            if windows == 1 {
                return action(&format!("{name}_0[i]"));
            }
            let mut all = format!("switch (i / {each}u) {{ ");
            for k in 0..windows {
                let at = format!("{name}_{k}[i - {}u]", k * each);
                let case = if k + 1 == windows { "default:".into() } else { format!("case {k}u:") };
                let _ = write!(all, "{case} {{ {} }} ", action(&at));
            }
            all + "}"
        };
        let load = match atomic {
            true => everywhere(&|at| format!("return atomicLoad(&{at});")),
            false => everywhere(&|at| format!("return {at};")),
        };
        let _ = writeln!(text, "fn {name}_word(i: u32) -> {word} {{ {load} }}");
        if access != Access::Read && !atomic {
            let set = everywhere(&|at| format!("{at} = v;"));
            let _ = writeln!(text, "fn set_{name}(i: u32, v: {word}) {{ {set} }}");
        }
        if atomic {
            let change = everywhere(&|at| format!("atomicXor(&{at}, v);"));
            let _ = writeln!(text, "fn {name}_xor(i: u32, v: u32) {{ {change} }}");
        }
        if access == Access::Atomic {
            let add = everywhere(&|at| format!("return atomicAdd(&{at}, v);"));
            let _ = writeln!(text, "fn {name}_add(i: u32, v: u32) -> u32 {{ {add} }}");
            let raise = everywhere(&|at| format!("atomicMax(&{at}, v);"));
            let _ = writeln!(text, "fn {name}_max(i: u32, v: u32) {{ {raise} }}");
        }
        let (shift, mask) = if size == 1 { (2, 0xff) } else { (1, 0xffff) };
        let (per, bits) = (4 / size.min(4), 8 * size);
        if size < 4 {
            let _ = writeln!(
                text,
                "fn load_{name}(i: u32) -> u32 {{ \
                 return ({name}_word(i >> {shift}u) >> ((i & {low}u) * {bits}u)) & {mask}u; }}",
                low = per - 1
            );
            if access == Access::Put {
                // Only this thread changes these bits, so that they are what was just read.
                let _ = writeln!(
                    text,
                    "fn put_{name}(i: u32, v: u32) {{ let by = (i & {low}u) * {bits}u; \
                     let old = {name}_word(i >> {shift}u); \
                     {name}_xor(i >> {shift}u, (old ^ (v << by)) & ({mask}u << by)); }}",
                    low = per - 1
                );
            }
        } else {
            let _ = writeln!(text, "fn load_{name}(i: u32) -> {word} {{ return {name}_word(i); }}");
            if access == Access::Put {
                let _ = writeln!(text, "fn put_{name}(i: u32, v: {word}) {{ set_{name}(i, v); }}");
            }
        }
        if name == "to" {
            let _ = writeln!(text, "alias Word = {word};\nconst PER: u32 = {per}u;");
            let _ = writeln!(text, "const BITS: u32 = {bits}u;");
        }
    }
}
