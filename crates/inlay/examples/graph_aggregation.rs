//! Message passing on a graph: every node takes the mean, the sum or the maximum of the features of
//! its neighbours.
//!
//! `cargo run --package inlay-tensor --example graph_aggregation`

use inlay::{DType, Reduce, Result, Scatter, Tensor};

/// Edges of a small graph, from `source` to `target`. Node 4 has no incoming edge.
const SOURCE: [i64; 6] = [0, 1, 2, 3, 4, 4];
const TARGET: [i64; 6] = [1, 2, 1, 0, 0, 3];

/// Returns for each node the reduction of the features of the nodes that point to it. A node
/// without incoming edges gets zeros.
fn aggregate(features: &Tensor, reduce: Reduce) -> Result<Tensor> {
    let messages = features.index_select(&Tensor::from(SOURCE), 0)?;
    let nothing = Tensor::zeros(features.shape(), features.dtype())?;
    nothing.scatter(&Tensor::from(TARGET), &messages, Scatter::reduce(reduce))
}

pub(crate) fn main() -> Result<()> {
    let features = Tensor::from([[1.0f32, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0], [5.0, 0.0]]);
    for name in ["mean", "sum", "max"] {
        let reduced = aggregate(&features, name.parse()?)?;
        println!("{name} of the neighbours:\n{reduced}\n");
    }
    let mean = aggregate(&features, Reduce::Mean)?;
    assert_eq!(mean.i((1, ..))?.to_vec::<f32>()?, [2.0, 0.0]);
    assert_eq!(mean.i((4, ..))?.to_vec::<f32>()?, [0.0, 0.0]);

    // One layer: a node keeps half of its own features.
    let layer = (&features * 0.5 + &aggregate(&features, Reduce::Mean)?)?;
    println!("after one layer:\n{layer:.2}");

    // The degree of a node is a scatter of ones.
    let ones = Tensor::ones(TARGET.len(), DType::I64)?;
    let degree = Tensor::zeros(5, DType::I64)?;
    let degree = degree.scatter(&Tensor::from(TARGET), &ones, Scatter::reduce(Reduce::Sum))?;
    assert_eq!(degree.to_vec::<i64>()?, [2, 2, 1, 1, 0]);
    println!("\nincoming edges: {degree}");
    Ok(())
}
