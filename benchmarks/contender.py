"""The parent's side of the processes of the libraries."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from benchmarks.rows import Row

ROOT = Path(__file__).parents[1]
STARTING, PREPARING, TIMING = 120.0, 300.0, 120.0  # seconds to wait for an answer


class GoneError(Exception):
    """The process crashed, or did not answer in time."""


class Process:
    """A process with one or more libraries, which is suspended except while it has work."""

    def __init__(
        self, libraries: Sequence[str], python: str, environment: Mapping[str, str], log: IO[str]
    ) -> None:
        self.command = [python, "-m", "benchmarks.worker", *libraries]
        self.environment = dict(environment)
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.buffer = b""
        self.starts = 0
        self.hello = self.start()

    def start(self) -> dict[str, Any]:
        self.buffer = b""
        self.starts += 1
        self.process = subprocess.Popen(
            self.command,
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )
        hello = self.listen(STARTING)
        self.halt()
        return hello

    def halt(self) -> None:
        """Suspend the process: its spin-waiting threads would slow down the next process."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGSTOP)

    def listen(self, patience: float) -> dict[str, Any]:
        """Read the next message of the process."""
        assert self.process is not None
        assert self.process.stdout is not None
        deadline = time.monotonic() + patience
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.process.kill()
                    self.process.wait()
                    raise GoneError("timed out")
                chunk = os.read(self.process.stdout.fileno(), 1 << 16)
                if not chunk:
                    code = self.process.wait()
                    raise GoneError(
                        f"crashed ({signal.Signals(-code).name})" if code < 0 else "died"
                    )
                self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def ask(self, message: dict[str, Any]) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise GoneError("crashed") from None

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            with contextlib.suppress(BrokenPipeError):
                self.process.communicate()


class Contender:
    """One library on the workloads, in a process that it may share with others."""

    def __init__(self, name: str, library: str, process: Process, host: str = "") -> None:
        self.name = name
        self.library = library
        self.process = process
        self.host = host
        self.hello = process.hello[library]
        self.start = 0  # the start of the process in which the workload was prepared
        self.forget()

    def forget(self) -> None:
        self.prepared: dict[str, Any] = {}
        self.samples: list[float] = []
        self.spent = 0.0

    def ask(self, message: dict[str, Any]) -> None:
        self.process.ask({**message, "library": self.library})

    def prepare(self, row: Row, folder: Path) -> None:
        """Let the library choose its fastest variant. A variant that crashes is excluded."""
        self.forget()
        crashed: dict[str, dict[str, str]] = {}
        trying = "start"
        while len(crashed) < 4:
            try:
                message = {"do": "prepare", "row": row.plain(), "folder": str(folder)}
                self.ask({**message, "without": list(crashed)})
                answer: dict[str, Any] = {"trying": ""}
                while "trying" in answer:
                    trying = answer["trying"] or trying
                    answer = self.process.listen(PREPARING)
                self.process.halt()
                self.start = self.process.starts
                self.prepared = {**answer, "tried": {**answer["tried"], **crashed}}
                return
            except GoneError as gone:
                crashed[trying] = {"error": str(gone)}
                self.process.start()
        self.prepared = {"variant": None, "tried": crashed}

    @property
    def ready(self) -> bool:
        """Whether it can be timed: it has a variant, and its process is still the same."""
        return self.prepared.get("variant") is not None and self.start == self.process.starts

    def time(self, pieces: int = 1) -> None:
        """Take one sample: the time of a call in the fastest piece of a timing."""
        began = time.monotonic()
        try:
            self.ask({"do": "time", "pieces": pieces})
            answer = self.process.listen(TIMING)
        except GoneError as gone:
            self.prepared["tried"][self.prepared["variant"]] = {"error": str(gone)}
            self.prepared["variant"] = None
            self.samples = []
            self.process.start()
            return
        self.process.halt()
        self.samples.append(answer["seconds"])
        self.spent += time.monotonic() - began

    def release(self) -> None:
        try:
            self.ask({"do": "release"})
            self.process.listen(TIMING)
        except GoneError:
            self.process.start()
        self.process.halt()
