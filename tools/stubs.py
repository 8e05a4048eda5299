"""Write the type stubs of the operations from the table of operations.

    python tools/stubs.py [--check]

The script replaces the parts of ``python/inlay/_inlay.pyi`` and ``__init__.py`` between
markers. With ``--check`` it writes nothing, and fails if a file is stale.
"""

from __future__ import annotations

import builtins
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import inlay

PACKAGE = Path(__file__).resolve().parents[1] / "python/inlay"

# The annotation for each kind of argument.
TYPES = {
    "Tensor": "ArrayLike",
    "Like": "ArrayLike",
    "Operand": "ArrayLike",
    "Index": "ArrayLike",
    "Mask": "ArrayLike",
    "Tensors": "Sequence[ArrayLike]",
    "Indices": "Sequence[ArrayLike]",
    "Int": "SupportsIndex",
    "Bound": "SupportsIndex",
    "Extent": "SupportsIndex",
    "AxisList": "_Axes",
    "BoundList": "_Bounds",
    "Axes": "_Axes | None",
    "Ints": "_Axes",
    "Sizes": "_Axes",
    "Flag": "builtins.bool",
    "Reduce": "Reduce",
    "ReduceOrAssign": "ReduceOrAssign",
    "DType": "DTypeLike",
    "Device": "str",
    "Scalar": "Number",
    "Label": "str",
}


def annotated(argument: inlay.Argument, kind: str | None, arrays: str) -> str:
    text = kind or TYPES[argument.kind].replace("ArrayLike", arrays)
    if argument.required:
        return f"{argument.name}: {text}"
    if argument.default is None and "None" not in text and argument.kind != "BoundList":
        text += " | None"
    default = repr(argument.default).replace("'", '"')
    return f"{argument.name}: {text} = {default}"


def function(
    op: inlay.Operation,
    name: str,
    first: str | None,
    returns: str,
    arrays: str = "ArrayLike",
    gathers: str | None = None,
) -> str:
    """Return one definition.

    `first` is the annotation of the first argument, or ``self``. `arrays` is that of the arguments
    that are converted to tensors. `gathers` is the argument that takes its integers one by one.
    """
    parts, keywords = [], False
    for number, argument in enumerate(op.arguments):
        if argument.keyword_only and not keywords:
            keywords = True
            parts.append("*")
        if argument.name == gathers:
            keywords = True
            parts.append(f"*{gathers}: SupportsIndex")
        elif number == 0 and first == "self":
            parts.append("self")
        else:
            parts.append(annotated(argument, first if number == 0 else None, arrays))
    return f"def {name}({', '.join(parts)}) -> {returns}: ..."


def forms(op: inlay.Operation, name: str, ways: Sequence[tuple[str | None, str, str]]) -> list[str]:
    """Return the definitions of a function: one for each way, or two if it gathers integers."""
    lines = [
        function(op, name, *way, gathers)
        for way in ways
        for gathers in ([None, op.gathers] if op.gathers else [None])
    ]
    return lines if len(lines) == 1 else [line for text in lines for line in ("@overload", text)]


def functions(op: inlay.Operation) -> list[str]:
    """Return the overloads of a function: its result is typed by what comes in.

    A call on a `Tensor`, or on a tensor of PyTorch, Paddle or JAX, returns one. A call with only
    arrays, numbers and lists returns an array. In other calls, a later argument decides.
    """
    if op.returns == "Tensor":
        return forms(op, op.name, [(None, "Tensor", "ArrayLike")])
    kind = op.arguments[0].kind
    first = "Sequence[{}]" if kind in ("Tensors", "Indices") else "{}"
    ways = [
        (first.format("Tensor"), "Tensor", "ArrayLike"),
        (first.format("_Foreign"), "_Foreign", "ArrayLike"),
        (None, "npt.NDArray[Any]", "PlainLike"),
        (None, "Any", "ArrayLike"),
    ]
    lines = forms(op, op.name, ways)
    if op.twin:
        lines.append(function(op, op.twin, "_Target", "_Target"))
    return lines


def methods(op: inlay.Operation) -> list[str]:
    names = [op.name, *([op.twin] if op.twin else [])] if op.is_method else []
    ways = [("self", "Tensor", "ArrayLike")]
    return ["    " + line for name in names for line in forms(op, name, ways)]


def exported(hidden: frozenset[str] = frozenset()) -> list[str]:
    names = [name for op in inlay.operations() for name in (op.name, op.twin) if name]
    return [f'    "{name}",' for name in names if name not in hidden]


def replaced(text: str, part: str, lines: list[str]) -> str:
    begin, end = f"# {part}: begin", f"# {part}: end"
    head, rest = text.split(begin, 1)
    _, tail = rest.split(end, 1)
    indent = head[head.rindex("\n") + 1 :]
    return f"{head}{begin}\n" + "\n".join(lines) + f"\n{indent}{end}{tail}"


def formatted(path: Path, text: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    command = [str(ruff), "format", "--stdin-filename", str(path), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def main() -> int:
    table = inlay.operations()
    parts = {
        "exported": exported(),
        "methods": [line for op in table for line in methods(op)],
        "functions": [line for op in table for line in functions(op)],
    }
    # `from inlay import *` must not hide built-in functions such as `sum`.
    package = {"exported": exported(hidden=frozenset(dir(builtins)))}
    stale = []
    files = {"_inlay.pyi": parts, "__init__.py": package}
    for path, wanted in ((PACKAGE / name, wanted) for name, wanted in files.items()):
        old = text = path.read_text(encoding="utf-8")
        for part, lines in wanted.items():
            text = replaced(text, part, lines)
        text = formatted(path, text)
        if text != old:
            stale.append(path.name)
            if "--check" not in sys.argv[1:]:
                path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv[1:]:
        print(f"{' and '.join(stale)} stale: run `make stubs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
