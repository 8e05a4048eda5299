"""A covariance matrix, learned from the variance along some directions.

    python examples/covariance.py [--steps N] [--picture FILE.png|FILE.svg|none]

The variance along a direction u is u'Cu. Gradient descent finds the matrix C from 60 of them.
C = LL' is always a covariance if L is lower triangular with a positive diagonal. L has 15
parameters, which `index_put` unpacks at `tril_indices`. `diagonal_scatter` squares the diagonal.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from _command import save, training

import inlay

TRUE = np.array(
    [
        [2.0, 0.8, -0.4, 0.0, 0.3],
        [0.8, 1.5, 0.3, -0.3, 0.0],
        [-0.4, 0.3, 1.8, 0.6, -0.5],
        [0.0, -0.3, 0.6, 1.2, 0.2],
        [0.3, 0.0, -0.5, 0.2, 1.0],
    ]
)
SIZE, DIRECTIONS, RATE, MOMENTUM = len(TRUE), 60, 0.05, 0.9
ROW, COLUMN = inlay.tril_indices(SIZE)


def covariance(packed: inlay.Tensor) -> inlay.Tensor:
    """LL', positive definite whatever is packed, as long as no diagonal element is 0."""
    factor = inlay.index_put(inlay.zeros([SIZE, SIZE], packed.dtype), (ROW, COLUMN), packed)
    diagonal = inlay.diagonal(factor)
    factor = inlay.diagonal_scatter(factor, diagonal * diagonal)
    return (factor[:, None] * factor[None]).sum(axis=2)


def train(steps: int) -> tuple[np.ndarray, list[float], list[float]]:
    """The learned matrix; before each step and after the last, the loss and the relative error."""
    direction = np.random.default_rng(0).normal(size=(DIRECTIONS, SIZE))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    outer = direction[:, :, None] * direction[:, None]
    measured = (outer * TRUE).sum(axis=(1, 2))

    identity = np.eye(SIZE)[ROW.numpy(), COLUMN.numpy()]
    packed = inlay.to_tensor(identity, stop_gradient=False)
    speed = inlay.zeros(packed.shape, packed.dtype)
    losses, errors = [], []
    print("step   loss      relative error")
    for step in range(steps + 1):
        learned = covariance(packed)
        miss = (learned * outer).sum(axis=[1, 2]) - measured
        loss = (miss * miss).mean()
        losses.append(loss.item())
        errors.append(float(np.linalg.norm(learned.numpy() - TRUE) / np.linalg.norm(TRUE)))
        if step == steps or step % max(1, steps // 10) == 0:
            print(f"{step:4}   {losses[-1]:.1e}   {errors[-1]:.1e}")
        if step < steps:
            loss.backward()
            with inlay.no_grad():
                speed = MOMENTUM * speed - RATE * packed.grad
                packed[...] = packed + speed
            packed.clear_grad()
    return learned.numpy(), losses, errors


def draw(path: Path, learned: np.ndarray, losses: list[float], errors: list[float]) -> None:
    """The true matrix, the learned one, their difference, and the training curves."""
    from _picture import COLOURS, FAINT, INK, LINE, SANS, SOFT
    from matplotlib import rc_context
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    blue_to_orange = LinearSegmentedColormap.from_list("", (COLOURS[0], "#f7f8fa", COLOURS[1]))
    unit = 10.0 ** np.floor(np.log10(max(np.abs(learned - TRUE).max(), 1e-16)))
    power = f"$10^{{{np.log10(unit):.0f}}}$"
    grids = {
        "True": (TRUE, "the one to find"),
        "Learned": (learned, f"relative error {errors[-1]:.0e}"),
        "Difference": ((learned - TRUE) / unit, f"in units of {power}"),
    }
    style = {"font.family": SANS, "axes.edgecolor": LINE, "text.color": INK, "font.size": 8}
    ticks = {"xtick.color": FAINT, "ytick.color": FAINT}
    with rc_context({**style, **ticks, "xtick.labelcolor": SOFT, "ytick.labelcolor": SOFT}):
        figure = Figure(figsize=(10, 3.7), facecolor="white")
        figure.text(0.02, 0.895, "A covariance, learned", size=16, weight="bold")
        seen = f"from the variance along {DIRECTIONS} random directions, in {len(losses) - 1} steps"
        figure.text(0.02, 0.825, seen, size=9.5, color=SOFT)
        for i, (name, (values, note)) in enumerate(grids.items()):
            axes = figure.add_axes((0.02 + 0.235 * i, 0.06, 0.215, 0.58))
            axes.set_axis_off()
            most = np.abs(values).max()
            cells = {"cmap": blue_to_orange, "vmin": -most, "vmax": most}
            axes.pcolormesh(values, edgecolors="white", linewidth=2.5, **cells)
            axes.invert_yaxis()
            for (row, column), value in np.ndenumerate(values):
                text = f"{value:.1f}".replace("-0.0", "0.0").replace("-", "\N{MINUS SIGN}")
                axes.text(column + 0.5, row + 0.5, text, ha="center", va="center_baseline")
            axes.text(0.04, -0.52, name, size=10, weight="bold")
            axes.text(0.04, -0.14, note, size=8, color=SOFT)
        curve = figure.add_axes((0.775, 0.135, 0.205, 0.505), yscale="log")
        curve.plot(losses, color=INK, lw=1.5, label="loss")
        curve.plot(errors, color=COLOURS[0], lw=1.5, label="relative error")
        figure.text(0.735, 0.7, "Training", size=10, weight="bold")
        figure.text(0.735, 0.656, "gradient descent with momentum", size=8, color=SOFT)
        curve.set_xlabel("step", color=SOFT)
        curve.spines[["top", "right"]].set_visible(False)
        curve.grid(axis="y", color=LINE, lw=0.6)
        curve.legend(frameon=False, labelcolor=SOFT)
        figure.savefig(path, dpi=150)


def main() -> None:
    options = training("Learns a covariance matrix by its factor.", "out/covariance.png", 300)
    learned, losses, errors = train(options.steps)
    print("\nTrue:                                  Learned:")
    for ours, theirs in zip(TRUE, learned, strict=True):
        print("  ".join("".join(f"{x:7.3f}" for x in row) for row in (ours, theirs)))
    print(f"\nrelative error {errors[-1]:.1e}")
    save(options.picture, lambda path: draw(path, learned, losses, errors))


if __name__ == "__main__":
    main()
