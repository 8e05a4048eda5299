"""Compare two builds of Inlay: time them in alternation, and list the workloads that differ.

    python -m benchmarks.compare [--only PART] [--threads N] [--rounds N] [--new FILE] [--base FILE]

`make compare BASE=<git revision>` builds both and runs this module. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import math
import statistics
import sys
from collections.abc import Sequence

from benchmarks import judge, processes, rows, table
from benchmarks.contender import ROOT, Contender

KINDS = ("inlay", "inlay-numpy", "inlay-static", "inlay-gpu")
BASE = "-base"  # the suffix of the contenders of the base build
CHANGE = 0.03  # a larger change makes a row suspicious; it is reported if it also exceeds the noise
PASSES = 3  # how often a suspicious row is measured again, each time in new processes
LONGER = 2  # the factor by which these passes have more rounds
PIECES = 4  # the pieces of a timing; the fastest counts, because other load only adds time
# The half-width of a 99.9 % confidence interval of a median, in interquartile ranges / sqrt(n). The
# confidence level is high because hundreds of rows are compared.
WIDTH = 3.06
OUT = ROOT / "out/compare.csv"
LOG = OUT.with_suffix(".log")  # the output of the processes
COLUMNS = (
    *("workload", "contender", "base", "new", "ratio", "noise", "rounds", "passes", "verdict"),
)


def noise(ratios: Sequence[float]) -> float:
    """The half-width of the confidence interval of the median of some ratios."""
    low, _, high = statistics.quantiles(ratios, n=4)
    return WIDTH * (high - low) / math.sqrt(len(ratios))


@dataclasses.dataclass
class Pair:
    """A workload on one of Inlay's interfaces, in both builds."""

    row: rows.Row
    kind: str
    passes: list[list[tuple[float, float]]] = dataclasses.field(default_factory=list)

    @property
    def judged(self) -> list[list[tuple[float, float]]]:
        """The passes that count.

        The first pass of a suspicious row does not count, because it selected the row.
        """
        return self.passes[1:] or self.passes

    @property
    def ratios(self) -> list[float]:
        return [new / base for one in self.judged for base, new in one]

    @property
    def ratio(self) -> float:
        """The median over all rounds of the new build's time divided by the base build's."""
        return statistics.median(self.ratios)

    @property
    def noise(self) -> float:
        """The larger of the noise between rounds and the spread of the medians between passes."""
        middles = [statistics.median(new / base for base, new in one) for one in self.judged]
        return max(noise(self.ratios), max(middles) - min(middles))

    @property
    def suspicious(self) -> bool:
        return abs(self.ratio - 1) > CHANGE

    @property
    def verdict(self) -> str:
        """Report a change only if the row is still suspicious after every pass in new processes."""
        if len(self.passes) <= PASSES or not self.suspicious:
            return "same"
        if abs(self.ratio - 1) - self.noise <= CHANGE:
            return "unclear"
        return "slower" if self.ratio > 1 else "faster"

    def seconds(self, build: int) -> float:
        return statistics.median(times[build] for one in self.judged for times in one)

    def cells(self) -> list[str]:
        """The pair as a line of the CSV file."""
        return [
            *(self.row.name, self.kind, f"{self.seconds(0):.4g}", f"{self.seconds(1):.4g}"),
            *(f"{self.ratio:.4f}", f"{self.noise:.4f}", str(len(self.ratios))),
            *(str(len(self.passes)), self.verdict),
        ]

    def __str__(self) -> str:
        times = f"{table.span(self.seconds(0))} -> {table.span(self.seconds(1))}"
        name = f"{self.row.name} ({self.kind})"
        return f"{name:<62}{times:>22}   {self.ratio:5.3f} +- {self.noise:.3f}"


def means(samples: Sequence[float]) -> list[float]:
    """The geometric means of the two timings of each round."""
    return [math.sqrt(a * b) for a, b in zip(samples[::2], samples[1::2], strict=True)]


def compared(kind: str, row: rows.Row) -> bool:
    """Whether a workload has this interface: NumPy arrays have no gradients."""
    no_gradients = kind == "inlay-numpy" and row.mode == "backward"
    return processes.takes_part(kind, row) and not no_gradients


def time(pairs: Sequence[Pair], started: Sequence[Contender], rounds: int) -> list[str]:
    """Add a pass to the pairs of one row. Returns errors in the new build's results."""
    row = pairs[0].row
    names = {name for pair in pairs for name in (pair.kind, pair.kind + BASE)}
    contenders = {one.name: one for one in started if one.name in names}
    processes.prepare(row, contenders.values())
    for pair in pairs:
        base, new = contenders[pair.kind + BASE], contenders[pair.kind]
        # A round is base, new, new, base, so that effects of the order and a drift cancel out.
        for one in (base, new, new, base) * (rounds if base.ready and new.ready else 0):
            one.time(PIECES)
        if base.samples and len(base.samples) == len(new.samples):
            pair.passes.append(list(zip(means(base.samples), means(new.samples), strict=True)))
    wrong = list(judge.wrong(row, [contenders[pair.kind] for pair in pairs]))
    for one in contenders.values():
        one.release()
    return wrong


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", default="", help="workloads whose name contains this, or a group")
    parser.add_argument("--threads", type=int, default=processes.cores())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes, for a trial")
    parser.add_argument("--new", default=processes.python_of("new"), help="an interpreter")
    parser.add_argument("--base", default=processes.python_of("base"), help="an interpreter")
    return parser.parse_args()


def run(
    pairs: Sequence[Pair], options: argparse.Namespace, rounds: int, number: int = 0
) -> list[str]:
    """Measure pairs in newly started processes. Returns errors in results."""
    # Every other pass starts the base first. An effect of the order is noise between passes.
    builds = [("", options.new), (BASE, options.base)][:: 1 if number % 2 else -1]
    commands = [
        processes.Command(kind + build, kind, python)
        for kind in KINDS
        for build, python in builds
        if any(pair.kind == kind for pair in pairs)
    ]
    wrong = []
    with processes.started(commands, options.threads, LOG) as started:
        names = list(dict.fromkeys(pair.row.name for pair in pairs))
        for place, name in enumerate(names, 1):
            some = [pair for pair in pairs if pair.row.name == name]
            wrong += time(some, started, rounds)
            for pair in some:
                text = str(pair) if pair.passes else f"{name} ({pair.kind}): not compared"
                print(f"{place:>3}/{len(names)} {text}", flush=True)
    return wrong


def report(pairs: Sequence[Pair]) -> bool:
    """Print the rows that changed, and write all rows to a file. Returns whether one is slower."""
    found = [pair for pair in pairs if pair.passes]
    with OUT.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        lines.writerows(pair.cells() for pair in found)
    verdicts = {
        "faster": f"faster by more than {CHANGE:.0%} beyond noise",
        "unclear": f"changed by more than {CHANGE:.0%}, but not beyond noise",
        "slower": f"slower by more than {CHANGE:.0%} beyond noise",
    }
    for verdict, title in verdicts.items():
        some = [pair for pair in found if pair.verdict == verdict]
        print(f"\n{title}: {len(some)} of {len(found)}")
        for pair in sorted(some, key=lambda pair: pair.ratio):
            print(f"    {pair}")
    for kind in KINDS:
        logs = [math.log(pair.ratio) for pair in found if pair.kind == kind]
        if logs:
            mean = math.exp(statistics.fmean(logs))
            print(f"{kind}: new / base {mean:.3f}, geometric mean of {len(logs)} workloads")
    print(f"written: {OUT.relative_to(ROOT)}")
    return any(pair.verdict == "slower" for pair in found)


def main() -> int:
    options = arguments()
    chosen = [row.scaled(options.scale) for row in rows.load(options.only)]
    pairs = [Pair(row, kind) for row in chosen for kind in KINDS if compared(kind, row)]
    if not pairs:
        print(f"no workload's name contains {options.only!r}", file=sys.stderr)
        return 2
    processes.confine(options.threads)
    LOG.unlink(missing_ok=True)
    wrong = run(pairs, options, options.rounds)
    for number in range(PASSES):
        pairs_left = [pair for pair in pairs if len(pair.passes) > number and pair.suspicious]
        if pairs_left:
            print(f"\n{len(pairs_left)} suspicious: pass {number + 1} of {PASSES}, new processes")
            wrong += run(pairs_left, options, LONGER * options.rounds, number)
    slower = report(pairs)
    for text in wrong:
        print(f"the new build's result is wrong or missing: {text}", file=sys.stderr)
    return 1 if slower or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
