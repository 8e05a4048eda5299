//! Calls whose inputs are on two devices.

use inlay::{
    DType, Device, Error, GradOptions, Item, PutAlongAxis, Scatter, SelectScatter, Tensor,
};

use super::{floats, gpu_floats};
use crate::support::device::on_gpu;

fn ints(values: &[i64]) -> Tensor {
    Tensor::from_slice(values, &[values.len()]).unwrap()
}

fn number(value: f64) -> Tensor {
    Tensor::number("test", "value", value, DType::F32).unwrap()
}

fn text<T: std::fmt::Debug>(result: inlay::Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn an_error_names_both_tensors_and_devices() {
    let (x, y) = (gpu_floats(&[1.0, 2.0]), floats(&[3.0, 4.0]));
    let (here, there) = (ints(&[0, 1]), on_gpu(|| ints(&[0, 1])));
    let advice = "; move one of them with .to()";
    let scatter = Scatter::overwrite();
    assert_eq!(
        text(x.scatter(&here, &x, scatter)),
        format!("scatter: index is on cpu, x is on gpu{advice}")
    );
    assert_eq!(
        text(y.scatter(&there, &x, scatter)),
        format!("scatter: index is on gpu, x is on cpu{advice}")
    );
    assert_eq!(text(x.add(&y)), format!("add: y is on cpu, x is on gpu{advice}"));
    assert_eq!(text(y.add(&x)), format!("add: y is on gpu, x is on cpu{advice}"));
    let indexed = x.index(&[Item::Tensor(here.clone())]);
    assert_eq!(text(indexed), format!("getitem: index is on cpu, x is on gpu{advice}"));
    let put = x.index_put(&[&here], &x, true);
    assert_eq!(text(put), format!("index_put: index is on cpu, x is on gpu{advice}"));
    let written = x.assign(&[Item::Ellipsis], &y);
    assert_eq!(text(written), format!("setitem: value is on cpu, x is on gpu{advice}"));
    let written = y.put_along_axis_(&here, &x, PutAlongAxis::assign(0));
    assert_eq!(text(written), format!("put_along_axis: values is on gpu, x is on cpu{advice}"));
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(y.to_vec::<f32>().unwrap(), [3.0, 4.0]);
}

#[test]
fn numbers_go_along() {
    let x = gpu_floats(&[1.0, 2.0]);
    assert_eq!(x.add(&number(0.5)).unwrap().to_vec::<f32>().unwrap(), [1.5, 2.5]);
    assert_eq!(number(0.5).add(&x).unwrap().to_vec::<f32>().unwrap(), [1.5, 2.5]);
    let mask = on_gpu(|| Tensor::from_slice(&[true, false], &[2])).unwrap();
    assert_eq!(x.masked_fill(&mask, 9.0).unwrap().to_vec::<f32>().unwrap(), [9.0, 2.0]);
    let row = SelectScatter { axis: 0, index: 1 };
    assert_eq!(x.select_scatter(&number(7.0), row).unwrap().to_vec::<f32>().unwrap(), [1.0, 7.0]);
    x.assign(&[Item::Ellipsis], &number(3.0)).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [3.0, 3.0]);
    let index = Tensor::from_slice(&[-1i64], ()).unwrap();
    let y = x.copy().unwrap().with_gradient().unwrap();
    let z = y.scatter(&index, &number(0.0), Scatter::overwrite()).unwrap();
    z.sum(None, false).unwrap().backward(None, false).unwrap();
    assert_eq!(y.grad().unwrap().to_vec::<f32>().unwrap(), [1.0, 0.0]);
}

#[test]
fn numbers_that_are_written_or_want_a_gradient_stay() {
    let x = on_gpu(|| Tensor::from_slice(&[2.0f32], ())).unwrap();
    let here = number(1.0);
    let mask = on_gpu(|| Tensor::from_slice(&[true], ())).unwrap();
    let error = here.masked_fill_(&mask, &x).unwrap_err();
    assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
    let wanted = number(1.0).with_gradient().unwrap();
    let error = x.multiply(&wanted).unwrap_err();
    assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
    let moved = x.multiply(&wanted.to(Device::Gpu).unwrap()).unwrap();
    moved.backward(None, false).unwrap();
    let grad = wanted.grad().unwrap();
    assert_eq!((grad.device(), grad.to_vec::<f32>().unwrap()), (Device::Cpu, vec![2.0]));
}

#[test]
fn gradients_are_where_their_tensors_are() {
    let x = floats(&[1.0, 2.0, 3.0]).with_gradient().unwrap();
    let there = x.to(Device::Gpu).unwrap();
    let square = there.multiply(&there).unwrap();
    let options = GradOptions { create_graph: true, ..GradOptions::default() };
    let total = square.multiply(&there).unwrap().sum(None, false).unwrap();
    let first = Tensor::grad_of(&[&total], &[&x], &[], options).unwrap().remove(0).unwrap();
    assert_eq!(first.device(), Device::Cpu);
    assert_eq!(first.to_vec::<f32>().unwrap(), [3.0, 12.0, 27.0]);
    first.sum(None, false).unwrap().backward(None, false).unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [6.0, 12.0, 18.0]);

    let leaf = gpu_floats(&[1.0, 2.0]).with_gradient().unwrap();
    leaf.multiply(&leaf).unwrap().sum(None, false).unwrap().backward(None, false).unwrap();
    assert_eq!(leaf.grad().unwrap().device(), Device::Gpu);
    let here = floats(&[1.0, 1.0]);
    let error = leaf.multiply(&leaf).unwrap().backward(Some(&here), false).unwrap_err();
    assert!(matches!(error, Error::DeviceMismatch { op: "backward", .. }), "{error}");
    let error = leaf.set_grad(Some(&here)).unwrap_err();
    assert!(matches!(error, Error::DeviceMismatch { op: "grad", .. }), "{error}");
}

#[test]
fn calls_on_cpu_tensors_stay_there_whatever_is_chosen() {
    let (x, index) = (floats(&[1.0, 2.0, 0.0]), ints(&[0, 0, 2]));
    on_gpu(|| {
        let leaf = x.copy().unwrap().with_gradient().unwrap();
        let how = Scatter::reduce(inlay::Reduce::Mul).include_self(true);
        let y = leaf.scatter(&index, &x, how).unwrap();
        assert_eq!(y.device(), Device::Cpu);
        y.index_put(&[&index], &x, true).unwrap().sum(None, false).unwrap();
        y.sum(None, false).unwrap().backward(None, false).unwrap();
        assert_eq!(leaf.grad().unwrap().device(), Device::Cpu);
        assert_eq!(leaf.grad().unwrap().to_vec::<f32>().unwrap(), [2.0, 1.0, 0.0]);
    });
}
