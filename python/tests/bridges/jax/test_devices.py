"""Two devices, sharded arrays, and a fresh process that reads a compiled program."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def run(script: str, **environment: str) -> str:
    """Runs a script in a process of its own, with two devices."""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        env={**os.environ, **flags, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_two_devices() -> None:
    out = run(
        """
        import jax, jax.numpy as jnp, numpy as np, inlay
        from jax.sharding import NamedSharding, PartitionSpec as P
        first, second = jax.devices()
        x = jax.device_put(np.arange(8.0, dtype=np.float32).reshape(4, 2), second)
        index = jax.device_put(np.array([1, 3]), second)
        y = inlay.index_select(x, index)
        assert y.devices() == {second}, y.devices()

        # Arrays on two devices are JAX's own error.
        try:
            inlay.index_select(x, jax.device_put(index, first))
        except ValueError as error:
            print("two devices:", "incompatible devices" in str(error))

        # A sharded array: the call is replicated.
        mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        sharded = jax.device_put(np.asarray(x), NamedSharding(mesh, P("i")))
        z = inlay.index_select(sharded, np.array([1, 3]))
        print("sharded:", np.array_equal(z, y))
        u = jax.jit(lambda x: inlay.scatter(x, np.array([0]), x[1:2]) * 2)(sharded)
        print("jit, sharded:", np.array_equal(u[0], u[1]))

        # One call on each device.
        def local(x):
            return inlay.index_select(x, jnp.array([1, 0]))

        for check in (True, False):
            f = jax.shard_map(local, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=check)
            try:
                w = jax.jit(f)(sharded)
                print("shard_map", check, np.array_equal(w, np.asarray(x)[[1, 0, 3, 2]]))
                g = jax.jit(jax.grad(lambda x: (f(x) ** 2).sum()))(sharded)
                print("its gradient", check, np.array_equal(g, 2 * np.asarray(x)))
            except Exception as error:
                print("shard_map", check, type(error).__name__, error)

        # The gradient of an array that all devices share is summed over them.
        def shared(x, u):
            return jax.lax.psum((inlay.index_add(x, jnp.array([1]), 0, u) ** 2).sum(), "i")

        def loss(x, u):
            specs = (P("i"), P())
            return jax.shard_map(shared, mesh=mesh, in_specs=specs, out_specs=P())(x, u)

        u = jnp.ones((1, 2), np.float32)
        g = jax.jit(jax.grad(loss, 1))(sharded, u)
        print("shared:", np.array_equal(g, 2 * (np.asarray(x)[[1]] + np.asarray(x)[[3]] + 2)))
        p = jax.pmap(local)(np.asarray(x).reshape(2, 2, 2))
        print("pmap:", np.array_equal(p[1], np.asarray(x)[[3, 2]]))
        """
    )
    assert out.splitlines() == [
        "two devices: True",
        "sharded: True",
        "jit, sharded: True",
        "shard_map True True",
        "its gradient True True",
        "shard_map False True",
        "its gradient False True",
        "shared: True",
        "pmap: True",
    ]


def test_import_inlay_does_not_import_jax() -> None:
    assert run("import sys, inlay; print('jax' in sys.modules)") == "False\n"


def test_the_cache_on_disk_serves_another_process(tmp_path) -> None:
    script = """
        import jax, jax.numpy as jnp, inlay, inlay.jax
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
        f = jax.jit(lambda x: inlay.tril(x, -1) + inlay.index_select(x, jnp.array([1, 0])))
        print(f(jnp.ones((2, 2))).sum())
        """
    environment = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    assert run(script, **environment) == run(script, **environment) == "5.0\n"
    assert list(tmp_path.iterdir())
