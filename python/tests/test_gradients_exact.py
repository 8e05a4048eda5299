"""Gradients against values that are derived by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gradcheck import REDUCES, Function, grad_list, hessian, leaf

import inlay

SHORT_FLOATS = [np.float16, ml_dtypes.bfloat16]


def scattered(u: Any, reduce: str, x: Any = None) -> Any:
    """Reduces all of u into one place, together with x if it is given."""
    base = np.full(1, 7, u.numpy().dtype) if x is None else x
    index = np.zeros(u.size, int)
    options = {"overwrite": False, "reduce": reduce, "include_self": x is not None}
    return inlay.scatter(base, index, u, **options).sum()


def put(u: Any, reduce: str, x: Any = None) -> Any:
    base = np.full(1, 7, u.numpy().dtype) if x is None else x
    index = np.zeros(u.size, int)
    return inlay.put_along_axis(base, index, u, 0, reduce, include_self=x is not None).sum()


PRODUCTS: dict[str, Function] = {
    "scatter": lambda u: scattered(u, "mul"),
    "put_along_axis": lambda u: put(u, "mul"),
    "prod": lambda u: inlay.prod(u),
}
SELF_PRODUCTS: dict[str, Function] = {
    "scatter": lambda x, u: scattered(u, "mul", x),
    "put_along_axis": lambda x, u: put(u, "mul", x),
    "prod": lambda x, u: inlay.prod(inlay.concat([x, u])),
}
each_product = pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS.keys())
each_self_product = pytest.mark.parametrize(
    "product", SELF_PRODUCTS.values(), ids=SELF_PRODUCTS.keys()
)
each_scatter = pytest.mark.parametrize("scatter", [scattered, put])
each_extreme = pytest.mark.parametrize("reduce", ["amax", "amin"])
each_short = pytest.mark.parametrize("dtype", SHORT_FLOATS, ids=["float16", "bfloat16"])


@each_scatter
@each_extreme
def test_ties_without_self_share_the_gradient_among_the_updates(
    scatter: Function, reduce: str
) -> None:
    # y = max(3, 3) for any x, even 3. Two values equal the result, so each gets half.
    for old in [3.0, 5.0, -5.0]:
        x, u = leaf([old]), leaf([3.0, 3.0])
        if scatter is scattered:
            y = inlay.scatter(x, [0, 0], u, overwrite=False, reduce=reduce, include_self=False)
        else:
            y = inlay.put_along_axis(x, [0, 0], u, 0, reduce, include_self=False)
        y.backward()
        assert y.tolist() == [3.0]
        assert grad_list(u) == [0.5, 0.5]
        assert grad_list(x) == [0.0]


@each_scatter
@each_extreme
def test_ties_with_self_share_the_gradient_with_it(scatter: Function, reduce: str) -> None:
    # y = max(x, 3, 3) and x = 3: three values are equal, so each gets a third. The loser gets 0.
    x, u = leaf([3.0]), leaf([3.0, 3.0, {"amax": 2.0, "amin": 4.0}[reduce]])
    scatter(u, reduce, x).backward()
    assert grad_list(u) == [1 / 3, 1 / 3, 0.0]
    assert grad_list(x) == [1 / 3]


@each_scatter
@each_extreme
def test_a_self_that_loses_or_wins_alone(scatter: Function, reduce: str) -> None:
    sign = {"amax": 1, "amin": -1}[reduce]
    x, u = leaf([1.0 * sign]), leaf([2.0 * sign, 2.0 * sign])
    scatter(u, reduce, x).backward()
    assert (grad_list(x), grad_list(u)) == ([0.0], [0.5, 0.5])
    x, u = leaf([3.0 * sign]), leaf([2.0 * sign, 2.0 * sign])
    scatter(u, reduce, x).backward()
    assert (grad_list(x), grad_list(u)) == ([1.0], [0.0, 0.0])


@each_scatter
@each_extreme
def test_both_zeros_and_infinities_tie(scatter: Function, reduce: str) -> None:
    # 0.0 == -0.0 and inf == inf, so they share the gradient.
    for values in [[0.0, -0.0], [np.inf, np.inf], [-np.inf, -np.inf]]:
        u = leaf(values)
        scatter(u, reduce).backward()
        assert grad_list(u) == [0.5, 0.5]


@each_extreme
def test_ties_of_a_reduction_share_the_gradient(reduce: str) -> None:
    # Row 0 has two equal extremes, row 1 has one, and row 2 has three.
    x = leaf([[3.0, 3.0, 3.5], [1.0, 2.0, 3.0], [4.0, 4.0, 4.0]])
    if reduce == "amax":
        x = leaf([[3.0, 3.0, 2.5], [3.0, 2.0, 1.0], [4.0, 4.0, 4.0]])
    getattr(inlay, reduce)(x, 1).sum().backward()
    assert grad_list(x) == [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]]


@each_extreme
def test_nan_in_one_slot_does_not_poison_the_others(reduce: str) -> None:
    # Place 0 gets NaN and 1. The result is NaN, so the NaN gets the gradient. Place 1 gets only 2,
    # whose gradient is 1, not NaN. Place 2 is not named, so x gets its gradient.
    x, u = leaf([0.0, 0.0, 0.0]), leaf([np.nan, 1.0, 2.0])
    options = {"overwrite": False, "reduce": reduce, "include_self": False}
    y = inlay.scatter(x, [0, 0, 1], u, **options)
    y.sum().backward()
    np.testing.assert_array_equal(y.numpy(), [np.nan, 2.0, 0.0])
    assert grad_list(u) == [1.0, 0.0, 1.0]
    assert grad_list(x) == [0.0, 0.0, 1.0]
    # Two NaNs share the gradient.
    u = leaf([np.nan, np.nan, 2.0])
    inlay.scatter(x.detach(), [0, 0, 1], u, **options).sum().backward()
    assert grad_list(u) == [0.5, 0.5, 1.0]


@each_extreme
def test_nan_in_one_row_does_not_poison_the_others(reduce: str) -> None:
    x = leaf([[np.nan, 1.0], [2.0, 2.0]])
    getattr(inlay, reduce)(x, 1).sum().backward()
    assert grad_list(x) == [[1.0, 0.0], [0.5, 0.5]]


def test_nan_in_one_slot_of_a_product_does_not_poison_the_others() -> None:
    # Place 0: d/du0 = u1 = 2 and d/du1 = u0 = NaN. Place 1: d/du2 = u3 = 3, d/du3 = u2 = 0.
    u = leaf([np.nan, 2.0, 0.0, 3.0])
    inlay.scatter(np.ones(2), [0, 0, 1, 1], u, overwrite=False, reduce="mul").sum().backward()
    np.testing.assert_array_equal(u.grad.numpy(), [2.0, np.nan, 3.0, 0.0])


@each_product
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_with_zeros(product: Function, dtype: str) -> None:
    # d(abc)/da = bc, and so on. With one zero, only the derivative of the zero is not 0. With two
    # or three zeros, all derivatives are 0.
    for values, expected in [
        ([0.0, 3.0, 5.0], [15.0, 0.0, 0.0]),
        ([3.0, 0.0, 5.0], [0.0, 15.0, 0.0]),
        ([0.0, 0.0, 5.0], [0.0, 0.0, 0.0]),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([2.0, 3.0, 5.0], [15.0, 10.0, 6.0]),
    ]:
        u = leaf(values, dtype)
        product(u).backward()
        assert grad_list(u) == expected


@each_product
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_second_derivatives_of_products_with_zeros(product: Function, dtype: str) -> None:
    # d2(abc)/(da db) = c, and 0 on the diagonal.
    for a, b, c in [(0, 3, 5), (0, 0, 5), (0, 5, 0), (5, 0, 0), (0, 0, 0), (2, 3, 5)]:
        u = leaf([a, b, c], dtype)
        expected = [[0, c, b], [c, 0, a], [b, a, 0]]
        assert hessian(product(u), [u]) == expected


@each_product
def test_third_derivatives_of_products_with_zeros(product: Function) -> None:
    # d3(abc)/(da db dc) = 1, even at 0, 0, 0. For abcd it is d.
    for values, expected in [([0.0] * 3, [0.0, 0.0, 1.0]), ([0.0, 0.0, 0.0, 7.0], [0, 0, 7, 0])]:
        u = leaf(values)
        (g,) = inlay.grad(product(u), u, create_graph=True)
        (h,) = inlay.grad(g[0], u, create_graph=True)
        (third,) = inlay.grad(h[1], u)
        assert third.tolist() == expected


@each_self_product
def test_products_with_zeros_and_self(product: Function) -> None:
    # y = x a b: dy/dx = ab, dy/da = xb, dy/db = xa; d2y/(dx da) = b, and so on.
    for x, a, b in [(0, 0, 5), (0, 3, 5), (2, 0, 5), (2, 0, 0), (0, 0, 0), (2, 3, 5)]:
        inputs = [leaf([x], "float64"), leaf([a, b], "float64")]
        y = product(*inputs)
        grads = inlay.grad(y, inputs, retain_graph=True)
        assert [g.tolist() for g in grads] == [[a * b], [x * b, x * a]]
        assert hessian(y, inputs) == [[0, b, a], [b, 0, x], [a, x, 0]]


def others(values: np.ndarray) -> np.ndarray:
    """The product of all other factors, computed with exact fractions and rounded once."""
    exact = [Fraction(float(value)) for value in values]
    products = []
    for k in range(len(exact)):
        product = Fraction(1)
        for other in exact[:k] + exact[k + 1 :]:
            product *= other
        products.append(float(product))
    return np.array(products).astype(values.dtype)


FACTORS: dict[str, list[float]] = {
    # d/du0 = 1e-25 * 1e20 = 1e-5, although an intermediate product is 1e-50, which float32 can't
    # represent. d/du2 = 1e-50 rounds to 0.
    "underflow on the way": [1e-25, 1e-25, 1e20],
    "underflow at the end": [1e20, 1e-25, 1e-25],
    # d/du3 = 1e-30. A product from the left in float32 would underflow to 0.
    "underflow before a one": [1e-25, 1e-25, 1e20, 1.0],
    # The product of the first two factors exceeds float32, but each gradient is in range.
    "overflow on the way": [1e30, 1e30, 1e-30, 1e-30],
    "subnormal": [1e-40, 1e30, 2.0],
    "smallest": [1e-45, 1e38, 3.0],
    "huge and zero": [3e38, 3e38, 0.0, 1e-40],
}


@each_product
@pytest.mark.parametrize("values", FACTORS.values(), ids=FACTORS.keys())
def test_huge_and_tiny_factors(product: Function, values: list[float]) -> None:
    u = leaf(values, "float32")
    product(u).backward()
    np.testing.assert_allclose(u.grad.numpy(), others(u.numpy()), rtol=2e-7)


@each_product
def test_huge_and_tiny_factors_at_second_order(product: Function) -> None:
    # d2/(du0 du3) = 1e-25 * 1e20 = 1e-5, d2/(du0 du1) = 1e20, d2/(du2 du3) = 1e-50 = 0.
    u = leaf([1e-25, 1e-25, 1e20, 1.0], "float32")
    expected = [[0, 1e20, 1e-25, 1e-5], [1e20, 0, 1e-25, 1e-5], [1e-25, 1e-25, 0, 0]]
    expected.append([1e-5, 1e-5, 0, 0])
    np.testing.assert_allclose(hessian(product(u), [u]), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "product",
    [
        pytest.param(
            product,
            id=name,
        )
        for name, product in SELF_PRODUCTS.items()
    ],
)
def test_tiny_factors_of_a_self(product: Function) -> None:
    # dy/dx = 1e-25 * 1e-25 * 1e20 = 1e-30, which float32 can represent.
    x, u = leaf([1.0], "float32"), leaf([1e-25, 1e-25, 1e20], "float32")
    product(x, u).backward()
    np.testing.assert_allclose(grad_list(u), [1e-5, 1e-5, 0], rtol=1e-6)
    np.testing.assert_allclose(grad_list(x), [1e-30], rtol=1e-6)


@pytest.mark.xfail(strict=True, reason="float64 has no wider dtype for products on the way")
@each_product
def test_tiny_factors_in_float64(product: Function) -> None:
    # d/du3 = 1e-200 * 1e-200 * 1e300 = 1e-100, which float64 can represent.
    u = leaf([1e-200, 1e-200, 1e300, 1.0])
    product(u).backward()
    np.testing.assert_allclose(u.grad.numpy()[3], 1e-100, rtol=1e-12)


@each_product
def test_tiny_products_under_a_huge_gradient(product: Function) -> None:
    # d/du2 = 1e38 * 1e-30 * 1e-30 = 1e-22, which float32 can represent, but not 1e-60.
    u = leaf([1e-30, 1e-30, 1.0], "float32")
    product(u).backward(np.float32(1e38))
    np.testing.assert_allclose(u.grad.numpy(), [1e8, 1e8, 1e-22], rtol=1e-6)


@each_product
@each_short
def test_short_products(product: Function, dtype: Any) -> None:
    # In float16, 0.001 ** 3 is 0 and 1000 ** 2 is infinite. No gradient here is 0 or infinite.
    u = leaf([0.001, 0.001, 1000.0, 1000.0], dtype)
    product(u).backward()
    got, expected = u.grad.numpy().astype(float), others(u.numpy()).astype(float)
    np.testing.assert_allclose(got, expected, rtol=float(ml_dtypes.finfo(dtype).eps))


def test_of_duplicate_overwrites_only_the_winner_has_a_gradient() -> None:
    # Entries 0, 1 and 3 write place 2, and the last one wins. Only entry 2 writes place 0.
    index, seed = [2, -1, 0, 2], np.array([10.0, 20.0, 30.0])
    expected_x, expected_u = [0.0, 20.0, 0.0], [0.0, 0.0, 10.0, 30.0]
    writes = {
        "scatter": lambda x, u: inlay.scatter(x, index, u),
        "put_along_axis": lambda x, u: inlay.put_along_axis(x, index, u, 0),
        "index_put": lambda x, u: inlay.index_put(x, [index], u),
        "setitem": lambda x, u: setitem(x, np.array(index), u),
    }
    for name, write in writes.items():
        x, u = leaf(np.zeros(3)), leaf([1.0, 2.0, 3.0, 4.0])
        write(x, u).backward(seed)
        assert (name, grad_list(x)) == (name, expected_x)
        assert (name, grad_list(u)) == (name, expected_u)


def setitem(x: Any, key: Any, value: Any) -> Any:
    y = x * 1.0
    y[key] = value
    return y


def test_losing_duplicates_of_nan_gradients_are_exactly_0() -> None:
    # The winner's gradient is NaN. It is selected for the winner and not multiplied by 0, so the
    # others get 0 and not NaN.
    u = leaf([1.0, 2.0])
    inlay.scatter(np.zeros(1), [0, 0], u).backward([np.nan])
    np.testing.assert_array_equal(u.grad.numpy(), [0.0, np.nan])


@pytest.mark.parametrize("reduce", ["overwrite", *REDUCES])
@pytest.mark.parametrize("include_self", [True, False])
def test_updates_past_the_index_have_a_gradient_of_0(reduce: str, include_self: bool) -> None:
    options = {"overwrite": True}
    if reduce != "overwrite":
        options = {"overwrite": False, "reduce": reduce, "include_self": include_self}
    u = leaf([[1.0, 2.0], [3.0, np.nan], [np.inf, np.nan]])
    inlay.scatter(np.ones((2, 2)), [1], u, **options).sum().backward()
    np.testing.assert_array_equal(u.grad.numpy()[1:], np.zeros((2, 2)))
    assert u.grad.numpy()[0].any()


def test_values_past_the_index_have_a_gradient_of_0() -> None:
    v = leaf(np.ones((3, 3)))
    x, index = np.zeros((3, 3)), np.zeros((1, 2), int)
    inlay.put_along_axis(x, index, v, 0, "add", broadcast=False).sum().backward()
    assert grad_list(v) == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_unused_elements_of_a_source_have_a_gradient_of_0() -> None:
    # Two true places take the first two of six elements. The seeds of the true places are 10 and
    # 30.
    source = leaf([[1.0, 2.0, np.nan], [4.0, 5.0, np.inf]])
    x = leaf([0.0, 0.0, 0.0])
    y = inlay.masked_scatter(x, [True, False, True], source)
    y.backward(np.array([10.0, 20.0, 30.0]))
    assert grad_list(source) == [[10, 30, 0], [0, 0, 0]]
    assert grad_list(x) == [0, 20, 0]


def test_a_mean_divides_by_its_count() -> None:
    # Place 0 has 3 updates, or 4 with self. Place 1 has none. Place 2 has one, or 2 with self.
    index = [0, 0, -1, 0]
    for include_self, x_grad, u_grad in [
        (False, [0.0, 1.0, 0.0], [1 / 3, 1 / 3, 1.0, 1 / 3]),
        (True, [1 / 4, 1.0, 1 / 2], [1 / 4, 1 / 4, 1 / 2, 1 / 4]),
    ]:
        x, u = leaf(np.zeros(3)), leaf(np.ones(4))
        options = {"overwrite": False, "reduce": "mean", "include_self": include_self}
        inlay.scatter(x, index, u, **options).sum().backward()
        assert (grad_list(x), grad_list(u)) == (x_grad, u_grad)


def test_an_index_fill_counts_each_place_once() -> None:
    # Place 1 is named twice but counts once, so the gradient of the value is 10 + 30.
    x, value = leaf(np.zeros(3)), leaf(5.0)
    inlay.index_fill(x, [0, 2, 0, -1], 0, value).backward(np.array([10.0, 20.0, 30.0]))
    assert (grad_list(x), grad_list(value)) == ([0, 20, 0], 40.0)


MANY = 4096
ADDERS: dict[str, Function] = {
    "index_select": lambda x: inlay.index_select(x, np.zeros(MANY, int)),
    "take_along_axis": lambda x: inlay.take_along_axis(x, np.zeros(MANY, int), 0),
    "getitem": lambda x: x[inlay.to_tensor(np.zeros(MANY, int))],
    "broadcast_to": lambda x: inlay.broadcast_to(x[:1], [MANY]),
    "arithmetic": lambda x: x[:1] * np.ones(MANY, x.numpy().dtype),
    "masked_fill": lambda x: inlay.masked_fill(
        np.zeros(MANY, x.numpy().dtype), np.ones(MANY, bool), x[0]
    ),
    "index_fill": lambda x: inlay.index_fill(
        np.zeros(MANY, x.numpy().dtype), np.arange(MANY), 0, x[0]
    ),
    "put_along_axis": lambda x: inlay.put_along_axis(
        np.zeros((MANY, 1), x.numpy().dtype), np.zeros((1, 1), int), x[:1].reshape([1, 1]), 1
    ),
    "index_put": lambda x: inlay.index_put(
        np.zeros(MANY, x.numpy().dtype), [np.arange(MANY)], x[:1]
    ),
    "concat": lambda x: inlay.concat([x[:1]] * MANY),
    "stack": lambda x: inlay.stack([x[0]] * MANY),
    "concat of itself": lambda x: inlay.concat([x] * MANY).reshape([MANY, 2])[:, 0],
}


@each_short
@pytest.mark.parametrize("add", ADDERS.values(), ids=ADDERS.keys())
def test_short_gradients_add_up_in_float32(add: Function, dtype: Any) -> None:
    # In float16 2048 + 1 is 2048, and in bfloat16 256 + 1 is 256. A running sum would stop there.
    x = leaf([1.0, 1.0], dtype)
    y = add(x)
    y.backward(np.ones(y.shape, dtype))
    assert x.grad.numpy().dtype == dtype
    assert grad_list(x) == [MANY, 0]
    z = leaf([1.0, 1.0], dtype)
    y = add(z)
    (g,) = inlay.grad(y, z, grad_outputs=[np.ones(y.shape, dtype)], create_graph=True)
    assert g.tolist() == [MANY, 0]


@each_short
def test_short_gradients_of_a_tensor_used_many_times(dtype: Any) -> None:
    x = leaf([1.0], dtype)
    y = x
    for _ in range(MANY - 1):
        y = y + x
    y.backward()
    assert grad_list(x) == [MANY]
    # The same holds for a computed tensor.
    x = leaf([1.0], dtype)
    h = x * 1.0
    y = h
    for _ in range(MANY - 1):
        y = y + h
    y.backward()
    assert grad_list(x) == [MANY]


@each_short
def test_short_means_of_many(dtype: Any) -> None:
    # Each gets 1 / 4096 = 2 ** -12, which both dtypes can represent.
    for reduce in ["mean", "amax", "amin"]:
        u = leaf(np.ones(MANY), dtype)
        scattered(u, reduce).backward()
        np.testing.assert_array_equal(u.grad.numpy().astype(float), np.full(MANY, 2.0**-12))
        u = leaf(np.ones(MANY), dtype)
        getattr(inlay, reduce)(u).backward()
        np.testing.assert_array_equal(u.grad.numpy().astype(float), np.full(MANY, 2.0**-12))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_gradients_have_the_dtype_and_shape_of_their_tensor(dtype: str) -> None:
    x, u = leaf(np.ones((3, 2)), dtype), leaf(np.ones((4, 2)), dtype)
    inlay.scatter(x, [0, 1], u).sum().backward()
    assert (x.grad.dtype.name, x.grad.shape) == (dtype, [3, 2])
    assert (u.grad.dtype.name, u.grad.shape) == (dtype, [4, 2])


def test_complex_gradients_by_hand() -> None:
    # L = Re(z w). For z = a + ib and w = c + id, L = ac - bd, so dL/da + i dL/db = c - id =
    # conj(w).
    z, w = leaf([1 + 2j]), leaf([3 - 4j])
    (z * w).backward()
    assert grad_list(z) == [3 + 4j]
    assert grad_list(w) == [1 - 2j]
    # The same holds for a scattered product of three factors: the conjugate of the other two.
    u = leaf([1 + 2j, 3 - 4j, 1j])
    scattered(u, "mul").backward()
    assert grad_list(u) == [((3 - 4j) * 1j).conjugate(), ((1 + 2j) * 1j).conjugate(), 11 - 2j]
    # L = Re((1 + 2i) x) of a real x: dL/dx = 1.
    x = leaf([5.0])
    (x.cast("complex128") * (1 + 2j)).backward()
    assert grad_list(x) == [1.0]
