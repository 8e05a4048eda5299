// A check tells of the first position that is wrong, and nothing is written from then on. It goes on
// itself: an earlier position may be another thread's.
@group(0) @binding(0) var<storage, read_write> S: array<atomic<u32>>;
fn failed() -> bool { return false; }
fn wrong_at(slot: u32, position: u32) {
    atomicMin(&S[slot], position);
    atomicStore(&S[0], 1u);
}
