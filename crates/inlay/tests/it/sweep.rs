//! Tests `make sweep` with few sizes and short timings.

#[path = "../../examples/sweep/cases.rs"]
mod cases;
#[path = "../../examples/sweep/measure.rs"]
mod measure;

use std::time::Duration;

use inlay_cpu::tuning;

#[test]
fn every_threshold_has_a_sweep_that_runs() {
    // The guard keeps other tests from changing thresholds in the meantime.
    let _released = crate::support::tuning::released();
    let cases = cases::all();
    for threshold in tuning::ALL {
        let name = threshold.name;
        let of_name: Vec<_> = cases.iter().filter(|case| case.threshold.name == name).collect();
        assert_eq!(of_name.len(), 1, "{name}");
        let before = threshold.get();
        let text = measure::sweep(of_name[0], Duration::from_millis(1), true);
        assert!(text.contains(name) && text.contains("ratio"), "{text}");
        assert_eq!(threshold.get(), before);
    }
}
