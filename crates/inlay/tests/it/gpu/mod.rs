//! Tensors on a GPU: construction, use with CPU tensors, and reads. Other GPU tests are in the same
//! files as the CPU tests.

mod mixed;
mod programs;

use inlay::interop::dlpack::{Copy, DLManagedTensor};
use inlay::{
    DType, Device, Error, Item, Slice, SliceScatter, Tensor, current_device, devices, set_device,
    with_device,
};

use crate::support::device::on_gpu;
use crate::support::{Nd, Rng};

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, &[values.len()]).unwrap()
}

fn gpu_floats(values: &[f32]) -> Tensor {
    on_gpu(|| floats(values))
}

#[test]
fn constructors_make_tensors_on_the_current_device() {
    on_gpu(|| {
        assert_eq!(current_device(), Device::Gpu);
        let made = [
            floats(&[1.0]),
            Tensor::zeros(&[2], DType::F32).unwrap(),
            Tensor::full(&[2, 2], 7, DType::I8).unwrap(),
            Tensor::arange(0, 5, 2, DType::I64).unwrap(),
            Tensor::tril_indices(3, 3, 0, DType::I64).unwrap(),
        ];
        made.iter().for_each(|tensor| assert_eq!(tensor.device(), Device::Gpu));
        // An inner call may choose another device.
        let inner = with_device(Device::Cpu, || floats(&[1.0])).unwrap();
        assert_eq!(inner.device(), Device::Cpu);
        assert_eq!(current_device(), Device::Gpu);
    });
    assert_eq!(floats(&[1.0]).device(), Device::Cpu);
}

#[test]
fn the_choice_of_a_thread_ends_with_a_panic_too() {
    let caught = std::panic::catch_unwind(|| on_gpu(|| panic!("on purpose")));
    assert!(caught.is_err());
    assert_eq!(current_device(), Device::Cpu);
}

#[test]
fn the_cpu_is_the_first_device_and_the_gpu_follows() {
    let all = devices();
    assert_eq!(all[0].device, Device::Cpu);
    assert!(all[1..].iter().all(|info| info.device == Device::Gpu && !info.name.is_empty()));
    assert!(!all[1..].is_empty());
    set_device(Device::Cpu).unwrap();
    let text = "gpu:1".parse::<Device>().unwrap_err().to_string();
    assert_eq!(text, r#"device: the device is "gpu:1", expected "cpu", "gpu" or "gpu:0""#);
}

#[test]
fn every_dtype_and_layout_goes_there_and_back() {
    let mut rng = Rng(41);
    for dtype in DType::ALL {
        for shape in [vec![], vec![0, 3], vec![1], vec![5], vec![3, 1, 4], vec![65, 33]] {
            let nd = Nd::random(&mut rng, dtype, &shape);
            let there = nd.scattered(&mut rng).to(Device::Gpu).unwrap();
            assert_eq!(there.device(), Device::Gpu);
            assert!(there.is_contiguous());
            assert_eq!(Nd::of_tensor(&there.cpu().unwrap()).cells, nd.cells, "{dtype} {shape:?}");
            // The same holds for a strided view on the GPU.
            let cut = on_gpu(|| nd.scattered(&mut rng));
            assert_eq!(Nd::of_tensor(&cut).cells, nd.cells, "{dtype} {shape:?}");
        }
    }
}

#[test]
fn a_tensor_that_is_there_stays_what_it_is() {
    let x = gpu_floats(&[1.0, 2.0]);
    let same = x.to(Device::Gpu).unwrap();
    same.assign(&[Item::At(0)], &Tensor::number("test", "x", 5.0, DType::F32).unwrap()).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [5.0, 2.0]);
}

#[test]
fn text_shows_values_and_device() {
    let x = gpu_floats(&[1.0, 2.5]);
    assert_eq!(format!("{x:?}"), "Tensor([1.0, 2.5], shape=[2], dtype=float32, device=gpu)");
    let odd = x.slice(&SliceScatter::new(0, Slice::new(1, None, 1))).unwrap();
    assert!(format!("{odd:?}").starts_with("Tensor([2.5]"));
    let large = on_gpu(|| Tensor::arange(0, 5000, 1, DType::I64)).unwrap();
    assert!(format!("{large:?}").starts_with("Tensor([   0,    1,    2, ..., 4997, 4998, 4999]"));
}

#[test]
fn memory_is_shared_only_from_the_cpu() {
    let x = gpu_floats(&[1.0]);
    assert!(x.data_ptr().is_null());
    assert!(!x.is_foreign() && x.is_writable());
    let error = x.to_dlpack::<DLManagedTensor>(Copy::IfNeeded).unwrap_err();
    assert_eq!(error, Error::NotOnCpu { op: "to_dlpack", got: "gpu" });
    let text = "to_dlpack: the tensor is on gpu; copy it to the CPU with .cpu() first";
    assert_eq!(error.to_string(), text);
    assert!(x.cpu().unwrap().to_dlpack::<DLManagedTensor>(Copy::Never).is_ok());
}

#[test]
fn memory_that_is_let_go_is_used_again() {
    drop(gpu_floats(&[0.0; 100]));
    let before = inlay::gpu_memory_stats().unwrap();
    for _ in 0..10 {
        drop(gpu_floats(&[0.0; 100]));
    }
    assert!(inlay::gpu_memory_stats().unwrap().reused >= before.reused + 10);
    inlay::empty_gpu_cache();
}
