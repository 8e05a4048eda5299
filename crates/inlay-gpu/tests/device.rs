//! Tests of the device itself: recycled buffers, errors, a lost device.
//!
//! The tests share the device of the process, and one of them loses it. So they run one at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use inlay_core::{Combine, DType, Error, Layout, Result};
use inlay_gpu::kernels::{self, Positions};
use inlay_gpu::{Buffer, View, current, load, pool_stats, scope, store};

static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn line(count: usize, size: usize) -> Layout {
    Layout::contiguous("test", &[count], size).expect("a small layout")
}

/// Returns a buffer with the given words.
fn words(values: &[u32]) -> Buffer {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let buffer = Buffer::new(bytes.len()).expect("a device");
    store(&buffer, &bytes).expect("a successful upload");
    buffer
}

fn read(buffer: &Buffer) -> Result<Vec<u32>> {
    let bytes = load(buffer, buffer.len())?;
    let (words, _) = bytes.as_chunks::<4>();
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

fn view<'a>(buffer: &'a Buffer, layout: &'a Layout) -> View<'a> {
    View { buffer, layout, dtype: DType::U32 }
}

/// Reads an index into `size` places. The error names the first position that is out of range.
fn positions(index: &Buffer, size: usize) -> Result<Positions> {
    let layout = line(index.len() / 4, 4);
    let wrong = |at: usize| Error::Device { reason: format!("wrong at {at}") };
    Positions::read(view(index, &layout), size, Box::new(wrong))
}

#[test]
fn what_is_stored_is_loaded() {
    let _turn = turn();
    for len in [0usize, 1, 3, 4, 5, 255, 70_001] {
        let bytes: Vec<u8> = (0..len).map(|k| k as u8).collect();
        let buffer = Buffer::new(len).expect("a device");
        store(&buffer, &bytes).expect("a successful upload");
        assert_eq!(load(&buffer, len).expect("a successful read"), bytes);
        assert!(store(&buffer, &vec![0; len + 1]).is_err());
        assert!(load(&buffer, len + 1).is_err());
    }
}

#[test]
fn buffers_are_used_again() {
    let _turn = turn();
    drop(Buffer::new(123_456).expect("a device"));
    let before = pool_stats().expect("an open device");
    drop(Buffer::new(123_456).expect("a device"));
    let after = pool_stats().expect("an open device");
    assert_eq!((after.made, after.reused), (before.made, before.reused + 1));
    inlay_gpu::empty_pool();
    assert_eq!(pool_stats().expect("an open device").cached, 0);
}

#[test]
fn what_a_batch_frees_serves_again_in_it() {
    let _turn = turn();
    let (from, layout) = (words(&vec![7; 40_000]), line(40_000, 4));
    inlay_gpu::empty_pool();
    let before = pool_stats().expect("an open device");
    let last = scope(|| {
        let mut last = from.clone();
        for _ in 0..10 {
            let next = Buffer::new(from.len())?;
            kernels::copy(view(&next, &layout), view(&last, &layout))?;
            last = next;
        }
        Ok(last)
    });
    assert_eq!(read(&last.expect("copies")).expect("a successful read"), [7; 40_000]);
    // Two of the buffers alternate as results. The other two are the parameters and the status.
    assert!(pool_stats().expect("an open device").made - before.made <= 4);
}

#[test]
fn a_failed_check_tells_of_the_first_and_nothing_is_written() {
    let _turn = turn();
    let (to, updates) = (words(&[1, 2, 3]), words(&[10; 1000]));
    let (places, entries) = (line(3, 4), line(1000, 4));
    let mut index = vec![0; 1000];
    index[500..].fill(3);
    let index = words(&index);
    let failed = scope(|| {
        let index = positions(&index, 3)?;
        let (to, updates) = (view(&to, &places), view(&updates, &entries));
        kernels::scatter_rows("test", to, None, 0, &index, updates, Combine::Assign)
    });
    let failed = failed.expect_err("three places").error.to_string();
    assert!(failed.ends_with("wrong at 500"), "{failed}");
    assert_eq!(read(&to).expect("a successful read"), [1, 2, 3]);
}

#[test]
fn after_a_failed_check_later_calls_of_the_scope_write_nothing() {
    let _turn = turn();
    let (to, from, layout) = (words(&[1, 2]), words(&[8, 9]), line(2, 4));
    let (bad, good) = (words(&[5]), words(&[0]));
    let failed = scope(|| {
        positions(&good, 1)?;
        inlay_gpu::mark(7)?;
        positions(&bad, 1)?;
        inlay_gpu::mark(8)?;
        kernels::copy(view(&to, &layout), view(&from, &layout))
    });
    assert_eq!(failed.expect_err("one place").mark, 7);
    assert_eq!(read(&to).expect("a successful read"), [1, 2]);
}

#[test]
fn a_scope_that_fails_submits_nothing() {
    let _turn = turn();
    let (to, from, layout) = (words(&[1, 2]), words(&[8, 9]), line(2, 4));
    let failed: Result<(), _> = scope(|| {
        kernels::copy(view(&to, &layout), view(&from, &layout))?;
        Err(Error::Device { reason: "no".into() })
    });
    assert!(failed.is_err());
    assert_eq!(read(&to).expect("a successful read"), [1, 2]);
}

#[test]
fn what_does_not_fit_names_the_limit_and_the_size() {
    let _turn = turn();
    let adapter = current().expect("a device").adapter().clone();
    let (device, limit) = (adapter.name, adapter.max_buffer);
    for bytes in [limit as usize + 1, usize::MAX] {
        let failed = Buffer::new(bytes).map(drop).expect_err("too large");
        assert_eq!(failed, Error::DeviceLimit { device: device.clone(), bytes, limit });
        let text = failed.to_string();
        assert!(text.contains(&bytes.to_string()) && text.contains(&limit.to_string()), "{text}");
    }
    // The device is still usable.
    assert_eq!(read(&words(&[4])).expect("a successful read"), [4]);
}

#[test]
fn what_wgpu_refuses_is_an_error() {
    let _turn = turn();
    let (both, layout) = (words(&[1, 2, 3, 4]), line(4, 4));
    let back = Layout::over(&[4], &[-4], 12);
    // A kernel can't read and write the same buffer.
    let refused = scope(|| kernels::copy(view(&both, &layout), view(&both, &back)));
    assert!(matches!(*refused.expect_err("both").error, Error::Device { .. }));
    assert_eq!(read(&both).expect("a successful read"), [1, 2, 3, 4]);
}

#[test]
fn a_lost_device_is_an_error_and_is_opened_again() {
    let _turn = turn();
    let (old, layout) = (words(&[1, 2]), line(2, 4));
    current().expect("a device").destroy();
    let lost = |failed: Result<()>| matches!(failed, Err(Error::DeviceLost { .. }));
    assert!(lost(read(&old).map(drop)));
    assert!(lost(store(&old, &[1])));
    let fresh = words(&[5, 6]);
    assert_eq!(read(&fresh).expect("a new device"), [5, 6]);
    let mixed = scope(|| kernels::copy(view(&fresh, &layout), view(&old, &layout)));
    assert!(lost(mixed.map_err(Error::from)));
    assert_eq!(read(&fresh).expect("a successful read"), [5, 6]);
}
