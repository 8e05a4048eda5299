//! Tests of what the tape saves, rejects and frees.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use inlay::{DType, Error, Item, NoGrad, Reduce, Scatter, Slice, Tensor};

use super::{REDUCTIONS, check, ints, random};
use crate::support::Rng;
use crate::support::device::also_on_gpu;

#[test]
fn in_place_on_a_computed_tensor_is_out_of_place() {
    let rng = &mut Rng(5);
    for reduce in REDUCTIONS {
        let how = Scatter::reduce(reduce).include_self(true);
        let f = move |t: &[Tensor]| {
            let y = t[0].multiply(&t[0])?;
            y.scatter_(&ints(&[0, 2, 0]), &t[1], how)?;
            // The rules of amax and amin read the result, so it must not change.
            if matches!(reduce, Reduce::Amax | Reduce::Amin) {
                return Ok(y);
            }
            y.assign(&[Item::At(1)], &t[1].index(&[Item::At(0)])?)?;
            y.assign(&[Item::Tensor(ints(&[2]))], &t[1].index(&[Item::At(1)])?)?;
            Ok(y)
        };
        check(
            &format!("in place {reduce}"),
            vec![random(rng, &[3]), random(rng, &[3])],
            Box::new(f),
        );
    }
}

#[test]
fn what_a_rule_needs_must_not_change() {
    let x = ones(&[3]);
    let y = x.multiply(&x).unwrap();
    let z = y.multiply(&y).unwrap().sum(None, false).unwrap();
    y.scatter_(&ints(&[0]), &Tensor::zeros(&[1], DType::F64).unwrap(), Scatter::overwrite())
        .unwrap();
    let error = z.backward(None, false).unwrap_err();
    assert_eq!(error, Error::Modified { op: "multiply" });
    assert!(x.grad().is_none());
}

fn ones(shape: &[usize]) -> Tensor {
    Tensor::ones(shape, DType::F64).unwrap().with_gradient().unwrap()
}

#[test]
fn leaves_and_views_are_not_written_while_recording() {
    let zero = Tensor::zeros(&[1], DType::F64).unwrap();
    let write = |x: &Tensor| x.scatter_(&ints(&[0]), &zero, Scatter::overwrite()).map(drop);
    let leaf = ones(&[3]);
    assert!(matches!(write(&leaf).unwrap_err(), Error::InPlaceLeaf { .. }));
    let computed = leaf.multiply(&leaf).unwrap();
    let view = computed.index(&[Item::Slice(Slice::new(1, None, 1))]).unwrap();
    assert!(matches!(write(&view).unwrap_err(), Error::InPlaceView { .. }));
    // If the memory of a view is written after the view was made, the history of the view is stale.
    write(&computed).unwrap();
    assert!(matches!(view.add(&view).unwrap_err(), Error::StaleView { .. }));
    let _off = NoGrad::new();
    write(&leaf).unwrap();
    assert_eq!(leaf.to_vec::<f64>().unwrap(), [0.0, 1.0, 1.0]);
}

#[test]
fn a_leaf_that_is_a_view_may_be_trained() {
    let w =
        Tensor::ones(&[2, 2], DType::F64).unwrap().reshape(&[4]).unwrap().with_gradient().unwrap();
    for _ in 0..3 {
        w.multiply(&w).unwrap().sum(None, false).unwrap().backward(None, false).unwrap();
        let _off = NoGrad::new();
        w.assign(&[Item::Ellipsis], &w.subtract(&w.grad().unwrap()).unwrap()).unwrap();
        w.clear_grad();
    }
    // Each step changes `w` to `w - 2 w`.
    assert_eq!(w.to_vec::<f64>().unwrap(), [-1.0; 4]);
}

#[test]
fn a_graph_is_used_once_unless_it_is_kept() {
    let x = ones(&[2]);
    let y = x.multiply(&x).unwrap().sum(None, false).unwrap();
    y.backward(None, true).unwrap();
    y.backward(None, false).unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [4.0, 4.0]);
    assert!(matches!(y.backward(None, false).unwrap_err(), Error::GraphFreed { .. }));
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [4.0, 4.0]);
}

#[test]
fn a_chain_of_a_hundred_thousand_does_not_overflow_the_stack() {
    // A spawned thread has a stack of only 2 MiB, a quarter of the main thread's.
    let run = || {
        let x = ones(&[1]);
        let one = Tensor::ones(&[1], DType::F64).unwrap();
        let chain = |x: &Tensor| (0..100_000).fold(x.clone(), |y, _| y.multiply(&one).unwrap());
        chain(&x).backward(None, false).unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [1.0]);
        drop(chain(&x));
    };
    std::thread::spawn(run).join().unwrap();
}

/// A tensor of ones whose memory sets a flag when it is freed.
fn watched(values: &'static [f64], gone: &Arc<AtomicBool>) -> Tensor {
    struct Owner(Arc<AtomicBool>);
    impl Drop for Owner {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let layout = inlay::Layout::contiguous("test", &[values.len()], 8).unwrap();
    let ptr = std::ptr::NonNull::from(values).cast();
    let owner = Box::new(Owner(Arc::clone(gone)));
    // SAFETY: the values are static and initialized. The tensor is read-only, so nothing writes
    // them.
    unsafe { Tensor::from_foreign(ptr, size_of_val(values), layout, DType::F64, false, owner) }
        .unwrap()
}

#[test]
fn an_overwriting_scatter_keeps_neither_base_nor_updates() {
    static ONES: [f64; 4] = [1.0; 4];
    let (base_gone, updates_gone) = (Arc::default(), Arc::default());
    let x = watched(&ONES, &base_gone).with_gradient().unwrap();
    let updates = watched(&ONES, &updates_gone).with_gradient().unwrap();
    let y = x.scatter(&ints(&[0, 1, 2, 3]), &updates, Scatter::overwrite()).unwrap();
    drop((x, updates));
    assert!(base_gone.load(Ordering::Relaxed) && updates_gone.load(Ordering::Relaxed));
    y.sum(None, false).unwrap().backward(None, false).unwrap();
    // A product saves its factors.
    let kept = Arc::default();
    let x = watched(&ONES, &kept).with_gradient().unwrap();
    let y = x.multiply(&x).unwrap();
    drop(x);
    assert!(!kept.load(Ordering::Relaxed));
    drop(y);
    assert!(kept.load(Ordering::Relaxed));
}

#[test]
fn threads_may_share_a_leaf() {
    let x = ones(&[100]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    x.multiply(&x)
                        .unwrap()
                        .sum(None, false)
                        .unwrap()
                        .backward(None, false)
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [200.0; 100]);
}

also_on_gpu!(
    what_a_rule_needs_must_not_change,
    leaves_and_views_are_not_written_while_recording,
    a_leaf_that_is_a_view_may_be_trained,
    a_graph_is_used_once_unless_it_is_kept,
    threads_may_share_a_leaf,
);

#[cfg(feature = "gpu")]
#[test]
fn in_place_on_the_gpu_is_in_place_on_the_cpu() {
    super::same_on_gpu(in_place_on_a_computed_tensor_is_out_of_place);
}

#[test]
fn a_computed_tensor_keeps_its_gradient_if_asked_to() {
    let x = ones(&[2]);
    let (kept, other) = (x.multiply(&x).unwrap(), x.add(&x).unwrap());
    kept.retain_grads().unwrap();
    kept.retain_grads().unwrap(); // The second call changes nothing.
    let z = kept.multiply(&other).unwrap().sum(None, false).unwrap();
    for passes in 1..3 {
        z.backward(None, true).unwrap();
        assert_eq!(kept.grad().unwrap().to_vec::<f64>().unwrap(), [2.0 * f64::from(passes); 2]);
        assert!(other.grad().is_none());
    }
    Tensor::grad_of(&[&z], &[&x], &[], inlay::GradOptions::default()).unwrap();
    assert_eq!(kept.grad().unwrap().to_vec::<f64>().unwrap(), [4.0; 2]);

    let error = Tensor::ones(&[1], DType::F64).unwrap().retain_grads().unwrap_err();
    assert!(error.to_string().starts_with("retain_grads: tensor is one with stop_gradient"));
}

#[test]
fn a_kept_gradient_is_that_after_hooks_and_in_place_writes() {
    let x = ones(&[2]);
    let y = x.multiply(&x).unwrap();
    y.retain_grads().unwrap();
    y.assign(&[Item::At(0)], &Tensor::zeros((), DType::F64).unwrap()).unwrap();
    y.register_hook(|grad| grad.add(grad).map(Some)).unwrap();
    y.sum(None, false).unwrap().backward(None, false).unwrap();
    assert_eq!(y.grad().unwrap().to_vec::<f64>().unwrap(), [2.0; 2]);
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [0.0, 4.0]);
}

#[test]
fn a_failed_pass_keeps_no_gradient() {
    let x = ones(&[2]);
    let y = x.multiply(&x).unwrap();
    y.retain_grads().unwrap();
    let z = y.sum(None, false).unwrap();
    x.register_hook(|_| Err(Error::GraphFreed { op: "hook" })).unwrap();
    z.backward(None, false).unwrap_err();
    assert!(y.grad().is_none());
}
