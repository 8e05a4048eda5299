//! Measures two strategies over a range of sizes, and finds the size at which they are equally
//! fast.

use std::fmt::Write;
use std::time::{Duration, Instant};

use inlay_cpu::arch::{self, Level};
use inlay_cpu::tuning::Threshold;

/// The measurement of one threshold.
pub(crate) struct Case {
    /// The threshold to measure.
    pub(crate) threshold: &'static Threshold,
    /// The unit of a size, and the call, for the heading of the table.
    pub(crate) what: &'static str,
    /// The names of the strategies: up to the threshold, and above it.
    pub(crate) strategies: [&'static str; 2],
    /// The smallest and the largest size. Each size is twice the previous one.
    pub(crate) sizes: std::ops::RangeInclusive<usize>,
    /// The largest size with `--short`.
    pub(crate) short: usize,
    /// The instruction level to force, if the threshold does not matter at every level.
    pub(crate) level: Option<Level>,
    /// Makes the call for a size.
    pub(crate) call: fn(usize) -> Box<dyn Fn()>,
}

/// The times of both strategies at a size. Each is the lower quartile of all timings, because other
/// processes disturb it little.
struct Point {
    size: usize,
    times: [Duration; 2],
}

impl Point {
    /// The time of the second strategy divided by that of the first.
    fn ratio(&self) -> f64 {
        self.times[1].as_secs_f64() / self.times[0].as_secs_f64()
    }
}

/// Measures a threshold for about `time` per size, and returns a table.
pub(crate) fn sweep(case: &Case, time: Duration, short: bool) -> String {
    let _forced = case.level.map(arch::force);
    let last = if short { case.short } else { *case.sizes.end() };
    let sizes = std::iter::successors(Some(*case.sizes.start()), |&size| Some(2 * size));
    let points = sizes.take_while(|&size| size <= last).map(|size| {
        let call = (case.call)(size);
        Point { size, times: times(case.threshold, &*call, time) }
    });
    table(case, &points.collect::<Vec<_>>())
}

/// Times both strategies in alternation, so that other load on the machine affects both.
fn times(threshold: &'static Threshold, call: &dyn Fn(), time: Duration) -> [Duration; 2] {
    let mut times = [vec![], vec![]];
    let start = Instant::now();
    while times[0].len() < 3 || start.elapsed() < time {
        for (strategy, times) in times.iter_mut().enumerate() {
            let _changed = threshold.set(if strategy == 0 { usize::MAX } else { 1 });
            // Short calls are timed several at a time, because reading the clock takes time, too.
            let mut calls = 0;
            let start = Instant::now();
            while calls == 0 || start.elapsed() < Duration::from_micros(20) {
                call();
                calls += 1;
            }
            times.push(start.elapsed() / calls);
        }
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 4]
    })
}

fn table(case: &Case, points: &[Point]) -> String {
    let mut text = String::new();
    let (now, [up_to, above]) = (case.threshold.get(), case.strategies);
    let _ = writeln!(text, "\n{} = {}: {}", case.threshold.name, readable(now), case.what);
    let _ = writeln!(text, "  {:>8}  {up_to:>22}  {above:>22}  ratio", "size");
    for point in points {
        let [a, b] = point.times.map(|time| format!("{:.2} us", time.as_secs_f64() * 1e6));
        let size = readable(point.size);
        let _ = writeln!(text, "  {size:>8}  {a:>22}  {b:>22}  {:.2}", point.ratio());
    }
    let _ = writeln!(text, "  {}: {}", crossing(case, points), verdict(points, now));
    text
}

/// Describes the last crossing: the size at which the ratio passes 1 for the last time.
fn crossing(case: &Case, points: &[Point]) -> String {
    let faster = |point: &Point| point.ratio() < 1.0;
    let last = points.windows(2).rev().find(|pair| faster(&pair[0]) != faster(&pair[1]));
    match (last, points.last()) {
        (Some([a, b]), _) => {
            // Interpolates linearly between the two points, in logarithms of size and ratio.
            let (from, to) = (a.ratio().ln(), b.ratio().ln());
            let at = a.size as f64 * (b.size as f64 / a.size as f64).powf(from / (from - to));
            format!("they cross at {}", readable(at as usize))
        }
        (_, Some(point)) => {
            format!("always faster: {}", case.strategies[usize::from(faster(point))])
        }
        _ => "no sizes".into(),
    }
}

/// Describes the largest loss: the size at which the threshold's choice is worst.
fn verdict(points: &[Point], now: usize) -> String {
    let cost = |point: &&Point| {
        let ratio = point.ratio();
        if point.size <= now { (1.0 / ratio).max(1.0) } else { ratio.max(1.0) }
    };
    let worst = points.iter().max_by(|a, b| cost(a).total_cmp(&cost(b)));
    match worst.map(|point| (point.size, cost(&point))) {
        Some((_, cost)) if cost < 1.1 => "the value is good".into(),
        Some((size, cost)) => {
            format!("at {} the choice takes {cost:.2} of the best", readable(size))
        }
        None => "nothing measured".into(),
    }
}

/// Formats a number, with the binary unit K or M if it is large.
fn readable(number: usize) -> String {
    match number {
        _ if number >= 1 << 20 => format!("{:.1}M", number as f64 / f64::from(1 << 20)),
        _ if number >= 2 << 10 => format!("{:.1}K", number as f64 / f64::from(1 << 10)),
        _ => number.to_string(),
    }
}
