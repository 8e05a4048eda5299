//! Times every operation on tensors of 8 x 8, where a call is nothing but overhead.
//!
//! `tiny` prints nanoseconds per call. `tiny --list` prints the names of the operations. `tiny NAME
//! CALLS` makes that many calls of one operation and prints nothing, for a profiler that counts
//! instructions.

use std::hint::black_box;
use std::time::Instant;

use inlay::{
    DType, DiagonalScatter, Error, PutAlongAxis, Reduce, Scatter, SelectScatter, SliceScatter,
    Tensor,
};

/// The tensors that operations are called with.
struct Inputs {
    x: Tensor,
    y: Tensor,
    rows: Tensor,
    row: Tensor,
    index: Tensor,
    entries: Tensor,
    mask: Tensor,
    number: Tensor,
}

impl Inputs {
    fn new() -> Result<Self, Error> {
        let ones = |shape: &[usize]| Tensor::ones(shape, DType::F32);
        let entries = Tensor::from([0i64, 1, 2, 3, 4, 5, 6, 7]).broadcast_to([8, 8])?.copy()?;
        Ok(Inputs {
            x: ones(&[8, 8])?,
            y: ones(&[8, 8])?,
            rows: ones(&[4, 8])?,
            row: ones(&[8])?,
            index: Tensor::from([1i64, 3, 5, 7]),
            mask: entries.less_than(&Tensor::from(4i64))?,
            entries,
            number: Tensor::from(7.0f32),
        })
    }
}

/// An operation: its name and one call of it.
type Operation<'a> = (&'static str, Box<dyn Fn() -> Result<(), Error> + 'a>);

fn operations(inputs: &Inputs) -> Vec<Operation<'_>> {
    let Inputs { x, y, rows, row, index, entries, mask, number } = inputs;
    let mut all: Vec<Operation<'_>> = Vec::new();
    macro_rules! operation {
        ($name:literal, $call:expr) => {
            all.push((
                $name,
                Box::new(move || {
                    $call.map(|result| {
                        black_box(result);
                    })
                }),
            ));
        };
    }
    let middle = || SliceScatter::new(0, 2..6);
    let diagonal = DiagonalScatter::default();
    let (sum, add) = (Scatter::reduce(Reduce::Sum), PutAlongAxis::reduce(1, Reduce::Sum));
    operation!("slice_scatter", x.slice_scatter(rows, middle()));
    operation!("slice_scatter_", x.slice_scatter_(rows, middle()));
    operation!("select_scatter", x.select_scatter(row, SelectScatter { axis: 0, index: 3 }));
    operation!("diagonal_scatter", x.diagonal_scatter(row, diagonal));
    operation!("masked_scatter", x.masked_scatter(mask, y));
    operation!("masked_fill", x.masked_fill(mask, number));
    operation!("masked_select", x.masked_select(mask));
    operation!("scatter", x.scatter(index, rows, Scatter::overwrite()));
    operation!("scatter, sum", x.scatter(index, rows, sum));
    operation!("scatter_, sum", x.scatter_(index, rows, sum));
    operation!("put_along_axis", x.put_along_axis(entries, y, PutAlongAxis::assign(1)));
    operation!("put_along_axis, sum", x.put_along_axis(entries, y, add));
    operation!("take_along_axis", x.take_along_axis(entries, 1, true));
    operation!("index_select", x.index_select(index, 0));
    operation!("index_fill", x.index_fill(index, 0, number));
    operation!("tril_indices", Tensor::tril_indices(8, 8, 0, DType::I64));
    operation!("add", x.add(y));
    operation!("where", mask.where_(x, y));
    operation!("sum", x.sum(None, false));
    operation!("slice", x.slice((0, 2..6)));
    operation!("reshape", x.reshape([64]));
    all
}

fn main() -> Result<(), Error> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let inputs = Inputs::new()?;
    let all = operations(&inputs);
    if wanted.first().is_some_and(|first| first == "--list") {
        all.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    }
    if let [name, calls] = &wanted[..] {
        let calls = calls.parse::<usize>().unwrap_or(1);
        for (_, call) in all.iter().filter(|(other, _)| other == name) {
            (0..calls).try_for_each(|_| call())?;
        }
        return Ok(());
    }
    // The first calls are slower, until the processor has its full clock rate.
    let start = Instant::now();
    while start.elapsed().as_millis() < 300 {
        all.iter().try_for_each(|(_, call)| call())?;
    }
    for (name, call) in &all {
        const CALLS: u32 = 20_000;
        let mut times = Vec::new();
        for _ in 0..15 {
            let start = Instant::now();
            (0..CALLS).try_for_each(|_| call())?;
            times.push(start.elapsed() / CALLS);
        }
        times.sort();
        println!("{name:20} {:4} ns", times[times.len() / 2].as_nanos());
    }
    Ok(())
}
