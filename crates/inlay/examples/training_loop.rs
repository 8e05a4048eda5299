//! Training with gradients: an embedding of five words is fitted to given targets, by stochastic
//! gradient descent on the rows that a batch names.
//!
//! `cargo run --package inlay-tensor --example training_loop`

use inlay::{DType, NoGrad, Result, Tensor};

/// Returns the mean squared distance of the rows that `words` name from their targets.
fn loss(table: &Tensor, words: &Tensor, targets: &Tensor) -> Result<Tensor> {
    let error = (table.index_select(words, 0)? - targets)?;
    error.multiply(&error)?.mean(None, false)
}

pub(crate) fn main() -> Result<()> {
    let table = Tensor::zeros([5, 2], DType::F32)?.with_gradient()?;
    let batches = [
        (Tensor::from([0i64, 2]), Tensor::from([[1.0f32, 0.0], [0.0, 1.0]])),
        // A word may occur twice in a batch. Its gradients are added.
        (Tensor::from([4i64, 4]), Tensor::from([[2.0f32, 2.0], [4.0, 4.0]])),
    ];
    let mut losses = Vec::new();
    for epoch in 0..40 {
        let mut total = 0.0;
        for (words, targets) in &batches {
            let loss = loss(&table, words, targets)?;
            loss.backward(None, false)?;
            total += loss.item::<f32>()?;
            // A leaf is written in place, so the update must not be recorded.
            let _off = NoGrad::new();
            if let Some(grad) = table.grad() {
                table.subtract_(grad * 0.5)?;
            }
            table.clear_grad();
        }
        losses.push(total);
        if epoch % 10 == 0 {
            println!("epoch {epoch:2}: loss {total:.4}");
        }
    }
    println!("the table:\n{table:.2}");
    assert!(losses.windows(2).all(|pair| pair[1] <= pair[0]));
    let learned = table.i(4)?.to_vec::<f32>()?;
    assert!(learned.iter().all(|value| (value - 3.0).abs() < 1e-3));
    assert_eq!(table.i(1)?.to_vec::<f32>()?, [0.0, 0.0]);
    Ok(())
}
