//! Shows for each threshold of the CPU kernels at which size its two strategies are equally fast.
//!
//! Run `make sweep`, or `make sweep ONLY=dense` for one threshold. `--short` is for tests and
//! measures only a few sizes for a short time.

mod cases;
mod measure;

use std::time::Duration;

use inlay_cpu::arch::{Level, caches};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut only, mut short) = (String::new(), false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--short" => short = true,
            "--only" => only = arguments.next().unwrap_or_default().to_lowercase(),
            _ => {
                eprintln!("usage: sweep [--only NAME] [--short]");
                std::process::exit(2);
            }
        }
    }
    println!("{:?}, {:?}", caches::caches(), Level::all().last());
    let time = Duration::from_millis(if short { 1 } else { 400 });
    for case in cases::all() {
        if case.threshold.name.to_lowercase().contains(&only) {
            print!("{}", measure::sweep(&case, time, short));
        }
    }
}
