//! Pipelines: shaders compiled for the device, each once.

use std::sync::Arc;

use inlay_core::Result;

use crate::device::{Gpu, Shelf, locked};

/// A compiled kernel and what it is bound to.
pub(crate) struct Pipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
    /// Whether it may say that something is wrong.
    pub(crate) checks: bool,
}

/// How a kernel sees a binding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Uniform,
    Read,
    Write,
}

/// Those that were compiled, by what their source was made of.
#[derive(Default)]
pub(crate) struct Pipelines(Shelf<String, Arc<Pipeline>>);

impl Pipelines {
    /// The pipeline of `key`, from the source if it is new; `writes` says of each binding how the kernel
    /// sees it.
    pub(crate) fn get(
        &self,
        gpu: &Gpu,
        key: &str,
        bindings: &[Bound],
        source: impl FnOnce() -> String,
    ) -> Result<Arc<Pipeline>> {
        let mut shelf = locked(&self.0);
        if let Some(found) = shelf.get(key) {
            return Ok(found.clone());
        }
        let source = source();
        let made = gpu.guarded(0, || {
            let entries: Vec<_> = bindings
                .iter()
                .zip(0..)
                .map(|(bound, binding)| wgpu::BindGroupLayoutEntry {
                    binding,
                    visibility: wgpu::ShaderStages::COMPUTE,
                    ty: wgpu::BindingType::Buffer {
                        ty: match bound {
                            Bound::Uniform => wgpu::BufferBindingType::Uniform,
                            Bound::Read => wgpu::BufferBindingType::Storage { read_only: true },
                            Bound::Write => wgpu::BufferBindingType::Storage { read_only: false },
                        },
                        has_dynamic_offset: false,
                        min_binding_size: None,
                    },
                    count: None,
                })
                .collect();
            let layout = gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: Some(key),
                entries: &entries,
            });
            let module = gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(key),
                source: wgpu::ShaderSource::Wgsl(source.as_str().into()),
            });
            let whole = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some(key),
                bind_group_layouts: &[Some(&layout)],
                ..Default::default()
            });
            let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(key),
                layout: Some(&whole),
                module: &module,
                entry_point: Some("main"),
                compilation_options: Default::default(),
                cache: None,
            });
            Pipeline { pipeline, layout, checks: bindings.first() == Some(&Bound::Write) }
        });
        let made = Arc::new(made?);
        shelf.insert(key.to_string(), made.clone());
        Ok(made)
    }
}
