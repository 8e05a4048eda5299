//! Runs the examples of the crate. Each has assertions about its results.

#[path = "../../examples/graph_aggregation.rs"]
mod graph_aggregation;
#[path = "../../examples/key_value_cache.rs"]
mod key_value_cache;
#[path = "../../examples/saved_program.rs"]
mod saved_program;
#[path = "../../examples/training_loop.rs"]
mod training_loop;

#[test]
fn examples_give_the_results_that_they_state() {
    for main in
        [graph_aggregation::main, key_value_cache::main, saved_program::main, training_loop::main]
    {
        main().unwrap();
    }
}
