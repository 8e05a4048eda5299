"""`torch.ops.inlay.*`: all operations and their in-place forms, registered with torch.

Each operation has four kernels: one for the CPU, one without values (`_fake`), one for autograd,
and one for the transforms of `torch.func`. The last stands before functorch's own dispatch, because
an `autograd.Function` that runs inside of it loses the outer transforms.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._C._functorch import TransformType
from torch.autograd import forward_ad

from inlay._inlay import Function, Kernel, _call_chain, operations

from ._autograd import Derived, apply, needs_old_value
from ._checks import explain, resolved
from ._compute import compute
from ._fake import infer
from ._schema import Layout, number, schema

_C = torch._C
_TRANSFORM = "FuncTorchDynamicLayerFrontMode"
LIBRARY = torch.library.Library("inlay", "DEF")
LAYOUTS: dict[str, Layout] = {}


class Named:
    """A call of an operation by its own name, so that graphs show it."""

    __slots__ = ("_function", "layout", "objects", "overload")

    def __init__(self, overload: Any, layout: Layout, objects: Sequence[Any]) -> None:
        self.overload = overload
        self.layout = layout
        self.objects = objects
        self._function: Any = None

    @property
    def function(self) -> Any:
        """The Function of the call. Symbolic integers among its arguments become numbers."""
        if self._function is None:
            self._function = Function(self.layout.name, tuple(map(number, self.objects)))
        return self._function

    def redispatch(self, tensors: Sequence[Any]) -> list[Any]:
        """Calls the operation of torch."""
        args, keywords = self.layout.arguments(self.layout.filled(self.objects, tensors))
        return [self.overload(*args, **keywords)]


def _explained(name: str, run: Callable[[], Any], inputs: Sequence[Any]) -> Any:
    """Runs a kernel. An error says what is wrong with an input that can't be read."""
    try:
        return run()
    except Exception as error:
        explain(name, inputs, error)
        raise


def _kernel(key: str, name: str, keyset: bool = False) -> Callable[[Any], Any]:
    def register(kernel: Any) -> Any:
        LIBRARY.impl(name, kernel, key, with_keyset=keyset)
        return kernel

    return register


def _needs_gradient(args: Sequence[Any]) -> bool:
    if forward_ad._current_level >= 0:
        return True
    return bool(_C.is_grad_enabled() and _C._any_requires_grad(*args))


def _below(overload: Any, keys: Any, args: Any, keywords: Any) -> Any:
    with _C._AutoDispatchBelowAutograd():
        return overload.redispatch(keys & _C._after_autograd_keyset, *args, **keywords)


def _functionalizes() -> bool:
    """Whether the innermost transform is `torch.func.functionalize`."""
    return bool(_C._functorch.peek_interpreter_stack().key() == TransformType.Functionalize)


def _functionalized(overload: Any, args: Any, keywords: Any) -> Any:
    from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
    from torch._subclasses.functional_tensor import FunctorchFunctionalizeAPI

    context = FunctorchFunctionalizeAPI(retrieve_current_functorch_interpreter())
    with context.redispatch_to_next():
        outputs = overload(*context.unwrap_tensors(args), **context.unwrap_tensors(keywords))
    return context.wrap_tensors(outputs)


def _define(operation: Any) -> None:
    """Registers an operation."""
    name = operation.name
    LIBRARY.define(schema(operation, False), tags=(torch.Tag.pt2_compliant_tag,))
    layout = LAYOUTS[name] = Layout(operation)
    overload = getattr(torch.ops.inlay, name).default

    def parts(args: Any, keywords: Any) -> tuple[Named, list[Any]]:
        objects = layout.objects(args, keywords)
        return Named(overload, layout, objects), layout.split(objects)

    def native(kernel: Any, skips: int, records: bool) -> Any:
        """A kernel in Rust for plain tensors. It leaves all other calls to the given one."""
        places = [field.place for field in layout.fields]
        names = [field.name for field in layout.fields]
        return Kernel(name, places, names, kernel, skips, records)

    def cpu(*args: Any, **keywords: Any) -> Any:
        call, tensors = parts(args, keywords)
        return _explained(name, lambda: compute(call.function, tensors)[0], tensors)

    key = "CPU" if layout.tensors else "CompositeExplicitAutograd"
    LIBRARY.impl(name, native(cpu, 0, False), key)

    @torch.library.register_fake(f"inlay::{name}", lib=LIBRARY)  # type: ignore[untyped-decorator]
    def fake(*args: Any, **keywords: Any) -> Any:
        objects = layout.without_scalars(layout.objects(args, keywords))
        call = Named(overload, layout, objects)
        return infer(call.function, layout.split(objects))[0]

    if not layout.tensors:
        return

    def autograd(keys: Any, *args: Any, **keywords: Any) -> Any:
        if _needs_gradient(args):
            call, tensors = parts(args, keywords)
            return apply(call, tensors)[0]
        return _below(overload, keys, args, keywords)

    # The first argument is the set of keys.
    LIBRARY.impl(name, native(autograd, 1, True), "Autograd", with_keyset=True)

    @_kernel(_TRANSFORM, name)
    def transform(*args: Any, **keywords: Any) -> Any:
        if _functionalizes():
            return _functionalized(overload, args, keywords)
        call, tensors = parts(args, keywords)
        return apply(call, tensors)[0]


def _define_in_place(operation: Any) -> None:
    """Registers the in-place form of an operation."""
    name = operation.twin
    LIBRARY.define(schema(operation, True), tags=(torch.Tag.pt2_compliant_tag,))
    layout = LAYOUTS[name] = LAYOUTS[operation.name]
    overload = getattr(torch.ops.inlay, name).default
    functional = getattr(torch.ops.inlay, operation.name).default

    @_kernel("CPU", name)
    def cpu(*args: Any, **keywords: Any) -> None:
        objects = layout.objects(args, keywords)
        target, *others = layout.split(objects)
        inputs = [target, *(resolved(tensor) for tensor in others)]
        function = Function(operation.name, tuple(objects))
        _explained(name, lambda: function.write(inputs), inputs)

    @torch.library.register_fake(f"inlay::{name}", lib=LIBRARY)  # type: ignore[untyped-decorator]
    def fake(*args: Any, **keywords: Any) -> None:
        objects = layout.objects(args, keywords)
        infer(Named(functional, layout, objects).function, layout.split(objects))

    @_kernel("Autograd", name, True)
    def autograd(keys: Any, *args: Any, **keywords: Any) -> None:
        if _needs_gradient(args):
            call = Named(functional, layout, layout.objects(args, keywords))
            saved = needs_old_value(call.function, layout.split(call.objects))
            source = args[0].clone() if saved else args[0]
            args[0].copy_(functional(source, *args[1:], **keywords))
        else:
            _below(overload, keys, args, keywords)

    @_kernel("ADInplaceOrView", name, True)
    def count(keys: Any, *args: Any, **keywords: Any) -> None:
        _C._increment_version((args[0],))
        overload.redispatch(keys & _C._after_ADInplaceOrView_keyset, *args, **keywords)

    @_kernel(_TRANSFORM, name)
    def transform(*args: Any, **keywords: Any) -> None:
        args[0].copy_(functional(args[0].clone(), *args[1:], **keywords))


def _define_function() -> None:
    """Registers `inlay::function`, which computes derivatives and batches of any operation."""
    LIBRARY.define(
        "function(str text, Tensor[] inputs) -> Tensor[]", tags=(torch.Tag.pt2_compliant_tag,)
    )

    @_kernel("CPU", "function")
    def cpu(text: str, inputs: Any) -> Any:
        function = Function.parse(text)
        return _explained(function.name, lambda: compute(function, inputs), inputs)

    @torch.library.register_fake("inlay::function", lib=LIBRARY)  # type: ignore[untyped-decorator]
    def fake(text: str, inputs: Any) -> Any:
        return infer(Function.parse(text), inputs)

    @_kernel("Autograd", "function", True)
    def autograd(keys: Any, text: str, inputs: Any) -> Any:
        if _needs_gradient(inputs):
            return apply(Derived(Function.parse(text)), inputs)
        return _below(torch.ops.inlay.function.default, keys, (text, inputs), {})

    @_kernel(_TRANSFORM, "function")
    def transform(text: str, inputs: Any) -> Any:
        if _functionalizes():
            return _functionalized(torch.ops.inlay.function.default, (text, inputs), {})
        return apply(Derived(Function.parse(text)), inputs)


def _define_chain() -> None:
    """Registers `inlay::chain`, which `_chains` puts in the place of several calls.

    It appears only in graphs that are compiled, below autograd.
    """
    LIBRARY.define(
        "chain(str text, Tensor[] inputs) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,)
    )

    def cpu(text: str, inputs: Any) -> Any:
        function = Function.parse(text)
        return _explained(function.name, lambda: compute(function, inputs), inputs)[0]

    LIBRARY.impl("chain", functools.partial(_call_chain, cpu), "CPU")

    @torch.library.register_fake("inlay::chain", lib=LIBRARY)  # type: ignore[untyped-decorator]
    def fake(text: str, inputs: Any) -> Any:
        return infer(Function.parse(text), inputs)[0]


def register() -> None:
    """Registers everything. The library object keeps it registered."""
    for operation in operations():
        _define(operation)
        if operation.twin is not None:
            _define_in_place(operation)
    _define_function()
    _define_chain()


register()
