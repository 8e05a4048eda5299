//! The cache of compiled kernels of a device. Each kernel is compiled once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use inlay_core::Result;

use crate::device::{Gpu, locked};
use crate::shader::Recipe;

/// A compiled kernel and the layout of its bindings.
pub(crate) struct Pipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
    /// Whether the kernel has checks, which write to the status of the batch.
    pub(crate) checks: bool,
}

/// The compiled pipelines. The key has all inputs of the generated source.
#[derive(Default)]
pub(crate) struct Pipelines(Mutex<HashMap<Recipe, Arc<Pipeline>>>);

impl Pipelines {
    /// Returns the pipeline of a recipe. Compiles it if it is not in the cache.
    pub(crate) fn get(&self, gpu: &Gpu, recipe: &Recipe) -> Result<Arc<Pipeline>> {
        let mut made = locked(&self.0);
        if let Some(found) = made.get(recipe) {
            return Ok(found.clone());
        }
        let pipeline = Arc::new(gpu.guarded(0, || compile(gpu, recipe))?);
        made.insert(recipe.clone(), pipeline.clone());
        Ok(pipeline)
    }
}

fn compile(gpu: &Gpu, recipe: &Recipe) -> Pipeline {
    let (device, label) = (&gpu.device, Some(recipe.name()));
    let entry = |(ty, binding)| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    };
    let bindings: Vec<_> = recipe.bindings().into_iter().zip(0..).map(entry).collect();
    let layout = device
        .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &bindings });
    let module = |source: String| {
        let source = wgpu::ShaderSource::Wgsl(source.into());
        device.create_shader_module(wgpu::ShaderModuleDescriptor { label, source })
    };
    let mut kernel = module(recipe.source(gpu.window));
    if cfg!(test) {
        // Unit tests validate the source of hundreds of kernels but run none of them. Compiling
        // them for the device would take minutes, so an empty kernel is compiled.
        kernel = module("@compute @workgroup_size(1) fn main() {}".into());
    }
    let whole = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label,
        bind_group_layouts: &[Some(&layout)],
        ..Default::default()
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label,
        layout: Some(&whole),
        module: &kernel,
        entry_point: Some("main"),
        compilation_options: Default::default(),
        cache: None,
    });
    Pipeline { pipeline, layout, checks: recipe.checks() }
}
