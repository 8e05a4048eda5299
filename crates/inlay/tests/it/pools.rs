//! Tests of operations inside of rayon pools: they use the threads of the pool, never wait for each
//! other's jobs, and give the same bits.

use inlay::{DType, Reduce, Result, Scatter, Tensor};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Enough elements for several parts per thread.
const LEN: usize = 1 << 18;

fn pool_of(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn everywhere() -> Tensor {
    let index: Vec<i64> = (0..LEN as i64).collect();
    Tensor::from_slice(&index, &[LEN]).unwrap()
}

#[test]
fn jobs_of_one_pool_write_one_tensor_in_turn() {
    let (x, ones) =
        (Tensor::zeros(&[LEN], DType::F32).unwrap(), Tensor::ones(&[LEN], DType::F32).unwrap());
    let index = everywhere();
    let sum = Scatter::reduce(Reduce::Sum).include_self(true);
    let add = || x.scatter_(&index, &ones, sum).map(drop).unwrap();
    for threads in [1, 2, 4] {
        pool_of(threads).scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|_| {
                    rayon::join(add, || rayon::scope(|inner| inner.spawn(|_| add())));
                });
            }
        });
    }
    assert!(x.to_vec::<f32>().unwrap().iter().all(|&sum| sum == 48.0));
}

#[test]
fn results_do_not_depend_on_the_pool() {
    let values: Vec<f32> = (0..LEN).map(|k| 1.0 / (k as f32 + 1.0)).collect();
    let index: Vec<i64> = (0..LEN).map(|k| (k * 7919 % 1000) as i64).collect();
    let updates = Tensor::from_slice(&values, &[LEN]).unwrap();
    let index = Tensor::from_slice(&index, &[LEN]).unwrap();
    let x = Tensor::zeros(&[1000], DType::F32).unwrap();
    let sums = || -> Result<Vec<f32>> {
        x.scatter(&index, &updates, Scatter::reduce(Reduce::Sum))?.to_vec()
    };
    let alone = sums().unwrap();
    for threads in [1, 2, 3, 8] {
        assert_eq!(pool_of(threads).install(sums).unwrap(), alone);
    }
}
