// For kernels with checks. Each check has its own status word, which becomes the first wrong
// position. Word 0 is set if any check has failed. Here `failed()` is always false: all threads of
// a check must run, because a later thread may find an earlier position.
@group(0) @binding(0) var<storage, read_write> S: array<atomic<u32>>;
fn failed() -> bool { return false; }
fn wrong_at(slot: u32, position: u32) {
    atomicMin(&S[slot], position);
    atomicStore(&S[0], 1u);
}
