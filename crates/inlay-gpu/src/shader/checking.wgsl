// Each check has a word of the status, which becomes the first position that is wrong. Word 0 says
// that some check has failed. All threads of a check go on, because another thread may find an
// earlier position.
@group(0) @binding(0) var<storage, read_write> S: array<atomic<u32>>;
fn failed() -> bool { return false; }
fn wrong_at(slot: u32, position: u32) {
    atomicMin(&S[slot], position);
    atomicStore(&S[0], 1u);
}
