//! A program: the calls of a function are recorded once, saved to a file, and run for inputs of any
//! size in another process.
//!
//! `cargo run --package inlay-tensor --example saved_program`

use inlay::{DType, Program, Reduce, Result, Scatter, Tensor};

/// Records a program that adds up the rows of each group and divides them by the size of the group.
fn record() -> Result<Program> {
    let program = Program::new();
    let rows = program.data("rows", &[None, Some(2)], DType::F32)?;
    let group = program.data("group", &[None], DType::I64)?;
    let means = Tensor::zeros([3, 2], DType::F32)?;
    let means = means.scatter(&group, &rows, Scatter::reduce(Reduce::Mean))?;
    program.set_outputs(&[("means", &means), ("largest", &means.amax(None, false)?)])?;
    Ok(program)
}

pub(crate) fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("group_means_{}.inlay", std::process::id()));
    record()?.save(&path)?;

    // What follows needs only the file.
    let program = Program::load(&path)?;
    println!("inputs {:?}, outputs {:?}", program.inputs(), program.outputs());
    let (means, largest) = (program.value("means")?, program.value("largest")?);
    let plan = program.plan(&[&means, &largest], false)?;
    println!("{plan}");

    let rows = Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    let results = plan.run(&[("rows", &rows), ("group", &Tensor::from([0i64, 2, 0]))])?;
    println!("means:\n{}\nlargest: {}", results[0], results[1]);
    assert_eq!(results[0].to_vec::<f32>()?, [3.0, 4.0, 0.0, 0.0, 3.0, 4.0]);
    assert_eq!(results[1].item::<f32>()?, 4.0);

    // The number of rows is open.
    let one = plan.run(&[("rows", &rows.i(..1)?), ("group", &Tensor::from([1i64]))])?;
    assert_eq!(one[0].i(1)?.to_vec::<f32>()?, [1.0, 2.0]);
    // A file that stays behind does no harm.
    let _ = std::fs::remove_file(path);
    Ok(())
}
