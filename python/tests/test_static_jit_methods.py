"""Methods and callable objects under `jit`."""

from __future__ import annotations

import copy
import dataclasses
import functools
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import inlay


class Model:
    """A model with parameters, constants and parts."""

    traces = 0

    def __init__(self, scale: float = 2.0, inner: Any = None) -> None:
        self.weight = inlay.to_tensor([1.0, 2.0])
        self.scale = scale
        self.inner = inner

    @inlay.jit
    def forward(self, x: Any, bias: float = 0.0) -> Any:
        """Doc."""
        type(self).traces += 1
        y = x * self.weight * self.scale + bias
        return y if self.inner is None else self.inner.forward(y)

    @inlay.jit
    def remember(self, x: Any) -> Any:
        self.last = x
        return x

    @inlay.jit
    def count(self, x: Any) -> Any:
        self.scale += 1
        return x

    @functools.cached_property
    def double(self) -> Any:
        return self.weight * 2

    @inlay.jit
    def cached(self) -> Any:
        return self.double

    @staticmethod
    @inlay.jit
    def inner_static(x: Any) -> Any:
        return x + 1

    @inlay.jit
    @staticmethod
    def outer_static(x: Any) -> Any:
        return x + 1

    @classmethod
    @inlay.jit
    def inner_class(cls, x: Any) -> Any:
        return x + len(cls.__name__)

    @inlay.jit
    @classmethod
    def outer_class(cls, x: Any) -> Any:
        return x + len(cls.__name__)

    @inlay.jit
    def __call__(self, x: Any) -> Any:
        return x * self.scale

    @property
    @inlay.jit
    def norm(self) -> Any:
        return (self.weight * self.weight).sum()


def test_methods_see_changes_of_attributes() -> None:
    model, x = Model(), np.ones(2, "f4")
    assert model.forward(x).tolist() == [2.0, 4.0]
    traces = Model.traces
    model.weight = inlay.to_tensor([3.0, 3.0])
    assert model.forward(x).tolist() == [6.0, 6.0]
    model.weight[0] = 0.0
    assert model.forward(x).tolist() == [0.0, 6.0]
    assert Model.traces == traces
    model.scale = 1.0
    assert model.forward(x).tolist() == [0.0, 3.0]
    assert model.forward(x, bias=1.0).tolist() == model.forward(x, 1.0).tolist() == [1.0, 4.0]
    assert Model(3.0).forward(x).tolist() == [3.0, 6.0]


def test_instances_share_traces_and_are_collected() -> None:
    x = np.ones(2, "f4")
    models = [Model(), Model()]
    for model in models:
        model.forward(x)
    traces = Model.traces
    for model in models:
        model.forward(x)
    assert Model.traces == traces
    gone = weakref.ref(models.pop())
    del model, models
    gc.collect()
    assert gone() is None


def test_classes_are_collected_with_their_traces() -> None:
    def make() -> Any:
        class Local:
            @inlay.jit
            def forward(self, x: Any) -> Any:
                return x * 2

        assert Local().forward(np.ones(1)).tolist() == [2.0]
        return weakref.ref(Local)

    gone = make()
    gc.collect()
    assert gone() is None


def test_parts_of_self_are_taken_apart() -> None:
    model = Model(1.0, inner=Model(10.0))
    assert model.forward(np.ones(2, "f4")).tolist() == [10.0, 40.0]
    model.inner.weight[0] = 0.0
    assert model.forward(np.ones(2, "f4")).tolist() == [0.0, 40.0]


def test_gradients_reach_attributes() -> None:
    model = Model()
    model.weight.stop_gradient = False
    model.forward(np.ones(2, "f4")).sum().backward()
    assert model.weight.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("stop", [True, False])
def test_attributes_that_the_function_sets_are_refused(stop: bool) -> None:
    model = Model()
    model.weight.stop_gradient = stop
    with pytest.raises(TypeError, match=r"sets the attribute 'last' of a .*Model.*return the new"):
        model.remember(np.ones(1))
    with pytest.raises(TypeError, match="sets the attribute 'scale'"):
        model.count(np.ones(1))
    assert not hasattr(model, "last")
    assert model.scale == 2.0
    assert model.cached().tolist() == [2.0, 4.0]


def test_attributes_of_an_object_without_tensors_are_restored() -> None:
    class Counter:
        count = 0

        @inlay.jit
        def step(self, x: Any) -> Any:
            self.count += 1
            return x

        @inlay.jit
        def fail(self, x: Any) -> Any:
            self.count += 1
            raise NotImplementedError

    counter = Counter()
    with pytest.raises(TypeError, match="sets the attribute 'count'"):
        counter.step(np.ones(1))
    with pytest.raises(NotImplementedError):
        counter.fail(np.ones(1))
    assert vars(counter) == {}


def test_static_and_class_methods() -> None:
    x = np.zeros(1)
    for owner in [Model, Model()]:
        assert owner.inner_static(x).tolist() == owner.outer_static(x).tolist() == [1.0]
        assert owner.inner_class(x).tolist() == owner.outer_class(x).tolist() == [5.0]


def test_other_ways_to_a_method() -> None:
    model, x = Model(), np.ones(2, "f4")
    assert Model.forward(model, x).tolist() == [2.0, 4.0]
    assert model(x).tolist() == [2.0, 2.0]
    assert model.norm.item() == 5.0
    bound = inlay.jit(Model(5.0).forward)
    assert bound(x).tolist() == [5.0, 10.0]
    assert "plan" in model.forward.explain()
    assert Model.forward.__doc__ == "Doc."
    assert Model.forward.__name__ == "forward"


def test_bound_methods_and_objects_see_changes() -> None:
    class Scale:
        def __init__(self) -> None:
            self.by = np.array([2.0])

        def __call__(self, x: Any) -> Any:
            return x * self.by

        def method(self, x: Any) -> Any:
            return x * self.by

    scale, x = Scale(), np.ones(1)
    called, method = inlay.jit(scale), inlay.jit(scale.method)
    apply = inlay.jit(lambda function, x: function(x))
    for value in [2.0, 3.0]:
        scale.by[0] = value
        assert called(x).tolist() == method(x).tolist() == [value]
        assert apply(scale, x).tolist() == apply(scale.method, x).tolist() == [value]
        assert apply(functools.partial(scale.method), x).tolist() == [value]


def test_slots_are_attributes() -> None:
    class Slots:
        __slots__ = ("_Slots__hidden", "unset", "weight")

        def __init__(self) -> None:
            self.weight = np.ones(1)
            self.__hidden = 2.0

        @inlay.jit
        def forward(self, x: Any) -> Any:
            return x * self.weight * self.__hidden

        @inlay.jit
        def change(self, x: Any) -> Any:
            self.unset = x
            return x

    slots = Slots()
    assert slots.forward(np.ones(1)).tolist() == [2.0]
    slots.weight[0] = 3.0
    assert slots.forward(np.ones(1)).tolist() == [6.0]
    with pytest.raises(TypeError, match="sets the attribute 'unset'"):
        slots.change(np.ones(1))


def test_methods_of_dataclasses() -> None:
    @dataclasses.dataclass(frozen=True)
    class Affine:
        weight: Any
        bias: Any

        @inlay.jit
        def forward(self, x: Any) -> Any:
            return dataclasses.replace(self, bias=x * self.weight + self.bias)

    affine = Affine(np.array([2.0]), np.array([1.0]))
    result = affine.forward(np.array([3.0]))
    assert type(result) is Affine
    assert result.bias.tolist() == [7.0]
    assert result.weight.tolist() == [2.0]


def test_objects_with_a_finalizer_are_refused() -> None:
    class Closing:
        closed = 0

        @inlay.jit
        def forward(self, x: Any) -> Any:
            return x

        def __del__(self) -> None:
            type(self).closed += 1

    closing = Closing()
    with pytest.raises(TypeError, match=r"self is a .*Closing, whose changes can't be seen"):
        closing.forward(np.ones(1))
    assert Closing.closed == 0


@inlay.jit
def twice(x: Any) -> Any:
    return x * 2


def test_a_traced_function_is_copied_and_pickled_as_a_function_is() -> None:
    assert pickle.loads(pickle.dumps(twice)) is twice
    assert copy.deepcopy([twice])[0] is twice
    assert inlay.jit(lambda f, x: f(x))(twice, np.ones(1)).tolist() == [2.0]
    assert inlay.jit(twice)(np.ones(1)).tolist() == [2.0]
