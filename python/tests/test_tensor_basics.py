"""The `Tensor` class: its attributes, numbers, copies and pickles; threads and forks."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from cases import assert_same
from naive import DTYPES

import inlay


def odd_layouts(dtype: np.dtype) -> list[np.ndarray]:
    base = (np.arange(24) % 2).astype(dtype).reshape(2, 3, 4)
    record = np.zeros(5, dtype=[("tag", "u1"), ("value", dtype)])
    record["value"] = base.reshape(-1)[:5]
    return [base, base.T, base[::-1, :, ::-3], base[:, :0], base[0, 0, 0:1].reshape(()),
            np.broadcast_to(base[0, 0], (3, 4)), record["value"]]  # fmt: skip


def test_attributes() -> None:
    tensor = inlay.to_tensor([[1, 2, 3], [4, 5, 6]], dtype="int16")
    assert tensor.shape == [2, 3]
    assert tensor.ndim == 2
    assert tensor.size == 6
    assert tensor.dtype is inlay.int16
    assert tensor.strides == (6, 2)
    assert tensor.itemsize == 2
    assert tensor.nbytes == 12
    assert len(tensor) == 2
    assert tensor.writable
    assert tensor.is_contiguous()
    assert tensor.T.shape == [3, 2]
    assert not tensor.T.is_contiguous()
    assert tensor.T.data_ptr() == tensor.data_ptr()
    assert tensor.T.tolist() == [[1, 4], [2, 5], [3, 6]]
    with pytest.raises(AttributeError):
        tensor.shape = [3, 2]
    for arguments in ((), ([1.0],), (np.zeros(2), "float32")):
        with pytest.raises(inlay.InlayTypeError, match=r"call inlay\.to_tensor\(data\)"):
            inlay.Tensor(*arguments)
    with pytest.raises(inlay.InlayTypeError, match="0-D"):
        len(inlay.to_tensor(1))


def test_a_tensor_is_found_by_identity() -> None:
    a, b = inlay.to_tensor([1]), inlay.to_tensor([1])
    assert hash(a) == hash(a)
    assert {a: "a", b: "b"}[b] == "b"
    assert weakref.ref(a)() is a


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_element_is_a_number(dtype) -> None:
    for shape in ((), (1,), (1, 1)):
        tensor = inlay.to_tensor(np.ones(shape, dtype=DTYPES[dtype]))
        item = tensor.item()
        assert item == 1
        kind = {"b": bool, "i": int, "u": int, "c": complex}.get(DTYPES[dtype].kind, float)
        assert type(item) is kind
        assert bool(tensor) is True
        assert complex(tensor) == 1
        if kind is complex:
            for number in (int, float):
                with pytest.raises(inlay.InlayTypeError, match="expected a real one"):
                    number(tensor)
        else:
            assert int(tensor) == 1
            assert float(tensor) == 1.0
        if kind is int:
            assert [0, 7][tensor] == 7
        else:
            with pytest.raises(inlay.InlayTypeError, match="expected an integer"):
                tensor.__index__()


def test_several_elements_are_no_number() -> None:
    for tensor in (inlay.to_tensor([1, 2]), inlay.to_tensor([], dtype="int32")):
        for convert in (bool, int, float, complex, inlay.Tensor.item, inlay.Tensor.__index__):
            with pytest.raises(inlay.InlayValueError, match="expected 1"):
                convert(tensor)


def test_numbers_keep_their_extremes() -> None:
    assert inlay.to_tensor(np.uint64(2**64 - 1)).item() == 2**64 - 1
    assert int(inlay.to_tensor(np.int64(-(2**63)))) == -(2**63)
    assert np.isnan(float(inlay.to_tensor(float("nan"), dtype="bfloat16")))
    for value in (float("nan"), float("inf")):
        with pytest.raises(inlay.InlayError):
            int(inlay.to_tensor(value))


def test_lists_are_nested_as_the_shape_says() -> None:
    assert inlay.to_tensor(3).tolist() == 3
    assert inlay.to_tensor(np.zeros((2, 0))).tolist() == [[], []]
    assert inlay.to_tensor([[True], [False]]).tolist() == [[True], [False]]
    assert inlay.to_tensor([1.5, 2], dtype="bfloat16").tolist() == [1.5, 2.0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_are_equal_contiguous_and_apart(dtype) -> None:
    ways = {
        "copy": lambda t: t.copy(),
        "clone": lambda t: t.clone(),
        "copy.copy": copy.copy,
        "deepcopy": copy.deepcopy,
        **{
            f"pickle {protocol}": lambda t, p=protocol: pickle.loads(pickle.dumps(t, p))
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
        },
    }
    for array in odd_layouts(DTYPES[dtype]):
        tensor = inlay.from_numpy(array)
        for name, way in ways.items():
            fresh = way(tensor)
            assert_same(fresh.numpy(), np.ascontiguousarray(array).reshape(array.shape))
            assert fresh.is_contiguous(), name
            assert fresh.writable, name
            assert not np.shares_memory(fresh.numpy(), array), name
    assert pickle.loads(pickle.dumps(getattr(inlay, dtype))) is getattr(inlay, dtype)
    assert copy.deepcopy(getattr(inlay, dtype)) is getattr(inlay, dtype)


def test_damaged_pickles_are_refused() -> None:
    rebuild, (data, dtype, shape) = inlay.to_tensor([1, 2]).__reduce__()
    assert rebuild(data, dtype, shape).tolist() == [1, 2]
    for bad in (
        (data[:-1], dtype, shape),
        (data, "int32", shape),
        (data, "int99", shape),
        (data, dtype, (3,)),
        (data, dtype, (2**62, 2**62)),
        (b"", dtype, (2**63, 2**63, 2)),
    ):
        with pytest.raises(inlay.InlayValueError, match="pickle"):
            rebuild(*bad)
    assert rebuild(b"", "int64", (0, 2**40)).shape == [0, 2**40]


def test_thread_and_cache_settings() -> None:
    before = inlay.get_num_threads()
    try:
        for n in (1, 3, np.int8(2)):
            inlay.set_num_threads(n)
            assert inlay.get_num_threads() == n
        for bad in (0, -1, 10**6, 2**70):
            with pytest.raises(inlay.InlayValueError, match="set_num_threads: n is"):
                inlay.set_num_threads(bad)
        for bad in ("2", 1.5, None):
            with pytest.raises(inlay.InlayTypeError, match="expected an integer"):
                inlay.set_num_threads(bad)
    finally:
        inlay.set_num_threads(before)

    limit = inlay.memory_stats()["limit"]
    try:
        tensor = inlay.to_tensor(np.zeros(1 << 20))
        stats = inlay.memory_stats()
        assert stats["in_use"] >= tensor.nbytes
        assert stats["peak"] >= stats["in_use"]
        del tensor
        assert inlay.memory_stats()["cached"] >= 1 << 23
        inlay.empty_cache()
        assert inlay.memory_stats()["cached"] == 0
        inlay.set_cache_limit(0)
        inlay.to_tensor(np.zeros(1 << 20))
        assert inlay.memory_stats()["cached"] == 0
        with pytest.raises(inlay.InlayValueError, match="at least 0"):
            inlay.set_cache_limit(-1)
    finally:
        inlay.set_cache_limit(limit)


def test_the_version_is_the_package_s() -> None:
    from importlib.metadata import version

    assert inlay.__version__ == version("inlay")


def busy_copies(tensor: inlay.Tensor, rounds: int) -> None:
    for _ in range(rounds):
        assert int(tensor.T.copy().numpy()[1, 0]) == 1


def test_tensors_are_used_by_many_threads_at_once() -> None:
    tensor = inlay.to_tensor(np.arange(1 << 18).reshape(512, 512))
    failures: list[BaseException] = []

    def work() -> None:
        try:
            busy_copies(tensor, 20)
            assert pickle.loads(pickle.dumps(tensor)).size == tensor.size
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


def finishes(child: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_work_on() -> None:
    before = inlay.get_num_threads()
    inlay.set_num_threads(4)
    try:
        tensor = inlay.to_tensor(np.arange(1 << 20).reshape(1024, 1024))
        busy_copies(tensor, 3)  # the parent has threads now, the child will not
        for _ in range(3):
            child = os.fork()
            if child == 0:
                try:
                    busy_copies(tensor, 3)
                    inlay.to_tensor(np.zeros((1024, 1024)).T)
                    inlay.empty_cache()
                    os._exit(0)
                finally:
                    os._exit(1)
            assert finishes(child, 60)
            busy_copies(tensor, 1)
    finally:
        inlay.set_num_threads(before)


def test_the_environment_sets_threads_and_cache() -> None:
    program = "import inlay; print(inlay.get_num_threads(), inlay.memory_stats()['limit'])"
    settings = {**os.environ, "INLAY_NUM_THREADS": "3", "INLAY_CACHE_LIMIT": "4096"}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["3", "4096"]


@pytest.mark.parametrize(
    ("variables", "threads"),
    [
        ({"OMP_NUM_THREADS": "1"}, 1),
        ({"OMP_NUM_THREADS": "1,4"}, 1),
        ({"OMP_NUM_THREADS": "4096"}, None),
        ({"OMP_NUM_THREADS": "all"}, None),
        ({"OMP_NUM_THREADS": "1", "INLAY_NUM_THREADS": "3"}, 3),
    ],
)
def test_the_number_of_openmp_limits_the_threads(
    variables: dict[str, str], threads: int | None
) -> None:
    command = [sys.executable, "-c", "import inlay; print(inlay.get_num_threads())"]
    result = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert int(result.stdout) == (threads or cores)
    assert result.stderr == ""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no such masks")
def test_an_affinity_mask_limits_the_threads() -> None:
    program = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import inlay
print(inlay.get_num_threads())
"""
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "1"


@pytest.mark.parametrize("threads", ["abc", "0", "-2", "1.5", "4096"])
def test_a_bad_environment_variable_is_a_warning_on_import(threads: str) -> None:
    program = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import inlay
for warning in caught:
    print(warning.category.__name__, warning.message)
print(inlay.get_num_threads() >= 1, inlay.memory_stats()["limit"])
"""
    settings = {**os.environ, "INLAY_NUM_THREADS": threads, "INLAY_CACHE_LIMIT": "1 GiB"}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    first, second, values = result.stdout.splitlines()
    expected = f'RuntimeWarning INLAY_NUM_THREADS is "{threads}", expected 1 to 1024 threads'
    assert first.startswith(expected)
    default = 512 << 20
    expected = 'RuntimeWarning INLAY_CACHE_LIMIT is "1 GiB", expected at least 0 bytes; using '
    assert second == f"{expected}{default}"
    assert values == f"True {default}"
    assert result.stderr == ""


def test_a_lack_of_memory_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match=f"could not allocate {4 << 45} bytes") as raised:
        inlay.zeros([1 << 45])
    assert isinstance(raised.value, inlay.InlayMemoryError)
