//! Tests of a build without the feature `gpu`: asking for a GPU is an error, and says what to do.

use inlay::{DType, Device, Error, Tensor, set_device, switch_device, with_device};

#[test]
fn every_way_to_a_gpu_is_the_same_error() {
    let x = Tensor::ones(&[2], DType::F32).unwrap();
    let tracked = x.clone().with_gradient().unwrap();
    let failed: [Result<(), Error>; 5] = [
        set_device(Device::Gpu),
        switch_device(Some(Device::Gpu)).map(drop),
        with_device(Device::Gpu, || Tensor::zeros(&[2], DType::F32)).map(drop),
        x.to(Device::Gpu).map(drop),
        tracked.to(Device::Gpu).map(drop),
    ];
    for failed in failed {
        let text = failed.unwrap_err().to_string();
        assert!(text.starts_with("no GPU: ") && text.contains("feature `gpu`"), "{text}");
    }
    assert_eq!(x.to(Device::Cpu).unwrap().device(), Device::Cpu);
    assert_eq!(inlay::devices().len(), 1);
}
