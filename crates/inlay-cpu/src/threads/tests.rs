use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::*;

fn pool_of(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a few threads")
}

/// Waits until the condition holds. Panics after a time that no machine needs.
fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "the condition never holds");
        std::thread::yield_now();
    }
}

#[test]
fn parts_cover_the_range_once() {
    for len in [0, 1, 5, 64, 1000] {
        for parts in 1..=7 {
            let mut next = 0;
            for part in 0..parts {
                let range = part_of(len, parts, part);
                assert_eq!(range.start, next);
                next = range.end;
            }
            assert_eq!(next, len);
        }
    }
}

#[test]
fn every_part_is_called_once() {
    let check = |threads: usize| {
        for parts in [2, 3, 8, 1000] {
            let calls: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
            let work = |part: usize| _ = calls[part].fetch_add(1, SeqCst);
            match rayon::current_thread_index() {
                Some(_) => assert!(run_in_worker(parts, &work, threads)),
                None => run(parts, work),
            }
            assert!(calls.iter().all(|calls| calls.load(SeqCst) == 1));
        }
    };
    for threads in [2, 3, 8] {
        check(threads);
        pool_of(threads).install(|| (0..100).for_each(|_| check(threads)));
    }
}

#[test]
fn a_worker_is_helped_by_the_threads_of_its_pool() {
    pool_of(3).install(|| {
        let seen = Mutex::new(BTreeSet::new());
        let seen_by_all = || seen.lock().expect("no panic").len() == 3;
        // Each part waits until three threads have one.
        let done = run_in_worker(
            3,
            &|_| {
                seen.lock().expect("no panic").insert(rayon::current_thread_index());
                wait_until(seen_by_all);
            },
            8,
        );
        assert!(done);
        assert_eq!(seen.into_inner().expect("no panic"), [0, 1, 2].map(Some).into());
    });
}

#[test]
fn a_worker_uses_no_more_threads_than_allowed() {
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = |_| {
        most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
        std::thread::sleep(Duration::from_millis(1));
        now.fetch_sub(1, SeqCst);
    };
    pool_of(4).install(|| {
        // The second call may be helped by threads that the first one has asked for.
        run_in_worker(4, &work, 4);
        most.store(0, SeqCst);
        run_in_worker(20, &work, 2);
    });
    assert!(most.load(SeqCst) <= 2);
}

#[test]
fn a_call_does_not_wait_for_a_busy_pool() {
    let (busy, released) = (AtomicBool::new(false), AtomicBool::new(false));
    let pool = pool_of(2);
    pool.in_place_scope(|scope| {
        scope.spawn(|_| {
            busy.store(true, SeqCst);
            wait_until(|| released.load(SeqCst));
        });
        wait_until(|| busy.load(SeqCst));
        pool.install(|| {
            for _ in 0..1000 {
                let calls = AtomicUsize::new(0);
                assert!(run_in_worker(8, &|_| _ = calls.fetch_add(1, SeqCst), 8));
                assert_eq!(calls.into_inner(), 8);
            }
            // No more jobs are queued than can help.
            assert_eq!(desk::awaited(), 1);
        });
        released.store(true, SeqCst);
    });
}

#[test]
fn jobs_of_one_pool_may_hold_a_lock_during_a_call() {
    // A call that ran other jobs while it waits would run one that waits for the lock forever.
    let total = Mutex::new(0);
    let job = || {
        let mut total = total.lock().expect("no panic");
        let sum = AtomicUsize::new(0);
        let work = |part| {
            std::thread::sleep(Duration::from_micros(20));
            sum.fetch_add(part, SeqCst);
        };
        assert!(run_in_worker(8, &work, 8));
        *total += sum.into_inner();
    };
    pool_of(4).scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|_| rayon::scope(|inner| (0..4).for_each(|_| inner.spawn(|_| job()))));
        }
    });
    assert_eq!(total.into_inner().expect("no panic"), 200 * 28);
}

#[test]
fn a_part_may_split_its_own_work() {
    let calls = AtomicUsize::new(0);
    let outer = |_| run(4, |_| _ = calls.fetch_add(1, SeqCst));
    pool_of(2).install(|| assert!(run_in_worker(4, &outer, 2)));
    run(4, outer);
    assert_eq!(calls.into_inner(), 32);
}

#[test]
fn the_panic_of_a_helper_reaches_the_caller() {
    let pool = pool_of(2);
    for _ in 0..3 {
        let panicked = AtomicBool::new(false);
        let caught = pool.install(|| {
            let caller = rayon::current_thread_index();
            let work = |_| {
                if rayon::current_thread_index() != caller {
                    panicked.store(true, SeqCst);
                    panic!("a helper");
                }
                wait_until(|| panicked.load(SeqCst));
            };
            catch_unwind(AssertUnwindSafe(|| run_in_worker(2, &work, 2))).expect_err("a panic")
        });
        assert_eq!(caught.downcast_ref(), Some(&"a helper"));
    }
}

#[test]
fn a_caller_that_panics_waits_for_its_helpers() {
    let (started, finished) = (AtomicBool::new(false), AtomicBool::new(false));
    pool_of(2).install(|| {
        let caller = rayon::current_thread_index();
        let work = |_| {
            if rayon::current_thread_index() == caller {
                wait_until(|| started.load(SeqCst));
                panic!("the caller");
            }
            started.store(true, SeqCst);
            std::thread::sleep(Duration::from_millis(20));
            finished.store(true, SeqCst);
        };
        let caught = catch_unwind(AssertUnwindSafe(|| run_in_worker(2, &work, 2)));
        assert!(finished.load(SeqCst));
        assert_eq!(caught.expect_err("a panic").downcast_ref(), Some(&"the caller"));
    });
}

#[test]
fn the_number_of_openmp_is_the_first_of_a_list() {
    for (text, threads) in [
        (None, None),
        (Some("4"), Some(4)),
        (Some(" 3 , 2"), Some(3)),
        (Some("0"), None),
        (Some("-1"), None),
        (Some(""), None),
        (Some("many"), None),
    ] {
        assert_eq!(of_openmp(text), threads, "{text:?}");
    }
}

#[test]
fn every_part_is_recorded_once() {
    let work = |_| run(3, |_| std::hint::black_box(()));
    let ((), recorded) = recorded(false, || pool_of(2).install(|| run(5, work)));
    // Other tests run at the same time, so there may be more phases.
    assert!(recorded.phases.iter().any(|parts| parts.len() == 5));
}

#[test]
fn nobody_spins_if_there_are_more_threads_than_cores() {
    let calls = AtomicUsize::new(0);
    let never = || {
        calls.fetch_add(1, SeqCst);
        false
    };
    let before = num_threads();
    set_num_threads(MAX_THREADS);
    desk::linger(never);
    set_num_threads(before);
    assert_eq!(calls.load(SeqCst), 0);
}
