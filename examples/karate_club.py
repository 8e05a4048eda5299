"""A graph network that finds the two factions of a karate club from two labelled members.

    python examples/karate_club.py [--steps N] [--picture FILE.png|FILE.svg|none]

In the 1970s a club of 34 members split in two. Wayne Zachary had recorded which members met outside
the lessons: 78 pairs (Journal of Anthropological Research 33, 1977). Only the instructor and the
president are labelled. The network learns the rest from the pairs: in each of two layers, every
member takes the mean of its own row and those of its neighbours, by `scatter`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from _command import save, training

import inlay

# Each pair once, with the smaller number first. Members are numbered from 0, in Zachary's order.
MET = {
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31),
    1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13),
    4: (6, 10),
    5: (6, 10, 16),
    6: (16,),
    8: (30, 32, 33),
    9: (33,),
    13: (33,),
    14: (32, 33),
    15: (32, 33),
    18: (32, 33),
    19: (33,),
    20: (32, 33),
    22: (32, 33),
    23: (25, 27, 29, 32, 33),
    24: (25, 27, 31),
    25: (31,),
    26: (29, 33),
    27: (33,),
    28: (31, 33),
    29: (32, 33),
    30: (32, 33),
    31: (32, 33),
    32: (33,),
}
PAIRS = np.array([(a, b) for a, others in MET.items() for b in others])
MEMBERS, INSTRUCTOR, PRESIDENT = 34, 0, 33
WENT_WITH_INSTRUCTOR = np.isin(
    np.arange(MEMBERS), (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21)
)

# Messages go both ways along each pair.
SENDER, RECEIVER = (inlay.to_tensor(ends) for ends in np.concatenate((PAIRS, PAIRS[:, ::-1])).T)
LABELLED, LABELS = np.array([INSTRUCTOR, PRESIDENT]), np.array([[1.0], [-1.0]])
WIDTH, RATE = 16, 0.5


def aggregate(x: inlay.Tensor) -> inlay.Tensor:
    """Give each member the mean of its own row and its neighbours'."""
    messages = inlay.index_select(x, SENDER)
    return inlay.scatter(x, RECEIVER, messages, overwrite=False, reduce="mean", include_self=True)


def matmul(x: inlay.Tensor, y: inlay.Tensor) -> inlay.Tensor:
    return (x[:, :, None] * y[None]).sum(axis=1)


def network(embedding: inlay.Tensor, weight: inlay.Tensor) -> inlay.Tensor:
    """One score for each member: above 0 is the instructor's side."""
    hidden = aggregate(embedding)
    hidden = inlay.where(hidden > 0, hidden, 0)
    return aggregate(matmul(hidden, weight))


def train(steps: int) -> tuple[np.ndarray, list[float], list[int]]:
    """The final scores; before each step and after the last, the loss and how many are right."""
    random = np.random.default_rng(0)
    embedding = inlay.to_tensor(random.normal(0, 0.1, (MEMBERS, WIDTH)), stop_gradient=False)
    weight = inlay.to_tensor(random.normal(0, WIDTH**-0.5, (WIDTH, 1)), stop_gradient=False)
    losses, rights = [], []
    print("step   loss      right")
    for step in range(steps + 1):
        score = network(embedding, weight)
        error = inlay.index_select(score, LABELLED) - LABELS
        loss = (error * error).mean()
        losses.append(loss.item())
        rights.append(int(np.sum((score.numpy()[:, 0] > 0) == WENT_WITH_INSTRUCTOR)))
        if step == steps or step % max(1, steps // 8) == 0:
            print(f"{step:4}   {losses[-1]:.1e}   {rights[-1]} of {MEMBERS}")
        if step < steps:
            loss.backward()
            with inlay.no_grad():
                for parameter in (embedding, weight):
                    parameter[...] = parameter - RATE * parameter.grad
                    parameter.clear_grad()
    return score.numpy()[:, 0], losses, rights


def layout() -> np.ndarray:
    """A force-directed layout: pairs attract, all members repel, with shrinking steps."""
    tied = np.zeros((MEMBERS, MEMBERS))
    tied[PAIRS[:, 0], PAIRS[:, 1]] = tied[PAIRS[:, 1], PAIRS[:, 0]] = 1
    degree = tied.sum(0)
    _, waves = np.linalg.eigh(np.diag(degree) - tied)
    at = waves[:, 1:3] * np.sign(waves[PRESIDENT, 1:3])
    push = np.outer(degree + 1, degree + 1)[..., None] ** 0.7
    for most in np.linspace(0.1, 0, 1000):
        gap = at[:, None] - at[None]
        far = np.maximum(np.linalg.norm(gap, axis=-1, keepdims=True), 0.01)
        force = (gap * (0.01 * push / far**2 - tied[..., None] * far / 0.5)).sum(1)
        strength = np.linalg.norm(force, axis=1, keepdims=True)
        at = at + force / np.maximum(strength, 1e-9) * np.minimum(strength * 0.05, most)
    return at


def draw(path: Path, scores: np.ndarray, losses: list[float], rights: list[int]) -> None:
    """The graph, coloured by the network, and the training curves."""
    from _picture import COLOURS, FAINT, INK, LINE, SANS, SOFT
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style = {"font.family": SANS, "axes.edgecolor": LINE, "text.color": INK, "font.size": 8}
    ticks = {"xtick.color": FAINT, "ytick.color": FAINT, "axes.titlecolor": INK}
    with rc_context({**style, **ticks, "xtick.labelcolor": SOFT, "ytick.labelcolor": SOFT}):
        figure = Figure(figsize=(10, 5.6), facecolor="white")
        figure.text(0.03, 0.93, "Zachary's karate club", size=16, weight="bold")
        told = "Told two members' sides (ringed), the network finds"
        figure.text(0.03, 0.885, f"{told} {rights[-1]} of {MEMBERS}.", size=9.5, color=SOFT)
        graph = figure.add_axes((0.01, 0.02, 0.64, 0.84))
        graph.set_axis_off()
        at, ours = layout(), scores > 0
        for a, b in PAIRS:
            tint = COLOURS[not ours[a]] if ours[a] == ours[b] else FAINT
            graph.plot(*at[[a, b]].T, color=tint, lw=1, alpha=0.6, zorder=1)
        sizes = 150 + 22 * np.bincount(PAIRS.ravel())
        colours = [COLOURS[0] if one else COLOURS[1] for one in ours]
        graph.scatter(*at.T, sizes, colours, edgecolors="white", linewidths=1.2, zorder=2)
        for member, place in enumerate(at):
            graph.text(*place, member, size=8, ha="center", va="center_baseline", zorder=4)
        ends = [INSTRUCTOR, PRESIDENT]
        graph.scatter(*at[ends].T, sizes[ends] + 180, "none", edgecolors=INK, linewidths=1.8)
        wrong = np.flatnonzero(ours != WENT_WITH_INSTRUCTOR)
        dashes = {"edgecolors": "#d92d45", "linewidths": 1.8, "linestyles": (0, (2, 1.2))}
        graph.scatter(*at[wrong].T, sizes[wrong] + 180, "none", **dashes)
        for side, colour in zip(("instructor", "president"), COLOURS, strict=False):
            graph.scatter([], [], 100, colour, label=f"with the {side}")
        graph.scatter([], [], 80, "none", edgecolors=INK, linewidths=1.8, label="told")
        graph.scatter([], [], 80, "none", label="wrong", **dashes)
        graph.margins(0.06)
        graph.legend(loc="lower left", frameon=False, labelcolor=SOFT, labelspacing=0.7)

        top = figure.add_axes((0.72, 0.53, 0.25, 0.33), yscale="log", title="Loss on the two")
        top.plot(losses, color=INK, lw=1.5)
        low = figure.add_axes((0.72, 0.1, 0.25, 0.3), ylim=(0, MEMBERS + 2), title="Members right")
        low.plot(rights, color=INK, lw=1.5, drawstyle="steps-post")
        low.axhline(MEMBERS, color=FAINT, lw=0.8, ls=":")
        low.set_xlabel("step", color=SOFT)
        for axes in (top, low):
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="y", color=LINE, lw=0.6)
        figure.savefig(path, dpi=150)


def main() -> None:
    options = training("Finds the two sides of Zachary's karate club.", "out/karate_club.png", 60)
    scores, losses, rights = train(options.steps)
    for side, mine in ("instructor", scores > 0), ("president", scores <= 0):
        print(f"\nWith the {side}: {', '.join(map(str, np.flatnonzero(mine)))}")
    wrong = np.flatnonzero((scores > 0) != WENT_WITH_INSTRUCTOR)
    names = f"; wrong: {', '.join(map(str, wrong))}" if wrong.size else ""
    print(f"\n{rights[-1]} of {MEMBERS} right{names}")
    save(options.picture, lambda path: draw(path, scores, losses, rights))


if __name__ == "__main__":
    main()
