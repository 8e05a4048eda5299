"""Counts the instructions of tiny calls from Rust, by stage, with valgrind.

The counts are exact: the same binary gives the same counts on a busy machine.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import tempfile

CALLS = 2000

# The first stage with a pattern that the name of a function contains has its instructions.
STAGES = {
    "allocate and free": [
        "malloc",
        "free",
        "memset",
        "drop",
        "with_history",
        "Array::on",
        "Array::filling",
        "new_like",
        "row_major",
        "packed",
        "Buffer::new",
        "Out::of",
        "memory::shared",
    ],
    "infer": ["::infer", "Region>::shape", "inlay_core::meta", "SmallVec", "broadcast::common"],
    "views and locks": ["device::", "Buffer::span", "memory::buffer", "layout::Layout", "RwLock"],
    "kernel": ["inlay_cpu::kernels", "inlay_cpu::walk", "mem", "inlay_cpu::arch", "threads::"],
    "funnel": ["funnel", "meta_into", "placement", "tape", "Tensor"],
    "operation": ["inlay::ops", "inlay::"],
}


def counts(binary: str, name: str, calls: int) -> collections.Counter[str]:
    """The instructions of each function during a run of the example."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "callgrind")
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={path}"]
        command = [*valgrind, binary, name, str(calls)]
        subprocess.run(command, check=True, capture_output=True)
        lines = path.read_text().splitlines()
    names: dict[str, str] = {}
    found: collections.Counter[str] = collections.Counter()
    function, is_call = "", False
    for line in lines:
        if match := re.match(r"c?fn=(\(\d+\))(?: (.*))?", line):
            number, text = match.groups()
            names.setdefault(number, text or "")
            if line.startswith("fn="):
                function = names[number]
        elif line.startswith("calls="):
            is_call = True
        elif re.match(r"[\d+*-]", line):
            # The line after a call has the instructions of the called function.
            if not is_call:
                found[function] += int(line.split()[1])
            is_call = False
    return found


def stage_of(function: str) -> str:
    """The stage that a function belongs to."""
    for stage, patterns in STAGES.items():
        if any(pattern in function for pattern in patterns):
            return stage
    return "other"


def main() -> None:
    """Prints a table: a row per operation, a column per stage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary", help="the example `tiny`, built with debug information")
    parser.add_argument("--only", default="", help="operations whose name contains this")
    parser.add_argument("--functions", action="store_true", help="list functions, too")
    options = parser.parse_args()
    listed = subprocess.run([options.binary, "--list"], check=True, capture_output=True, text=True)
    stages = [*STAGES, "other"]
    print("| operation | total |", " | ".join(stages), "|")
    print("|---|" + "---:|" * (len(stages) + 1))
    for name in listed.stdout.splitlines():
        if options.only not in name:
            continue
        found = counts(options.binary, name, CALLS)
        found.subtract(counts(options.binary, name, 0))
        each = collections.Counter({key: value / CALLS for key, value in found.items()})
        by_stage: collections.Counter[str] = collections.Counter()
        for function, instructions in each.items():
            by_stage[stage_of(function)] += instructions
        cells = [by_stage.total(), *(by_stage[stage] for stage in stages)]
        print(f"| `{name}` |", " | ".join(f"{cell:,.0f}" for cell in cells), "|")
        if options.functions:
            for function, instructions in each.most_common(30):
                print(f"    {instructions:7,.0f}  {stage_of(function):18} {function[:100]}")


if __name__ == "__main__":
    main()
