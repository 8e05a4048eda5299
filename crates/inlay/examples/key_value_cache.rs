//! The cache of keys of a language model: sequences of different lengths share one block of memory,
//! and every step writes one position of each in place.
//!
//! `cargo run --package inlay-tensor --example key_value_cache`

use inlay::{DType, Item, Result, Tensor};

/// Keys of several sequences, in the shape `[sequence, position, channel]`.
struct Cache {
    keys: Tensor,
    /// The number of positions of each sequence that are used.
    lengths: Vec<usize>,
}

impl Cache {
    fn new(sequences: usize, positions: usize, channels: usize) -> Result<Self> {
        let keys = Tensor::zeros([sequences, positions, channels], DType::F32)?;
        Ok(Cache { keys, lengths: vec![0; sequences] })
    }

    /// Writes the keys of a prompt, `[position, channel]`, to the free positions of a sequence.
    fn fill(&mut self, sequence: usize, keys: &Tensor) -> Result<()> {
        let start = self.lengths[sequence];
        let end = start + keys.shape()[0];
        self.keys.set((sequence, start..end), keys)?;
        self.lengths[sequence] = end;
        Ok(())
    }

    /// Writes one key for each sequence, `[sequence, channel]`, to its next free position.
    fn append(&mut self, keys: &Tensor) -> Result<()> {
        // One row of the cache per sequence and position: a view, so the write is in place.
        let (positions, channels) = (self.keys.shape()[1], self.keys.shape()[2]);
        let rows = self.keys.reshape([-1, channels as i64])?;
        let free = self.lengths.iter().enumerate();
        let free: Vec<i64> = free.map(|(k, used)| (k * positions + used) as i64).collect();
        rows.index_copy_(&Tensor::from(free), 0, keys)?;
        self.lengths.iter_mut().for_each(|used| *used += 1);
        Ok(())
    }

    /// Returns the keys of a sequence as a view.
    fn of(&self, sequence: usize) -> Result<Tensor> {
        self.keys.i((sequence, ..self.lengths[sequence]))
    }
}

pub(crate) fn main() -> Result<()> {
    let mut cache = Cache::new(2, 4, 3)?;
    cache.fill(0, &Tensor::from([[1.0f32; 3], [2.0; 3]]))?;
    cache.fill(1, &Tensor::from([[7.0f32; 3]]))?;
    cache.append(&Tensor::from([[3.0f32; 3], [8.0; 3]]))?;
    println!("sequence 0:\n{}\nsequence 1:\n{}", cache.of(0)?, cache.of(1)?);
    assert_eq!(cache.of(0)?.i((.., 0))?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    assert_eq!(cache.of(1)?.i((.., 0))?.to_vec::<f32>()?, [7.0, 8.0]);

    // The oldest position of all sequences is dropped in place; overlapping parts are no problem.
    cache.keys.set((.., ..-1), &cache.keys.i((.., 1..))?)?;
    cache.keys.set((Item::Ellipsis, -1, ..), 0)?;
    cache.lengths.iter_mut().for_each(|used| *used -= 1);
    println!("without the oldest position:\n{}", cache.of(0)?);
    assert_eq!(cache.of(0)?.i((.., 0))?.to_vec::<f32>()?, [2.0, 3.0]);
    Ok(())
}
