//! The WGSL that accesses the operands of a kernel. It hides the size of an element and the number
//! of bindings of a buffer.

use std::fmt::Write;

/// How a kernel accesses an operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Access {
    /// The kernel reads elements.
    Read,
    /// The kernel reads and writes elements. Elements smaller than a word are written as whole
    /// words, and each word is written by one thread.
    Write,
    /// The kernel writes single elements at any address. An element smaller than a word is written
    /// with an atomic exclusive or, which changes only the bits of that element.
    Put,
    /// The kernel reads and changes words with atomic operations.
    Atomic,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Operand {
    pub(super) name: &'static str,
    /// The number of bytes of an element.
    pub(super) size: usize,
    pub(super) access: Access,
    /// The number of bindings of the buffer.
    pub(super) windows: usize,
}

impl Operand {
    pub(super) fn is_read_only(&self) -> bool {
        self.access == Access::Read
    }

    /// The WGSL type of a stored element. Elements smaller than a word are parts of a `u32`.
    /// Elements larger than a word are vectors of `u32`.
    fn stored(&self) -> &'static str {
        match self.size {
            8 => "vec2<u32>",
            16 => "vec4<u32>",
            _ => "u32",
        }
    }

    /// Appends the declarations of the bindings, and the functions that access elements.
    pub(super) fn text(&self, text: &mut String, binding: &mut u32, window: u64) {
        let Operand { name, size, access, windows } = *self;
        let stored = self.stored();
        let atomic = access == Access::Atomic || (access == Access::Put && size < 4);
        let held = if atomic { "atomic<u32>" } else { stored };
        let mode = if self.is_read_only() { "read" } else { "read_write" };
        for k in 0..windows {
            let _ = writeln!(
                text,
                "@group(0) @binding({binding}) var<storage, {mode}> {name}_{k}: array<{held}>;"
            );
            *binding += 1;
        }
        let mut function = |signature: &str, action: &dyn Fn(&str) -> String| {
            let body = self.in_each_window(window, action);
            let _ = writeln!(text, "fn {signature} {{ {body} }}");
        };
        let load = format!("{name}_word(i: u32) -> {stored}");
        if atomic {
            function(&load, &|at| format!("return atomicLoad(&{at});"));
            let exchange = format!("{name}_xor(i: u32, v: u32)");
            function(&exchange, &|at| format!("atomicXor(&{at}, v);"));
        } else {
            function(&load, &|at| format!("return {at};"));
        }
        if !self.is_read_only() && !atomic {
            function(&format!("set_{name}(i: u32, v: {stored})"), &|at| format!("{at} = v;"));
        }
        if access == Access::Atomic {
            let add = format!("{name}_add(i: u32, v: u32) -> u32");
            function(&add, &|at| format!("return atomicAdd(&{at}, v);"));
            function(&format!("{name}_max(i: u32, v: u32)"), &|at| format!("atomicMax(&{at}, v);"));
        }
        self.element_text(text);
    }

    /// Returns the body of a function that applies `action` to word `i`, in the binding that
    /// contains it.
    fn in_each_window(&self, window: u64, action: &dyn Fn(&str) -> String) -> String {
        let name = self.name;
        if self.windows == 1 {
            return action(&format!("{name}_0[i]"));
        }
        let each = window / self.size.max(4) as u64;
        let mut all = format!("switch (i / {each}u) {{ ");
        for k in 0..self.windows {
            let at = format!("{name}_{k}[i - {}u]", k as u64 * each);
            let last = k + 1 == self.windows;
            let case = if last { "default:".into() } else { format!("case {k}u:") };
            let _ = write!(all, "{case} {{ {} }} ", action(&at));
        }
        all + "}"
    }

    /// Appends the functions `load_name` and `put_name`, and for the destination `to` the type and
    /// constants that the drivers use.
    fn element_text(&self, text: &mut String) {
        let Operand { name, size, access, .. } = *self;
        let (stored, per, bits) = (self.stored(), 4 / size.min(4), 8 * size);
        if size < 4 {
            let (shift, mask) = if size == 1 { (2, 0xff) } else { (1, 0xffff) };
            let low = per - 1;
            let _ = writeln!(
                text,
                "fn load_{name}(i: u32) -> u32 {{ \
                 return ({name}_word(i >> {shift}u) >> ((i & {low}u) * {bits}u)) & {mask}u; }}"
            );
            if access == Access::Put {
                // Only this thread changes the bits of this element. They don't change between the
                // load and the exclusive or, even if other threads change other bits of the word.
                let _ = writeln!(
                    text,
                    "fn put_{name}(i: u32, v: u32) {{ let by = (i & {low}u) * {bits}u; \
                     let old = {name}_word(i >> {shift}u); \
                     {name}_xor(i >> {shift}u, (old ^ (v << by)) & ({mask}u << by)); }}"
                );
            }
        } else {
            let _ =
                writeln!(text, "fn load_{name}(i: u32) -> {stored} {{ return {name}_word(i); }}");
            if access == Access::Put {
                let _ =
                    writeln!(text, "fn put_{name}(i: u32, v: {stored}) {{ set_{name}(i, v); }}");
            }
        }
        if name == "to" {
            let _ = writeln!(text, "alias Stored = {stored};\nconst PER_WORD: u32 = {per}u;");
            let _ = writeln!(text, "const BITS: u32 = {bits}u;");
        }
    }
}
