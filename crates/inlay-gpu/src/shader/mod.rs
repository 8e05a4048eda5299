//! The builder of kernels. A kernel is a body in WGSL, the texts, constants and operands that the
//! body uses, and a driver that calls the body for every element.

mod operand;
mod recipe;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use inlay_core::{Error, Layout, Result};
use smallvec::SmallVec;

use crate::View;
use crate::batch::{self, Binding};
use crate::device::Gpu;
use crate::layout::{self, LayoutWords};
use crate::memory::Buffer;

pub(crate) use operand::Access;
use operand::Operand;
use recipe::Driver;
pub(crate) use recipe::{Recipe, Wgsl, wgsl, wgsl_file};

/// The number of threads in a workgroup, as in `head.wgsl` and `main.wgsl`.
const GROUP: u32 = 256;

/// The number of words in a parameter vector. The elements of a uniform array must have 16 bytes.
const VECTOR: usize = 4;

/// A kernel that is being built.
pub(crate) struct Kernel<'a> {
    gpu: Arc<Gpu>,
    recipe: Recipe,
    /// The buffers of the recipe's operands, in order.
    buffers: SmallVec<[&'a Buffer; 6]>,
    /// The number of threads, the number of elements, and the parameters of the body.
    params: SmallVec<[u32; 64]>,
    /// The parameter words of the recipe's layouts, in order.
    layouts: SmallVec<[LayoutWords; 4]>,
}

impl<'a> Kernel<'a> {
    /// Starts a kernel with the given body, on the device of `buffer`.
    pub(crate) fn new(name: &'static str, body: &'static Wgsl, buffer: &Buffer) -> Self {
        let recipe = Recipe {
            name,
            texts: SmallVec::new(),
            constants: SmallVec::new(),
            operands: SmallVec::new(),
            layouts: SmallVec::new(),
            plain_params: 0,
            params: 0,
            driver: Driver::Work,
            partial: false,
            checks: false,
        };
        Kernel {
            gpu: buffer.gpu().clone(),
            recipe,
            buffers: SmallVec::new(),
            params: SmallVec::from_slice(&[0, 0]),
            layouts: SmallVec::new(),
        }
        .with(body)
    }

    /// Adds a piece of WGSL that the body needs.
    pub(crate) fn with(mut self, text: &'static Wgsl) -> Self {
        self.recipe.texts.push(text);
        self
    }

    /// Adds several pieces of WGSL.
    pub(crate) fn with_all(mut self, texts: &[&'static Wgsl]) -> Self {
        self.recipe.texts.extend_from_slice(texts);
        self
    }

    /// Adds a constant of type u32.
    pub(crate) fn constant(mut self, name: &'static str, value: u32) -> Self {
        self.recipe.constants.push((name, value));
        self
    }

    /// Declares that the body has `keep(i)`. The driver writes only elements for which it is true.
    pub(crate) fn partial(mut self) -> Self {
        self.recipe.partial = true;
        self
    }

    /// Adds a buffer of elements of `size` bytes.
    pub(crate) fn operand(
        mut self,
        name: &'static str,
        buffer: &'a Buffer,
        size: usize,
        access: Access,
    ) -> Self {
        let windows = buffer.raw().size().div_ceil(self.gpu.window) as usize;
        self.recipe.operands.push(Operand { name, size, access, windows });
        self.buffers.push(buffer);
        self
    }

    /// Adds an operand that is read. In the body, `at_name(i)` is the address of its element `i`.
    pub(crate) fn read(self, name: &'static str, view: View<'a>) -> Result<Self> {
        view.expect_inside()?;
        let size = view.size();
        self.operand(name, view.buffer, size, Access::Read).layout(name, view.layout, size)
    }

    /// Adds a buffer of words that is read.
    pub(crate) fn words(self, name: &'static str, buffer: &'a Buffer) -> Self {
        self.operand(name, buffer, 4, Access::Read)
    }

    /// Adds the function `at_name(i)`: the address of element `i` of a layout, in units of `size`
    /// bytes.
    pub(crate) fn layout(
        mut self,
        name: &'static str,
        layout: &Layout,
        size: usize,
    ) -> Result<Self> {
        let words = layout::words(layout, size)?;
        self.recipe.layouts.push((name, words.len() / 2));
        self.layouts.push(words);
        Ok(self)
    }

    /// Adds the destination `to`, whose elements are written with `put_to(at_to(i), value)`.
    pub(crate) fn puts(self, to: View<'a>) -> Result<Self> {
        to.expect_destination(self.recipe.name)?;
        let size = to.size();
        self.operand("to", to.buffer, size, Access::Put).layout("to", to.layout, size)
    }

    /// Appends parameters. The body reads them with `param(0)`, `param(1)`, and so on.
    pub(crate) fn params(mut self, words: &[u32]) -> Self {
        self.params.extend_from_slice(words);
        self
    }

    /// Lets the body report a wrong position with `wrong_at(slot, position)`. The slot is appended
    /// to the parameters. `explain` makes the error for the first wrong position, and keeps `keeps`
    /// bytes alive.
    pub(crate) fn checks(mut self, explain: batch::Explain, keeps: usize) -> Result<Self> {
        let slot = batch::check(&self.gpu, explain, keeps)?;
        self.recipe.checks = true;
        Ok(self.params(&[slot]))
    }

    /// Launches the kernel to compute the body's `value(i)` for every element of a destination.
    pub(crate) fn to(mut self, to: View<'a>) -> Result<()> {
        let (size, elements) = (to.size(), layout::count(to.layout.numel())?);
        self.params[1] = elements;
        if !layout::is_dense(to.layout, size) {
            return self.update(to);
        }
        to.expect_destination(self.recipe.name)?;
        let per_word = (4 / size).max(1) as u32;
        self.recipe.driver = if per_word == 1 { Driver::Dense } else { Driver::Packed };
        let first = to.layout.offset() / size.max(4);
        layout::count((first + 1) * per_word as usize + to.layout.numel())?;
        let threads = elements.div_ceil(per_word);
        self.operand("to", to.buffer, size, Access::Write).launch(threads, first as u32)
    }

    /// Like [`Kernel::to`], for a body that reads the old element `i` as `load_to(at_to(i))`.
    pub(crate) fn update(mut self, to: View<'a>) -> Result<()> {
        let elements = layout::count(to.layout.numel())?;
        self.params[1] = elements;
        self.recipe.driver = Driver::Strided;
        self.puts(to)?.launch(elements, 0)
    }

    /// Launches `threads` threads. Thread `i` writes `value(i)` to `address(i)` of the destination.
    pub(crate) fn put(mut self, to: View<'a>, threads: u32) -> Result<()> {
        self.recipe.driver = Driver::Placed;
        self.params[1] = threads;
        self.puts(to)?.launch(threads, 0)
    }

    /// Launches `threads` threads that run the body's own `work(i)`.
    pub(crate) fn run(self, threads: u32) -> Result<()> {
        self.launch(threads, 0)
    }

    fn launch(mut self, threads: u32, first_word: u32) -> Result<()> {
        if threads == 0 {
            return Ok(());
        }
        self.gpu.expect_alive()?;
        self.params[0] = threads;
        self.recipe.plain_params = self.params.len();
        self.params.push(first_word);
        self.layouts.iter().for_each(|words| self.params.extend_from_slice(words));
        self.params.resize(self.params.len().next_multiple_of(VECTOR), 0);
        self.recipe.params = self.params.len();
        let mut bindings = Vec::new();
        for (operand, buffer) in self.recipe.operands.iter().zip(&self.buffers) {
            buffer.expect_on(&self.gpu)?;
            let raw = buffer.raw();
            for window in 0..operand.windows as u64 {
                let offset = window * self.gpu.window;
                let size = (raw.size() - offset).min(self.gpu.window);
                bindings.push(Binding { raw: raw.clone(), offset, size });
            }
        }
        // The status and the parameters need two more bindings.
        let bound = 2 + bindings.len();
        let most = self.gpu.limits.max_storage_buffers_per_shader_stage as usize;
        if bound > most {
            let window = self.gpu.window;
            let reason = format!(
                "the tensors take {bound} bindings of {window} bytes, the device has {most}"
            );
            return Err(Error::Device { reason });
        }
        let pipeline = self.gpu.pipelines.get(&self.gpu, &self.recipe)?;
        let groups = threads.div_ceil(GROUP);
        let across = groups.min(self.gpu.limits.max_compute_workgroups_per_dimension);
        let grid = (across, groups.div_ceil(across));
        batch::dispatch(&self.gpu, pipeline, bindings, &self.params, grid)
    }
}
