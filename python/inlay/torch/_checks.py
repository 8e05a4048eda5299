"""Which torch tensors Inlay can read and write, and the errors for all others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from inlay.errors import InlayReplacedError

from ._dtypes import NAMES

_C = torch._C
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def modes_active() -> bool:
    """Whether something wants to see the call: a dispatch mode, a transform or a tracer."""
    return bool(
        _C._len_torch_dispatch_stack()
        or _C._functorch.peek_interpreter_stack() is not None
        or _C._is_tracing()
    )


def is_plain(tensor: Any) -> bool:
    """Whether no subclass of `torch.Tensor` wants to see the operations on this tensor."""
    kind = type(tensor)
    return kind in _PLAIN or kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__


def resolved(tensor: Any) -> Any:
    """Returns a tensor with the same values, without the conjugate and the negative bit."""
    dtype = tensor.dtype
    if dtype.is_complex and tensor.is_conj():
        tensor = tensor.resolve_conj()
    if (dtype.is_complex or dtype.is_floating_point) and tensor.is_neg():
        tensor = tensor.resolve_neg()
    return tensor


def check_writable(operation: str, name: str, target: Any) -> None:
    """Raises an error if torch does not permit an in-place write, before anything is written."""
    if target.is_conj() or target.is_neg():
        bit = "conjugate" if target.is_conj() else "negative"
        raise ValueError(
            f"{operation}: {name} is a view with the {bit} bit, whose memory holds other values; "
            "write to the tensor that it is a view of, or to a copy without it: "
            "`.resolve_conj().resolve_neg()`"
        )
    if target.is_inference() and not torch.is_inference_mode_enabled():
        raise RuntimeError(
            f"{operation}: {name} is an inference tensor, which can be written only inside of "
            "torch.inference_mode(); write to a copy: `.clone()`"
        )
    if not torch.is_grad_enabled():
        return
    if target._is_view():
        _check_view(operation, name, target)
    if target.requires_grad and target.is_leaf:
        raise RuntimeError(
            f"{operation}: {name} is a leaf Variable that requires grad, which is being used in an "
            "in-place operation; call it inside of torch.no_grad(), or write to a copy: `.clone()`"
        )


def _check_view(operation: str, name: str, target: Any) -> None:
    base = target._base
    if base.requires_grad and base.is_leaf:
        raise RuntimeError(
            f"{operation}: {name} is a view of a leaf Variable that requires grad, which is being "
            "used in an in-place operation; call it inside of torch.no_grad(), or write to a copy: "
            "`.clone()`"
        )
    if base.requires_grad or target.requires_grad:
        made = _C._autograd._get_creation_meta(target)
        if made != _C._autograd.CreationMeta.DEFAULT:
            raise RuntimeError(
                f"{operation}: {name} is a view that torch does not permit to be modified in place "
                f"(it was made in {made.name.lower()}); write to a copy: `.clone()`"
            )


def explain(operation: str, tensors: Iterable[Any], error: Exception) -> None:
    """Raises the error that says why one of these tensors can't be read; nothing if all can.

    `error` is what was raised instead.
    """
    if isinstance(error, InlayReplacedError):
        # It says more. The storage may be too small by now.
        return
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor):
            problem = _problem(tensor)
            if problem:
                raise TypeError(f"{operation}: {problem}")


def _problem(tensor: Any) -> str | None:
    """Says what is wrong with a tensor, and how to go on."""
    if tensor.is_nested:
        return "nested tensors are not supported; convert it with `.to_padded_tensor(0)`"
    if tensor.is_quantized:
        return "quantized tensors are not supported; convert it with `.dequantize()`"
    if tensor.layout is not torch.strided:
        return f"tensors of layout {tensor.layout} are not supported; convert it with `.to_dense()`"
    if tensor.device.type == "meta":
        return "a meta tensor has no elements; pass one with elements, on the CPU"
    if tensor.device.type != "cpu":
        return (
            f"the tensor is on {tensor.device}, but Inlay works on CPU tensors; copy it with "
            "`.cpu()` and the result back with `.to(...)`"
        )
    if tensor.dtype not in NAMES:
        return f"tensors of {tensor.dtype} are not supported; convert it, e.g. `.to(torch.float32)`"
    if _C._functorch.is_functorch_wrapped_tensor(tensor):
        if _C._functorch.peek_interpreter_stack() is not None:
            return _problem(_C._functorch.get_unwrapped(tensor))
        return (
            "the tensor belongs to a transform of torch.func that is not active here; return it "
            "from the transformed function instead of keeping it"
        )
    if torch._is_functional_tensor(tensor):
        return "a functional tensor can't be read outside of its torch.func.functionalize"
    if is_plain(tensor) and tensor.numel() and not _has_storage(tensor):
        return "the tensor's storage is smaller than its shape; it was resized or freed"
    return None


def _has_storage(tensor: Any) -> bool:
    last = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    needed = (tensor.storage_offset() + last + 1) * tensor.element_size()
    return bool(tensor.untyped_storage().nbytes() >= needed)
