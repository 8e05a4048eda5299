"""Tensors on the GPU: devices, calls with CPU tensors, errors, threads and processes.

The tests fail if there is no GPU. The Debian packages libvulkan1 and mesa-vulkan-drivers provide a
software device.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import inlay
from inlay import static


@pytest.fixture
def gpu() -> Iterator[None]:
    inlay.set_device("gpu")
    yield
    inlay.set_device("cpu")


def gpu_tensor(data: object, **options: object) -> inlay.Tensor:
    return inlay.to_tensor(data, device="gpu", **options)  # type: ignore[arg-type]


# Devices.


def test_devices_tell_names_and_limits() -> None:
    cpu, *gpus = inlay.devices()
    assert cpu["device"] == "cpu"
    assert gpus
    for found in gpus:
        assert found["device"] == "gpu"
        assert found["name"]
        assert found["backend"] in ("vulkan", "metal", "dx12")
        assert found["max_buffer"] >= found["max_binding"] >= 1 << 20


def test_the_chosen_device_is_where_tensors_are_made(gpu: None) -> None:
    assert inlay.get_device() == "gpu"
    made = [
        inlay.zeros([2]),
        inlay.ones([2], dtype="int8"),
        inlay.full([2, 2], 3),
        inlay.arange(5),
        inlay.tril_indices(3),
        inlay.to_tensor([1, 2]),
        inlay.to_tensor(np.zeros(2)),
    ]
    assert {tensor.device for tensor in made} == {"gpu"}
    assert inlay.zeros([2], device="cpu").device == "cpu"
    # A call with arrays returns an array, which is on the CPU.
    assert isinstance(inlay.scatter(np.zeros(3), [1], np.ones(1)), np.ndarray)


def test_tensors_move() -> None:
    x = inlay.to_tensor([[1.0, 2.0]])
    y = x.to("gpu")
    assert (x.device, y.device, y.cpu().device) == ("cpu", "gpu", "cpu")
    assert y.cpu().tolist() == y.tolist() == [[1.0, 2.0]]
    assert x.to("cpu") is x
    assert y.to("gpu") is y
    assert "device=gpu" in repr(y)


@pytest.mark.parametrize("device", ["cuda", "gpu:7", "", 0])
def test_other_devices_are_refused(device: object) -> None:
    with pytest.raises((ValueError, TypeError), match="expected 'cpu' or 'gpu'"):
        inlay.zeros([1], device=device)  # type: ignore[arg-type]


def test_devices_in_one_call_are_one() -> None:
    x, index = gpu_tensor([0.0, 0.0]), inlay.to_tensor([1])
    with pytest.raises(ValueError, match=r"scatter: index is on cpu, x is on gpu; .*\.to\(\)"):
        x.scatter(index, gpu_tensor([5.0]))
    with pytest.raises(ValueError, match="on cpu"):
        inlay.to_tensor([0.0]).scatter_(gpu_tensor([0]), gpu_tensor([1.0]))
    # Arrays, lists and single numbers are moved to the device of the tensors.
    assert x.scatter([1], np.array([5.0], "f4")).tolist() == [0.0, 5.0]
    assert inlay.scatter(np.zeros(2, "f4"), [1], gpu_tensor([5.0])).tolist() == [0.0, 5.0]
    assert (np.ones(2, "f4") + x).device == "gpu"
    assert inlay.where([True, False], x + 1, inlay.to_tensor(3.0)).tolist() == [1.0, 3.0]
    assert inlay.concat([np.ones(1, "f4"), x]).tolist() == [1.0, 0.0, 0.0]
    assert x[np.array([1, 0, 1])].tolist() == [0.0] * 3
    assert (x + 1).tolist() == [1.0, 1.0]
    assert (x + inlay.to_tensor(2.0)).tolist() == [2.0, 2.0]
    x[np.array([True, False])] = 4
    assert x.tolist() == [4.0, 0.0]
    assert inlay.index_put(x, (inlay.to_tensor(1),), 1.0).tolist() == [4.0, 1.0]
    assert inlay.scatter_nd(np.array([[1]]), gpu_tensor([2.0]), [2]).tolist() == [0.0, 2.0]
    assert inlay.jit(lambda a, b: a + b)(x, np.ones(2, "f4")).tolist() == [5.0, 1.0]
    x.stop_gradient = False
    (x * 2).backward(np.array([1.0, 3.0], "f4"))
    assert x.grad is not None
    assert (x.grad.device, x.grad.tolist()) == ("gpu", [2.0, 6.0])


def test_tensors_in_a_list_are_stacked_on_their_device() -> None:
    a, row = gpu_tensor(5.0, stop_gradient=False), gpu_tensor([1.0, 2.0])
    x = gpu_tensor([0.0, 0.0, 0.0]).scatter([0, 2], [a, 7])
    assert (x.device, x.tolist()) == ("gpu", [5.0, 0.0, 7.0])
    (x * [a, a, 2]).sum().backward()
    assert a.grad is not None
    assert a.grad.item() == 10
    assert inlay.to_tensor([row, np.ones(2, "f4"), [3, 4]], device="gpu").tolist() == [
        [1.0, 2.0],
        [1.0, 1.0],
        [3.0, 4.0],
    ]
    rows = [memoryview(np.ones(2, "f4")), memoryview(np.zeros(2, "f4"))]
    assert (row * rows).tolist() == [[1.0, 2.0], [0.0, 0.0]]
    with pytest.raises(ValueError, match=r"on cpu.*on gpu|on gpu.*on cpu"):
        inlay.sum([row, inlay.to_tensor([1.0, 2.0])])


def test_memory_of_the_gpu_is_not_shared() -> None:
    x = gpu_tensor([1.0])
    for share in (x.numpy, x.__array__, x.__dlpack__, x.__dlpack_device__):
        with pytest.raises((TypeError, BufferError), match=r"\.cpu\(\)"):
            share()
    assert x.data_ptr() == 0


def test_pickles_come_back_on_the_cpu() -> None:
    back = pickle.loads(pickle.dumps(gpu_tensor([[1, 2], [3, 4]])))
    assert (back.device, back.tolist()) == ("cpu", [[1, 2], [3, 4]])


@pytest.mark.parametrize("offset", [3_999_999_998, -5, 4_000_000_001])
def test_triangles_of_wide_matrices(offset: int) -> None:
    if offset < 0:
        made = [inlay.tril_indices(10, 4_000_000_000, offset, device=d) for d in ("cpu", "gpu")]
    else:
        made = [inlay.triu_indices(1, 4_000_000_000, offset, device=d) for d in ("cpu", "gpu")]
    assert made[0].tolist() == made[1].tolist()


def test_buffers_are_used_again() -> None:
    x = inlay.zeros([1000], device="gpu")
    for _ in range(3):
        x = x + 1
    before = inlay.gpu_memory_stats()
    assert before is not None
    for _ in range(10):
        x = x + 1
    after = inlay.gpu_memory_stats()
    assert after is not None
    assert after["fresh"] == before["fresh"]
    assert after["reused"] > before["reused"]
    inlay.empty_cache()
    assert inlay.gpu_memory_stats()["cached"] == 0  # type: ignore[index]


def submissions() -> int:
    stats = inlay.gpu_memory_stats()
    assert stats is not None
    return stats["submissions"]


def test_a_call_and_a_program_are_one_submission() -> None:
    x, index = gpu_tensor(np.zeros((9, 2), "f4")), gpu_tensor([0, 3])
    updates, mask = gpu_tensor([[1.0, 2.0], [3.0, 4.0]]), gpu_tensor(np.ones((9, 2), bool))
    for call in (
        lambda: x.scatter_(index, updates),
        lambda: x.scatter_(index, updates, overwrite=False, reduce="mean"),
        lambda: x.slice_scatter(updates, [0], [1], [3], [1]),
        lambda: x.masked_scatter(mask, x),
    ):
        before = submissions()
        call()
        assert submissions() - before == 1
    program = static.Program()
    with static.program_guard(program):
        y = static.data("x", [None, 2], "float32")
        for _ in range(50):
            y = y.scatter(index.cpu(), updates.cpu()).index_fill(index.cpu(), 0, 3.0) + 1
    executor = static.Executor()
    executor.run(program, {"x": x}, [y], return_numpy=False)
    before = submissions()
    executor.run(program, {"x": x}, [y], return_numpy=False)
    assert submissions() - before == 1


# Errors.


def test_a_device_without_64_bit_floats_says_so() -> None:
    ran = in_a_process(
        """
        import numpy as np, inlay
        assert not inlay.devices()[1]["float64"]
        x = inlay.to_tensor(np.arange(6.0).reshape(2, 3), device="gpu")
        assert x.slice_scatter(x[:1], [0], [1], [2], [1]).tolist() == [[0, 1, 2], [0, 1, 2]]
        assert x.cast("float32").tolist() == x.tolist()
        assert (x.cast("float32") + 1).tolist() == [[1, 2, 3], [4, 5, 6]]
        try:
            x + x
        except TypeError as error:
            print(error)
        """,
        INLAY_GPU_PLAIN="1",
    )
    assert ran.returncode == 0, ran.stderr
    assert "add: " in ran.stdout
    assert "can't compute with float64: it lacks shader-f64" in ran.stdout


def test_a_failed_call_in_place_writes_nothing() -> None:
    x = gpu_tensor(np.zeros((4, 3), "f4"))
    with pytest.raises(
        IndexError, match=r"scatter: index\[2\] is 9, out of range for axis 0 of size 4"
    ):
        x.scatter_([0, 1, 9, -8], np.ones((4, 3), "f4"))
    with pytest.raises(ValueError, match="masked_scatter: source has 5 elements, mask selects 12"):
        x.masked_scatter_(np.ones((4, 3), bool), np.ones(5, "f4"))
    assert not np.any(x.cpu().numpy())


def test_the_first_error_of_a_program_is_told() -> None:
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [None], "float32")
        mask = static.data("mask", [None], "bool")
        index = static.data("index", [None], "int64")
        selected = inlay.masked_select(x, mask)
        early = x.scatter(index, x, name="early")
        late = inlay.masked_select(early, mask) + inlay.concat([selected, selected])
    feed = {"x": np.zeros(3, "f4"), "mask": [True, True, False], "index": [0, 1, 9]}
    texts = []
    for place in ("cpu", "gpu"):
        with pytest.raises(IndexError, match="early") as raised:
            static.Executor(place).run(program, feed, [late])
        texts.append(str(raised.value))
    assert texts[0] == texts[1]


def test_a_program_of_many_checks_runs_in_parts() -> None:
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [None], "int64")
        y = x
        for _ in range(2500):
            y = y.index_select(x)
    wanted = static.Executor().run(program, {"x": np.array([1, 2, 0])}, [y])
    got = static.Executor("gpu").run(program, {"x": np.array([1, 2, 0])}, [y])
    assert np.array_equal(got[0], wanted[0])


def test_a_program_tells_the_node_that_failed() -> None:
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [None], "float32")
        index = static.data("index", [None], "int64")
        y = (x + 1).scatter(index, x, name="the_scatter")
    feed = {"x": np.zeros(2, "f4"), "index": np.array([0, 5])}
    with pytest.raises(IndexError, match=r"scatter: index\[1\] is 5.*the_scatter") as on_gpu:
        static.Executor("gpu").run(program, feed, [y])
    with pytest.raises(IndexError) as on_cpu:
        static.Executor().run(program, feed, [y])
    assert str(on_gpu.value) == str(on_cpu.value)


def in_a_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    found = {**os.environ, **environment}
    return subprocess.run(command, env=found, capture_output=True, text=True, timeout=300)


def test_without_a_driver_the_error_says_what_to_install() -> None:
    ran = in_a_process(
        """
        import inlay
        assert [device["device"] for device in inlay.devices()] == ["cpu"]
        for ask in (lambda: inlay.set_device("gpu"), lambda: inlay.zeros([2], device="gpu"),
                    lambda: inlay.zeros([2]).to("gpu")):
            try:
                ask()
            except RuntimeError as error:
                print(error)
        assert inlay.get_device() == "cpu"
        assert inlay.ones([2]).tolist() == [1.0, 1.0]
        """,
        VK_ICD_FILENAMES="nothing",
        VK_DRIVER_FILES="nothing",
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("no GPU: ") and "mesa-vulkan-drivers" in line for line in lines)


def test_a_name_that_no_device_has_is_named_with_the_devices() -> None:
    name = inlay.devices()[1]["name"]
    ran = in_a_process(
        """
        import inlay
        assert len(inlay.devices()) == 1
        try:
            inlay.set_device("gpu")
        except RuntimeError as error:
            print(error)
        """,
        INLAY_GPU_NAME="no such card",
    )
    assert ran.returncode == 0, ran.stderr
    assert "INLAY_GPU_NAME" in ran.stdout
    assert "no such card" in ran.stdout
    assert name in ran.stdout


def test_a_tensor_past_the_limit_of_the_device_names_the_limit() -> None:
    limit = inlay.devices()[1]["max_buffer"]
    size = limit // 4 + 1
    with pytest.raises(MemoryError, match=rf"{4 * size} bytes.* limit is {limit} bytes"):
        inlay.zeros([size], device="gpu")


@pytest.mark.skipif(sys.platform != "linux", reason="Mesa's layer is on Linux only")
def test_looking_for_devices_writes_nothing_to_stderr() -> None:
    code = """
        import os, inlay
        before = dict(os.environ)
        assert len(inlay.devices()) > 1
        inlay.zeros([2], device="gpu")
        assert dict(os.environ) == before
        """
    hidden = ("XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY")
    found = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    ran = subprocess.run(command, env=found, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_fork_has_no_gpu_and_says_so() -> None:
    ran = in_a_process(
        """
        import os, inlay
        x = inlay.zeros([2], device="gpu")
        child = os.fork()
        if child == 0:
            try:
                x + 1
            except RuntimeError as error:
                os._exit(0 if "fork" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (x + 1).tolist() == [1.0, 1.0]
        """
    )
    assert ran.returncode == 0, ran.stderr


# Threads and processes.

SHARED = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import inlay

def work(seed):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        x, index = rng.normal(size=(50, 8)).astype("f4"), rng.integers(-50, 50, 300)
        updates, mask = rng.normal(size=(300, 8)).astype("f4"), rng.random((50, 8)) < 0.5
        wanted = inlay.scatter(x, index, updates, overwrite=False)
        wanted = inlay.masked_fill(wanted, mask, 7.0)
        y = inlay.to_tensor(x, device="gpu")
        y.scatter_(index, updates, overwrite=False)
        y.masked_fill_(mask, 7.0)
        assert np.array_equal(y.cpu().numpy(), wanted)
        try:
            y.scatter_([50], updates[:1])
        except IndexError:
            pass
        else:
            raise AssertionError
        assert np.array_equal(y.cpu().numpy(), wanted)
    return True

with ThreadPoolExecutor(8) as pool:
    assert all(pool.map(work, range(int(sys.argv[1]), int(sys.argv[1]) + 8)))
print("done")
"""


def test_two_processes_of_eight_threads_share_the_device() -> None:
    command = [sys.executable, "-c", SHARED]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen([*command, seed], **options) for seed in ("0", "100")]  # type: ignore[call-overload]
    for one in running:
        out, err = one.communicate(timeout=300)
        assert (one.returncode, out) == (0, "done\n"), err


def test_threads_write_one_tensor() -> None:
    x = inlay.zeros([8, 100], device="gpu")

    def write(row: int) -> None:
        for _ in range(10):
            x.index_add_([row], 0, np.ones((1, 100), "f4"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert np.all(x.cpu().numpy() == 10)


# Large.

LARGE = 100 << 20  # elements: 400 MiB of float32, which need several bindings


def test_400_mib() -> None:
    rows = LARGE // 1024
    x = np.zeros((rows, 1024), "f4")
    x[:, ::7] = 3
    y = gpu_tensor(x)
    index = np.array([5, rows - 1, 0, rows // 2, -2])
    updates = np.arange(5 * 1024, dtype="f4").reshape(5, 1024)
    y.scatter_(index, updates)
    x[index] = updates
    y.slice_scatter_(gpu_tensor(np.full((rows, 2), -1, "f4")), [1], [1022], [1024], [1])
    x[:, 1022:] = -1
    z = y + 1  # out of place: 800 MiB in one kernel
    del y
    back = z.cpu().numpy()
    del z
    x += 1
    assert np.array_equal(back, x)


@pytest.mark.parametrize("window", [8192, 65536])
def test_small_windows_give_the_same(window: int) -> None:
    """With small windows, small tensors need several bindings."""
    ran = in_a_process(
        """
        import numpy as np, inlay
        rng = np.random.default_rng(1)
        for dtype in ("uint8", "float16", "float32", "int64", "complex128"):
            x = (rng.random((60, 40)) * 100).astype(dtype)
            index, updates = rng.integers(-60, 60, 70), (rng.random((70, 40)) * 100).astype(dtype)
            mask = rng.random((60, 40)) < 0.5
            places = rng.integers(0, 60, (30, 40))
            def results(move):
                a, i, u, m, p = map(move, (x, index, updates, mask, places))
                yield a.scatter(i, u)
                yield a.scatter(i, u, overwrite=False)
                yield a.masked_scatter(m, u)
                yield a.masked_select(m)
                yield a.put_along_axis(p, u[:30], 0, "mul")
                yield a.take_along_axis(p, 0)
                yield a.diagonal_scatter(u[0, :39], 1)
                yield a.T + a.T
                yield a.sum(1)
            ours = results(lambda array: inlay.to_tensor(array, device="gpu"))
            for got, wanted in zip(ours, results(inlay.to_tensor), strict=True):
                assert np.array_equal(got.cpu().numpy(), wanted.numpy(), equal_nan=True), dtype
        print("done")
        """,
        INLAY_GPU_WINDOW=str(window),
    )
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr


@pytest.mark.parametrize("reduce", ["sum", "mul", "mean", "amax"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_million_entries_of_one_place(reduce: str, dtype: str) -> None:
    """Software devices end long loops early, so many entries are processed in parts."""
    rng = np.random.default_rng(5)
    updates = (rng.random(1_200_000) + 0.5).astype(dtype)
    index = np.where(rng.random(updates.size) < 0.99, 1, rng.integers(0, 5, updates.size))
    x = np.ones(5, dtype)
    wanted = inlay.scatter(x, index, updates, False, 0, reduce, include_self=True)
    got = gpu_tensor(x).scatter(index, updates, False, 0, reduce, include_self=True)
    assert np.array_equal(got.cpu().numpy(), wanted)
    many = np.ones(updates.size * 2, dtype)  # more places than entries: another algorithm
    y = gpu_tensor(many)
    y.scatter_(index, updates, False, 0, reduce)
    inlay.scatter_(many, index, updates, False, 0, reduce)
    assert np.array_equal(y.cpu().numpy(), many)


def test_gradients_of_long_products() -> None:
    rng = np.random.default_rng(6)
    updates = rng.choice([-1.0, 1.0, 0.5, 2.0], 150_000).astype("f4")
    index = np.where(rng.random(updates.size) < 0.9, 0, 1)
    found = []
    for device in ("cpu", "gpu"):
        x = inlay.to_tensor(np.array([2.0, 3.0], "f4"), stop_gradient=False, device=device)
        u = inlay.to_tensor(updates, stop_gradient=False, device=device)
        y = x.scatter(index, u, False, 0, "mul", include_self=True).sum()
        # The second algorithm consists of recurrences, which can be differentiated again.
        recorded = inlay.grad(y, [x, u], retain_graph=True, create_graph=True)
        found.append([*recorded, *inlay.grad(y, [x, u])])
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one.cpu().numpy(), other.cpu().numpy(), equal_nan=True)
