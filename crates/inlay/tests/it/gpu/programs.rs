//! Tests that programs run on the device of their feeds.

use inlay::{DType, Device, Error, Program, Reduce, Scatter, Tensor, jit, named};

use super::{floats, gpu_floats};
use crate::support::device::on_gpu;

/// A program that adds a constant to `x` at the places of an index.
fn program() -> (Program, Tensor) {
    let program = Program::new();
    let x = program.data("x", &[None], DType::F32).unwrap();
    let index = program.data("index", &[None], DType::I64).unwrap();
    let ones = Tensor::ones(&[2], DType::F32).unwrap();
    let how = Scatter::reduce(Reduce::Sum).include_self(true);
    let sums = named("sums", || x.scatter(&index, &ones, how)).unwrap();
    let twice = named("twice", || sums.add(&sums)).unwrap();
    let last = named("last", || twice.index_select(&index, 0)).unwrap();
    (program, last)
}

fn ints(values: &[i64]) -> Tensor {
    Tensor::from_slice(values, &[values.len()]).unwrap()
}

#[test]
fn one_program_runs_on_both_devices() {
    // The program may be built on either device, because constants belong to no device.
    for (program, last) in [program(), on_gpu(program)] {
        for _ in 0..2 {
            let (x, index) = (floats(&[1.0, 2.0, 3.0]), ints(&[0, -1]));
            let here = program.run(&[("x", &x), ("index", &index)], &[&last]).unwrap();
            assert_eq!(here[0].device(), Device::Cpu);
            let (x, index) = (x.to(Device::Gpu).unwrap(), index.to(Device::Gpu).unwrap());
            let there = program.run(&[("x", &x), ("index", &index)], &[&last]).unwrap();
            assert_eq!(there[0].device(), Device::Gpu);
            assert_eq!(there[0].to_vec::<f32>().unwrap(), [4.0, 8.0]);
            assert_eq!(there[0].to_vec::<f32>(), here[0].to_vec::<f32>());
        }
    }
}

#[test]
fn feeds_are_on_one_device() {
    let (program, last) = program();
    let (x, index) = (gpu_floats(&[1.0, 2.0]), ints(&[0, 1]));
    let error = program.run(&[("x", &x), ("index", &index)], &[&last]).unwrap_err();
    let text = "run: feed \"index\" is on cpu, feed \"x\" is on gpu; move one of them with .to()";
    assert_eq!(error.to_string(), text);
}

#[test]
fn what_the_device_finds_wrong_names_its_node() {
    let (program, last) = program();
    let run = |x: &Tensor, index: &Tensor| {
        program.run(&[("x", x), ("index", index)], &[&last]).unwrap_err().to_string()
    };
    let (x, index) = (floats(&[1.0, 2.0]), ints(&[0, 7]));
    let here = run(&x, &index);
    assert_eq!(run(&x.to(Device::Gpu).unwrap(), &index.to(Device::Gpu).unwrap()), here);
    assert!(here.contains("index[1] is 7") && here.contains("'sums'"), "{here}");
}

/// A step that waits for the device reports the error of an earlier step.
#[test]
fn an_early_fault_is_told_of_the_early_node() {
    let program = Program::new();
    let x = program.data("x", &[None], DType::F32).unwrap();
    let index = program.data("index", &[None], DType::I64).unwrap();
    let rows = named("early", || x.index_select(&index, 0)).unwrap();
    let mask = rows.equal(&rows).unwrap();
    let some = named("late", || rows.masked_select(&mask)).unwrap();
    let (x, index) = (floats(&[1.0, 2.0]), ints(&[0, 7]));
    let run = |x: &Tensor, index: &Tensor| {
        program.run(&[("x", x), ("index", index)], &[&some]).unwrap_err().to_string()
    };
    let here = run(&x, &index);
    assert_eq!(run(&x.to(Device::Gpu).unwrap(), &index.to(Device::Gpu).unwrap()), here);
    assert!(here.contains("'early'"), "{here}");
}

#[test]
fn a_program_without_feeds_runs_on_the_current_device() {
    let program = Program::new();
    let x = program.data("x", &[Some(1)], DType::F32).unwrap();
    let constant = floats(&[1.0, 2.0]);
    let plan = program.plan(&[&constant], false).unwrap();
    assert_eq!(plan.run(&[]).unwrap()[0].device(), Device::Cpu);
    let there = on_gpu(|| plan.run(&[])).unwrap().remove(0);
    assert_eq!(there.device(), Device::Gpu);
    assert_eq!(there.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    let error = x.to(Device::Gpu).unwrap_err();
    assert!(matches!(error, Error::Argument { op: "to", .. }), "{error}");
}

#[test]
fn a_traced_function_is_for_all_devices() {
    let how = Scatter::reduce(Reduce::Mean);
    let f = jit(move |args: &[Tensor]| {
        Ok(vec![args[0].scatter(&args[1], &args[0], how)?.multiply(&args[2])?])
    });
    let (x, index) = (floats(&[1.0, 3.0]), ints(&[1, 1]));
    let half = Tensor::number("test", "half", 0.5, DType::F32).unwrap();
    let here = f.call(&[&x, &index, &half]).unwrap().remove(0);
    let (x, index) = (x.to(Device::Gpu).unwrap(), index.to(Device::Gpu).unwrap());
    let there = f.call(&[&x, &index, &half]).unwrap().remove(0);
    assert_eq!(there.device(), Device::Gpu);
    assert_eq!(there.to_vec::<f32>(), here.to_vec::<f32>());
    assert_eq!(there.to_vec::<f32>().unwrap(), [0.5, 1.0]);
}

#[test]
fn files_hold_what_was_on_the_gpu() {
    let (program, last) = on_gpu(program);
    program.set_outputs(&[("last", &last)]).unwrap();
    let again = on_gpu(|| Program::from_bytes(&program.to_bytes().unwrap())).unwrap();
    let (x, index) = (gpu_floats(&[1.0, 2.0, 3.0]), on_gpu(|| ints(&[0, -1])));
    let fetch = again.value("last").unwrap();
    let got = again.run(&[("x", &x), ("index", &index)], &[&fetch]).unwrap();
    assert_eq!(got[0].to_vec::<f32>().unwrap(), [4.0, 8.0]);
}
