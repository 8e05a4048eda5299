//! Submission of a batch: encodes the commands, submits them, and reads the results back.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use inlay_core::{Error, Result};

use super::{Batch, Command, FINE, Wanted};
use crate::device::Gpu;

impl Batch {
    /// Encodes and submits the batch. If the host has something to read, waits, and returns the
    /// status words of the checks and the wanted bytes.
    pub(super) fn submit(
        &mut self,
        wanted: Option<Wanted<'_>>,
    ) -> Result<Option<(Vec<u32>, Vec<u8>)>> {
        let gpu = self.gpu.clone();
        // The status has at least four words, because kernels without checks bind the first four.
        let mut status = vec![FINE; (self.checks.len() + 1).max(4)];
        status[0] = 0;
        let status_bytes = 4 * status.len() as u64;
        let (status_at, _) = self.reserve(&status);
        let arena_bytes: Vec<u8> = self.arena.iter().flat_map(|word| word.to_le_bytes()).collect();
        let arena = gpu.pool.take(&gpu, arena_bytes.len())?;
        let status = gpu.pool.take(&gpu, status_bytes as usize)?;
        let want = wanted.map_or(0, |(_, _, len)| len.next_multiple_of(4) as u64);
        let reads = !self.checks.is_empty() || want > 0;
        let staging = match reads {
            true => Some(gpu.pool.staging(&gpu, status_bytes + want)?),
            false => None,
        };
        let submitted = gpu.guarded(arena_bytes.len(), || {
            gpu.queue.write_buffer(&arena, 0, &arena_bytes);
            let mut encoder = gpu.device.create_command_encoder(&Default::default());
            encoder.copy_buffer_to_buffer(&arena, 4 * status_at as u64, &status, 0, status_bytes);
            self.encode(&mut encoder, &arena, (&status, status_bytes));
            if let Some(staging) = &staging {
                encoder.copy_buffer_to_buffer(&status, 0, staging, 0, status_bytes);
                if let Some((from, at, _)) = wanted {
                    let (from, at) = (from.raw(), at as u64);
                    encoder.copy_buffer_to_buffer(from, at, staging, status_bytes, want);
                }
            }
            gpu.queue.submit([encoder.finish()])
        })?;
        gpu.pool.submissions.fetch_add(1, Ordering::Relaxed);
        gpu.pool.give(arena);
        gpu.pool.give(status);
        let Some(staging) = staging else { return Ok(None) };
        let bytes = gpu.read_back(&staging, status_bytes + want, submitted)?;
        gpu.pool.give_staging(staging);
        let (words, bytes) = bytes.split_at(status_bytes as usize);
        let (words, _) = words.as_chunks::<4>();
        let checks = words.iter().skip(1).map(|word| u32::from_le_bytes(*word)).collect();
        Ok(Some((checks, bytes.to_vec())))
    }

    /// Encodes the commands in order.
    fn encode(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        arena: &wgpu::Buffer,
        (status, status_bytes): (&wgpu::Buffer, u64),
    ) {
        let mut commands = self.commands.iter().peekable();
        while let Some(command) = commands.next() {
            match command {
                Command::Store { from, to, bytes } => {
                    encoder.copy_buffer_to_buffer(arena, 4 * *from as u64, to, 0, *bytes);
                    continue;
                }
                Command::Clear { to, bytes } => {
                    encoder.clear_buffer(to, 0, Some(*bytes));
                    continue;
                }
                Command::Copy { from, to, bytes } => {
                    encoder.copy_buffer_to_buffer(&from.0, from.1, &to.0, to.1, *bytes);
                    continue;
                }
                Command::Dispatch { .. } => {}
            }
            // Consecutive dispatches share a compute pass.
            let mut pass = encoder.begin_compute_pass(&Default::default());
            let mut next = Some(command);
            while let Some(Command::Dispatch { pipeline, bindings, params, groups }) = next {
                // Kernels without checks see the status as one uniform `vec4<u32>`.
                let seen = if pipeline.checks { status_bytes } else { 16 };
                let own = [(status, 0, seen), (arena, 4 * params.0 as u64, 4 * params.1 as u64)];
                let bound = bindings.iter().map(|part| (&part.raw, part.offset, part.size));
                let bindings: Vec<wgpu::BindGroupEntry<'_>> = own
                    .into_iter()
                    .chain(bound)
                    .zip(0..)
                    .map(|((buffer, offset, size), binding)| {
                        let size = std::num::NonZeroU64::new(size);
                        let part = wgpu::BufferBinding { buffer, offset, size };
                        wgpu::BindGroupEntry {
                            binding,
                            resource: wgpu::BindingResource::Buffer(part),
                        }
                    })
                    .collect();
                let group = self.gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: None,
                    layout: &pipeline.layout,
                    entries: &bindings,
                });
                pass.set_pipeline(&pipeline.pipeline);
                pass.set_bind_group(0, &group, &[]);
                pass.dispatch_workgroups(groups.0, groups.1, 1);
                next = commands.next_if(|next| matches!(next, Command::Dispatch { .. }));
            }
        }
    }
}

/// If a device is open, waits until it has finished the submissions of all threads.
///
/// # Errors
/// The device is lost.
pub fn synchronize() -> Result<()> {
    let Some(gpu) = crate::device::opened() else { return Ok(()) };
    gpu.expect_alive()?;
    match gpu.device.poll(wgpu::PollType::wait_indefinitely()) {
        Ok(_) => Ok(()),
        Err(error) => Err(gpu.lost(&error.to_string())),
    }
}

impl Gpu {
    /// Marks the device as lost, and returns the error.
    fn lost(&self, reason: &str) -> Error {
        self.lose();
        let name = &self.adapter().name;
        Error::DeviceLost { reason: format!("{name} was lost: {reason}") }
    }

    /// Waits for a submission, and reads the first `len` bytes of `staging`, which it has written.
    fn read_back(
        &self,
        staging: &wgpu::Buffer,
        len: u64,
        submitted: wgpu::SubmissionIndex,
    ) -> Result<Vec<u8>> {
        let lost = |reason: String| self.lost(&reason);
        let part = staging.slice(..len);
        let mapped = Arc::new(std::sync::OnceLock::new());
        let told = mapped.clone();
        part.map_async(wgpu::MapMode::Read, move |result| _ = told.set(result));
        let until = wgpu::PollType::Wait { submission_index: Some(submitted), timeout: None };
        self.device.poll(until).map_err(|error| lost(error.to_string()))?;
        // Another thread that polls the device may run the callback, so it may not have run yet.
        while mapped.get().is_none() {
            self.device.poll(wgpu::PollType::Poll).map_err(|error| lost(error.to_string()))?;
            std::thread::yield_now();
        }
        if let Some(Err(error)) = mapped.get() {
            return Err(lost(error.to_string()));
        }
        let bytes = part.get_mapped_range().map_err(|error| lost(error.to_string()))?.to_vec();
        staging.unmap();
        Ok(bytes)
    }
}
