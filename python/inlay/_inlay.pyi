"""The compiled part of Inlay; use it through the package ``inlay``."""

import builtins
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import (
    Any,
    ClassVar,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    final,
    overload,
    type_check_only,
)

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType, Self

from inlay.shapes import Shape
from inlay.typing import (
    ArrayLike,
    DTypeLike,
    ForeignTensor,
    Number,
    PlainLike,
    Reduce,
    ReduceOrAssign,
    SupportsDLPack,
)

__all__ = [
    # exported: begin
    "add",
    "amax",
    "amin",
    "arange",
    "astype",
    "broadcast_to",
    "cast",
    "concat",
    "diagonal",
    "diagonal_scatter",
    "diagonal_scatter_",
    "divide",
    "equal",
    "flatten",
    "full",
    "full_like",
    "gather_nd",
    "greater_equal",
    "greater_than",
    "imag",
    "index_add",
    "index_add_",
    "index_copy",
    "index_copy_",
    "index_fill",
    "index_fill_",
    "index_get",
    "index_put",
    "index_put_",
    "index_select",
    "less_equal",
    "less_than",
    "masked_fill",
    "masked_fill_",
    "masked_scatter",
    "masked_scatter_",
    "masked_select",
    "mean",
    "multiply",
    "negative",
    "not_equal",
    "ones",
    "ones_like",
    "prod",
    "put_along_axis",
    "put_along_axis_",
    "real",
    "reshape",
    "scatter",
    "scatter_",
    "scatter_nd",
    "scatter_nd_add",
    "select_scatter",
    "select_scatter_",
    "slice_scatter",
    "slice_scatter_",
    "squeeze",
    "stack",
    "subtract",
    "sum",
    "take_along_axis",
    "transpose",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "unsqueeze",
    "where",
    "zeros",
    "zeros_like",
    # exported: end
]

__version__: str

_Foreign = TypeVar("_Foreign", bound=ForeignTensor)
_Target = TypeVar("_Target", bound=Tensor | npt.NDArray[Any] | ForeignTensor)
_Axes: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Bounds: TypeAlias = SupportsIndex | Sequence[SupportsIndex | None] | None

class _MemoryStats(TypedDict):
    in_use: int
    peak: int
    cached: int
    limit: int
    fresh: int
    reused: int

class _GpuMemoryStats(TypedDict):
    cached: int
    fresh: int
    reused: int
    submissions: int

class _Device(TypedDict):
    device: str
    name: str
    backend: str
    driver: str
    software: builtins.bool
    max_buffer: int | None
    max_binding: int | None
    float64: builtins.bool

@final
class dtype:
    def __new__(cls, dtype: DTypeLike) -> dtype: ...
    @property
    def name(self) -> str: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def __numpy_dtype__(self) -> np.dtype[Any]: ...
    def __eq__(self, other: object, /) -> builtins.bool: ...
    def __ne__(self, other: object, /) -> builtins.bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> str: ...

bool: dtype
uint8: dtype
int8: dtype
int16: dtype
uint16: dtype
int32: dtype
uint32: dtype
int64: dtype
uint64: dtype
float16: dtype
bfloat16: dtype
float32: dtype
float64: dtype
complex64: dtype
complex128: dtype

@type_check_only
class _HookHandle:
    def remove(self) -> None: ...

@final
class Tensor:
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def _is_symbolic(self) -> builtins.bool: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def dtype(self) -> dtype: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def writable(self) -> builtins.bool: ...
    @property
    def T(self) -> Tensor: ...
    def is_contiguous(self) -> builtins.bool: ...
    @property
    def device(self) -> str: ...
    def to(self, device: str) -> Tensor: ...
    def cpu(self) -> Tensor: ...
    def data_ptr(self) -> int: ...
    def numpy(self) -> npt.NDArray[Any]: ...
    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: builtins.bool | None = None
    ) -> npt.NDArray[Any]: ...
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any: ...
    def __array_function__(
        self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any: ...
    @property
    def __numpy_dtype__(self) -> np.dtype[Any]: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: builtins.bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...
    def copy(self) -> Tensor: ...
    def clone(self) -> Tensor: ...
    def __copy__(self) -> Tensor: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Tensor: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...
    def __format__(self, spec: str, /) -> str: ...
    def __contains__(self, value: Any, /) -> builtins.bool: ...
    def __len__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __bool__(self) -> builtins.bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    # methods: begin
    def add(self, y: ArrayLike, name: str | None = None) -> Tensor: ...
    def amax(
        self, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
    ) -> Tensor: ...
    def amin(
        self, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
    ) -> Tensor: ...
    def astype(self, dtype: DTypeLike) -> Tensor: ...
    @overload
    def broadcast_to(self, shape: _Axes, name: str | None = None) -> Tensor: ...
    @overload
    def broadcast_to(self, *shape: SupportsIndex, name: str | None = None) -> Tensor: ...
    def cast(self, dtype: DTypeLike) -> Tensor: ...
    def diagonal(
        self,
        offset: SupportsIndex = 0,
        axis1: SupportsIndex = 0,
        axis2: SupportsIndex = 1,
        name: str | None = None,
    ) -> Tensor: ...
    def diagonal_scatter(
        self,
        src: ArrayLike,
        offset: SupportsIndex = 0,
        axis1: SupportsIndex = 0,
        axis2: SupportsIndex = 1,
        name: str | None = None,
    ) -> Tensor: ...
    def diagonal_scatter_(
        self,
        src: ArrayLike,
        offset: SupportsIndex = 0,
        axis1: SupportsIndex = 0,
        axis2: SupportsIndex = 1,
        name: str | None = None,
    ) -> Tensor: ...
    def divide(self, y: ArrayLike, name: str | None = None) -> Tensor: ...
    def equal(self, y: ArrayLike, name: str | None = None) -> Tensor: ...
    def flatten(
        self, start_axis: SupportsIndex = 0, stop_axis: SupportsIndex = -1, name: str | None = None
    ) -> Tensor: ...
    def full_like(
        self, fill_value: Number, dtype: DTypeLike | None = None, name: str | None = None
    ) -> Tensor: ...
    def gather_nd(self, index: ArrayLike, name: str | None = None) -> Tensor: ...
    def greater_equal(self, y: ArrayLike, name: str | None = None) -> Tensor: ...
    def greater_than(self, y: ArrayLike, name: str | None = None) -> Tensor: ...
    def imag(self, name: str | None = None) -> Tensor: ...
    def index_add(
        self, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
    ) -> Tensor: ...
    def index_add_(
        self, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
    ) -> Tensor: ...
    def index_copy(
        self, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
    ) -> Tensor: ...
    def index_copy_(
        self, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
    ) -> Tensor: ...
    def index_fill(
        self, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
    ) -> Tensor: ...
    def index_fill_(
        self, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
    ) -> Tensor: ...
    def index_get(self, indices: Sequence[ArrayLike], name: str | None = None) -> Tensor: ...
    def index_put(
        self,
        indices: Sequence[ArrayLike],
        value: ArrayLike,
        accumulate: builtins.bool = False,
        name: str | None = None,
    ) -> Tensor: ...
    def index_put_(
        self,
        indices: Sequence[ArrayLike],
        value: ArrayLike,
        accumulate: builtins.bool = False,
        name: str | None = None,
    ) -> Tensor: ...
    def index_select(
        self, index: ArrayLike, axis: SupportsIndex = 0, name: str | None = None
    ) -> Tensor: ...
    def less_equal(self, y: ArrayLike, name: str | None = None) -> Tensor: ...
    def less_than(self, y: ArrayLike, name: str | None = None) -> Tensor: ...
    def masked_fill(self, mask: ArrayLike, value: ArrayLike, name: str | None = None) -> Tensor: ...
    def masked_fill_(
        self, mask: ArrayLike, value: ArrayLike, name: str | None = None
    ) -> Tensor: ...
    def masked_scatter(
        self, mask: ArrayLike, source: ArrayLike, name: str | None = None
    ) -> Tensor: ...
    def masked_scatter_(
        self, mask: ArrayLike, source: ArrayLike, name: str | None = None
    ) -> Tensor: ...
    def masked_select(self, mask: ArrayLike, name: str | None = None) -> Tensor: ...
    def mean(
        self, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
    ) -> Tensor: ...
    def multiply(self, y: ArrayLike, name: str | None = None) -> Tensor: ...
    def negative(self, name: str | None = None) -> Tensor: ...
    def not_equal(self, y: ArrayLike, name: str | None = None) -> Tensor: ...
    def ones_like(self, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor: ...
    def prod(
        self, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
    ) -> Tensor: ...
    def put_along_axis(
        self,
        index: ArrayLike,
        values: ArrayLike,
        axis: SupportsIndex,
        reduce: ReduceOrAssign = "assign",
        include_self: builtins.bool = True,
        broadcast: builtins.bool = True,
    ) -> Tensor: ...
    def put_along_axis_(
        self,
        index: ArrayLike,
        values: ArrayLike,
        axis: SupportsIndex,
        reduce: ReduceOrAssign = "assign",
        include_self: builtins.bool = True,
        broadcast: builtins.bool = True,
    ) -> Tensor: ...
    def real(self, name: str | None = None) -> Tensor: ...
    @overload
    def reshape(self, shape: _Axes, name: str | None = None) -> Tensor: ...
    @overload
    def reshape(self, *shape: SupportsIndex, name: str | None = None) -> Tensor: ...
    def scatter(
        self,
        index: ArrayLike,
        updates: ArrayLike,
        overwrite: builtins.bool = True,
        axis: SupportsIndex = 0,
        reduce: Reduce = "sum",
        name: str | None = None,
        *,
        include_self: builtins.bool = False,
    ) -> Tensor: ...
    def scatter_(
        self,
        index: ArrayLike,
        updates: ArrayLike,
        overwrite: builtins.bool = True,
        axis: SupportsIndex = 0,
        reduce: Reduce = "sum",
        name: str | None = None,
        *,
        include_self: builtins.bool = False,
    ) -> Tensor: ...
    def scatter_nd_add(
        self, index: ArrayLike, updates: ArrayLike, name: str | None = None
    ) -> Tensor: ...
    def select_scatter(
        self, values: ArrayLike, axis: SupportsIndex, index: SupportsIndex, name: str | None = None
    ) -> Tensor: ...
    def select_scatter_(
        self, values: ArrayLike, axis: SupportsIndex, index: SupportsIndex, name: str | None = None
    ) -> Tensor: ...
    def slice_scatter(
        self,
        y: ArrayLike,
        axis: _Axes = 0,
        start: _Bounds = None,
        stop: _Bounds = None,
        step: _Bounds = 1,
        name: str | None = None,
    ) -> Tensor: ...
    def slice_scatter_(
        self,
        y: ArrayLike,
        axis: _Axes = 0,
        start: _Bounds = None,
        stop: _Bounds = None,
        step: _Bounds = 1,
        name: str | None = None,
    ) -> Tensor: ...
    @overload
    def squeeze(self, axis: _Axes | None = None, name: str | None = None) -> Tensor: ...
    @overload
    def squeeze(self, *axis: SupportsIndex, name: str | None = None) -> Tensor: ...
    def subtract(self, y: ArrayLike, name: str | None = None) -> Tensor: ...
    def sum(
        self, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
    ) -> Tensor: ...
    def take_along_axis(
        self, index: ArrayLike, axis: SupportsIndex, broadcast: builtins.bool = True
    ) -> Tensor: ...
    @overload
    def transpose(self, perm: _Axes | None = None, name: str | None = None) -> Tensor: ...
    @overload
    def transpose(self, *perm: SupportsIndex, name: str | None = None) -> Tensor: ...
    def tril(self, diagonal: SupportsIndex = 0, name: str | None = None) -> Tensor: ...
    def triu(self, diagonal: SupportsIndex = 0, name: str | None = None) -> Tensor: ...
    @overload
    def unsqueeze(self, axis: _Axes, name: str | None = None) -> Tensor: ...
    @overload
    def unsqueeze(self, *axis: SupportsIndex, name: str | None = None) -> Tensor: ...
    def where(self, x: ArrayLike, y: ArrayLike, name: str | None = None) -> Tensor: ...
    def zeros_like(self, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor: ...
    # methods: end
    stop_gradient: builtins.bool
    requires_grad: builtins.bool
    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor: ...
    def retain_grads(self) -> None: ...
    def retain_grad(self) -> None: ...
    @property
    def is_leaf(self) -> builtins.bool: ...
    @property
    def grad(self) -> Tensor | None: ...
    @grad.setter
    def grad(self, grad: Tensor | None) -> None: ...
    def clear_grad(self) -> None: ...
    def detach(self) -> Tensor: ...
    def backward(
        self, grad: ArrayLike | None = None, retain_graph: builtins.bool = False
    ) -> None: ...
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> _HookHandle: ...
    def __neg__(self, /) -> Tensor: ...
    def __getitem__(self, key: Any, /) -> Tensor: ...
    def __setitem__(self, key: Any, value: ArrayLike, /) -> None: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __add__(self, other: ArrayLike, /) -> Tensor: ...
    def __radd__(self, other: ArrayLike, /) -> Tensor: ...
    def __sub__(self, other: ArrayLike, /) -> Tensor: ...
    def __rsub__(self, other: ArrayLike, /) -> Tensor: ...
    def __mul__(self, other: ArrayLike, /) -> Tensor: ...
    def __rmul__(self, other: ArrayLike, /) -> Tensor: ...
    def __truediv__(self, other: ArrayLike, /) -> Tensor: ...
    def __rtruediv__(self, other: ArrayLike, /) -> Tensor: ...
    def __iadd__(self, other: ArrayLike, /) -> Self: ...
    def __isub__(self, other: ArrayLike, /) -> Self: ...
    def __imul__(self, other: ArrayLike, /) -> Self: ...
    def __itruediv__(self, other: ArrayLike, /) -> Self: ...
    def __lt__(self, other: ArrayLike, /) -> Tensor: ...
    def __le__(self, other: ArrayLike, /) -> Tensor: ...
    def __gt__(self, other: ArrayLike, /) -> Tensor: ...
    def __ge__(self, other: ArrayLike, /) -> Tensor: ...
    def __eq__(self, other: ArrayLike, /) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: ArrayLike, /) -> Tensor: ...  # type: ignore[override]

# functions: begin
@overload
def add(x: Tensor, y: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def add(x: _Foreign, y: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def add(x: PlainLike, y: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def add(x: ArrayLike, y: ArrayLike, name: str | None = None) -> Any: ...
@overload
def amax(
    x: Tensor, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> Tensor: ...
@overload
def amax(
    x: _Foreign, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> _Foreign: ...
@overload
def amax(
    x: PlainLike, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def amax(
    x: ArrayLike, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> Any: ...
@overload
def amin(
    x: Tensor, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> Tensor: ...
@overload
def amin(
    x: _Foreign, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> _Foreign: ...
@overload
def amin(
    x: PlainLike, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def amin(
    x: ArrayLike, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> Any: ...
def arange(
    start: Number = 0,
    end: Number | None = None,
    step: Number = 1,
    dtype: DTypeLike | None = None,
    *,
    device: str | None = None,
    name: str | None = None,
) -> Tensor: ...
@overload
def astype(x: Tensor, dtype: DTypeLike) -> Tensor: ...
@overload
def astype(x: _Foreign, dtype: DTypeLike) -> _Foreign: ...
@overload
def astype(x: PlainLike, dtype: DTypeLike) -> npt.NDArray[Any]: ...
@overload
def astype(x: ArrayLike, dtype: DTypeLike) -> Any: ...
@overload
def broadcast_to(x: Tensor, shape: _Axes, name: str | None = None) -> Tensor: ...
@overload
def broadcast_to(x: Tensor, *shape: SupportsIndex, name: str | None = None) -> Tensor: ...
@overload
def broadcast_to(x: _Foreign, shape: _Axes, name: str | None = None) -> _Foreign: ...
@overload
def broadcast_to(x: _Foreign, *shape: SupportsIndex, name: str | None = None) -> _Foreign: ...
@overload
def broadcast_to(x: PlainLike, shape: _Axes, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def broadcast_to(
    x: PlainLike, *shape: SupportsIndex, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def broadcast_to(x: ArrayLike, shape: _Axes, name: str | None = None) -> Any: ...
@overload
def broadcast_to(x: ArrayLike, *shape: SupportsIndex, name: str | None = None) -> Any: ...
@overload
def cast(x: Tensor, dtype: DTypeLike) -> Tensor: ...
@overload
def cast(x: _Foreign, dtype: DTypeLike) -> _Foreign: ...
@overload
def cast(x: PlainLike, dtype: DTypeLike) -> npt.NDArray[Any]: ...
@overload
def cast(x: ArrayLike, dtype: DTypeLike) -> Any: ...
@overload
def concat(x: Sequence[Tensor], axis: SupportsIndex = 0, name: str | None = None) -> Tensor: ...
@overload
def concat(x: Sequence[_Foreign], axis: SupportsIndex = 0, name: str | None = None) -> _Foreign: ...
@overload
def concat(
    x: Sequence[PlainLike], axis: SupportsIndex = 0, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def concat(x: Sequence[ArrayLike], axis: SupportsIndex = 0, name: str | None = None) -> Any: ...
@overload
def diagonal(
    x: Tensor,
    offset: SupportsIndex = 0,
    axis1: SupportsIndex = 0,
    axis2: SupportsIndex = 1,
    name: str | None = None,
) -> Tensor: ...
@overload
def diagonal(
    x: _Foreign,
    offset: SupportsIndex = 0,
    axis1: SupportsIndex = 0,
    axis2: SupportsIndex = 1,
    name: str | None = None,
) -> _Foreign: ...
@overload
def diagonal(
    x: PlainLike,
    offset: SupportsIndex = 0,
    axis1: SupportsIndex = 0,
    axis2: SupportsIndex = 1,
    name: str | None = None,
) -> npt.NDArray[Any]: ...
@overload
def diagonal(
    x: ArrayLike,
    offset: SupportsIndex = 0,
    axis1: SupportsIndex = 0,
    axis2: SupportsIndex = 1,
    name: str | None = None,
) -> Any: ...
@overload
def diagonal_scatter(
    input: Tensor,
    src: ArrayLike,
    offset: SupportsIndex = 0,
    axis1: SupportsIndex = 0,
    axis2: SupportsIndex = 1,
    name: str | None = None,
) -> Tensor: ...
@overload
def diagonal_scatter(
    input: _Foreign,
    src: ArrayLike,
    offset: SupportsIndex = 0,
    axis1: SupportsIndex = 0,
    axis2: SupportsIndex = 1,
    name: str | None = None,
) -> _Foreign: ...
@overload
def diagonal_scatter(
    input: PlainLike,
    src: PlainLike,
    offset: SupportsIndex = 0,
    axis1: SupportsIndex = 0,
    axis2: SupportsIndex = 1,
    name: str | None = None,
) -> npt.NDArray[Any]: ...
@overload
def diagonal_scatter(
    input: ArrayLike,
    src: ArrayLike,
    offset: SupportsIndex = 0,
    axis1: SupportsIndex = 0,
    axis2: SupportsIndex = 1,
    name: str | None = None,
) -> Any: ...
def diagonal_scatter_(
    input: _Target,
    src: ArrayLike,
    offset: SupportsIndex = 0,
    axis1: SupportsIndex = 0,
    axis2: SupportsIndex = 1,
    name: str | None = None,
) -> _Target: ...
@overload
def divide(x: Tensor, y: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def divide(x: _Foreign, y: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def divide(x: PlainLike, y: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def divide(x: ArrayLike, y: ArrayLike, name: str | None = None) -> Any: ...
@overload
def equal(x: Tensor, y: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def equal(x: _Foreign, y: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def equal(x: PlainLike, y: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def equal(x: ArrayLike, y: ArrayLike, name: str | None = None) -> Any: ...
@overload
def flatten(
    x: Tensor, start_axis: SupportsIndex = 0, stop_axis: SupportsIndex = -1, name: str | None = None
) -> Tensor: ...
@overload
def flatten(
    x: _Foreign,
    start_axis: SupportsIndex = 0,
    stop_axis: SupportsIndex = -1,
    name: str | None = None,
) -> _Foreign: ...
@overload
def flatten(
    x: PlainLike,
    start_axis: SupportsIndex = 0,
    stop_axis: SupportsIndex = -1,
    name: str | None = None,
) -> npt.NDArray[Any]: ...
@overload
def flatten(
    x: ArrayLike,
    start_axis: SupportsIndex = 0,
    stop_axis: SupportsIndex = -1,
    name: str | None = None,
) -> Any: ...
def full(
    shape: _Axes,
    fill_value: Number,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    *,
    device: str | None = None,
) -> Tensor: ...
@overload
def full_like(
    x: Tensor, fill_value: Number, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor: ...
@overload
def full_like(
    x: _Foreign, fill_value: Number, dtype: DTypeLike | None = None, name: str | None = None
) -> _Foreign: ...
@overload
def full_like(
    x: PlainLike, fill_value: Number, dtype: DTypeLike | None = None, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def full_like(
    x: ArrayLike, fill_value: Number, dtype: DTypeLike | None = None, name: str | None = None
) -> Any: ...
@overload
def gather_nd(x: Tensor, index: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def gather_nd(x: _Foreign, index: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def gather_nd(x: PlainLike, index: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def gather_nd(x: ArrayLike, index: ArrayLike, name: str | None = None) -> Any: ...
@overload
def greater_equal(x: Tensor, y: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def greater_equal(x: _Foreign, y: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def greater_equal(x: PlainLike, y: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def greater_equal(x: ArrayLike, y: ArrayLike, name: str | None = None) -> Any: ...
@overload
def greater_than(x: Tensor, y: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def greater_than(x: _Foreign, y: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def greater_than(x: PlainLike, y: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def greater_than(x: ArrayLike, y: ArrayLike, name: str | None = None) -> Any: ...
@overload
def imag(x: Tensor, name: str | None = None) -> Tensor: ...
@overload
def imag(x: _Foreign, name: str | None = None) -> _Foreign: ...
@overload
def imag(x: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def imag(x: ArrayLike, name: str | None = None) -> Any: ...
@overload
def index_add(
    x: Tensor, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
) -> Tensor: ...
@overload
def index_add(
    x: _Foreign, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
) -> _Foreign: ...
@overload
def index_add(
    x: PlainLike, index: PlainLike, axis: SupportsIndex, value: PlainLike, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def index_add(
    x: ArrayLike, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
) -> Any: ...
def index_add_(
    x: _Target, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
) -> _Target: ...
@overload
def index_copy(
    x: Tensor, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
) -> Tensor: ...
@overload
def index_copy(
    x: _Foreign, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
) -> _Foreign: ...
@overload
def index_copy(
    x: PlainLike, index: PlainLike, axis: SupportsIndex, value: PlainLike, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def index_copy(
    x: ArrayLike, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
) -> Any: ...
def index_copy_(
    x: _Target, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
) -> _Target: ...
@overload
def index_fill(
    x: Tensor, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
) -> Tensor: ...
@overload
def index_fill(
    x: _Foreign, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
) -> _Foreign: ...
@overload
def index_fill(
    x: PlainLike, index: PlainLike, axis: SupportsIndex, value: PlainLike, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def index_fill(
    x: ArrayLike, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
) -> Any: ...
def index_fill_(
    x: _Target, index: ArrayLike, axis: SupportsIndex, value: ArrayLike, name: str | None = None
) -> _Target: ...
@overload
def index_get(x: Tensor, indices: Sequence[ArrayLike], name: str | None = None) -> Tensor: ...
@overload
def index_get(x: _Foreign, indices: Sequence[ArrayLike], name: str | None = None) -> _Foreign: ...
@overload
def index_get(
    x: PlainLike, indices: Sequence[PlainLike], name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def index_get(x: ArrayLike, indices: Sequence[ArrayLike], name: str | None = None) -> Any: ...
@overload
def index_put(
    x: Tensor,
    indices: Sequence[ArrayLike],
    value: ArrayLike,
    accumulate: builtins.bool = False,
    name: str | None = None,
) -> Tensor: ...
@overload
def index_put(
    x: _Foreign,
    indices: Sequence[ArrayLike],
    value: ArrayLike,
    accumulate: builtins.bool = False,
    name: str | None = None,
) -> _Foreign: ...
@overload
def index_put(
    x: PlainLike,
    indices: Sequence[PlainLike],
    value: PlainLike,
    accumulate: builtins.bool = False,
    name: str | None = None,
) -> npt.NDArray[Any]: ...
@overload
def index_put(
    x: ArrayLike,
    indices: Sequence[ArrayLike],
    value: ArrayLike,
    accumulate: builtins.bool = False,
    name: str | None = None,
) -> Any: ...
def index_put_(
    x: _Target,
    indices: Sequence[ArrayLike],
    value: ArrayLike,
    accumulate: builtins.bool = False,
    name: str | None = None,
) -> _Target: ...
@overload
def index_select(
    x: Tensor, index: ArrayLike, axis: SupportsIndex = 0, name: str | None = None
) -> Tensor: ...
@overload
def index_select(
    x: _Foreign, index: ArrayLike, axis: SupportsIndex = 0, name: str | None = None
) -> _Foreign: ...
@overload
def index_select(
    x: PlainLike, index: PlainLike, axis: SupportsIndex = 0, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def index_select(
    x: ArrayLike, index: ArrayLike, axis: SupportsIndex = 0, name: str | None = None
) -> Any: ...
@overload
def less_equal(x: Tensor, y: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def less_equal(x: _Foreign, y: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def less_equal(x: PlainLike, y: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def less_equal(x: ArrayLike, y: ArrayLike, name: str | None = None) -> Any: ...
@overload
def less_than(x: Tensor, y: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def less_than(x: _Foreign, y: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def less_than(x: PlainLike, y: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def less_than(x: ArrayLike, y: ArrayLike, name: str | None = None) -> Any: ...
@overload
def masked_fill(
    x: Tensor, mask: ArrayLike, value: ArrayLike, name: str | None = None
) -> Tensor: ...
@overload
def masked_fill(
    x: _Foreign, mask: ArrayLike, value: ArrayLike, name: str | None = None
) -> _Foreign: ...
@overload
def masked_fill(
    x: PlainLike, mask: PlainLike, value: PlainLike, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def masked_fill(
    x: ArrayLike, mask: ArrayLike, value: ArrayLike, name: str | None = None
) -> Any: ...
def masked_fill_(
    x: _Target, mask: ArrayLike, value: ArrayLike, name: str | None = None
) -> _Target: ...
@overload
def masked_scatter(
    input: Tensor, mask: ArrayLike, source: ArrayLike, name: str | None = None
) -> Tensor: ...
@overload
def masked_scatter(
    input: _Foreign, mask: ArrayLike, source: ArrayLike, name: str | None = None
) -> _Foreign: ...
@overload
def masked_scatter(
    input: PlainLike, mask: PlainLike, source: PlainLike, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def masked_scatter(
    input: ArrayLike, mask: ArrayLike, source: ArrayLike, name: str | None = None
) -> Any: ...
def masked_scatter_(
    input: _Target, mask: ArrayLike, source: ArrayLike, name: str | None = None
) -> _Target: ...
@overload
def masked_select(x: Tensor, mask: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def masked_select(x: _Foreign, mask: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def masked_select(x: PlainLike, mask: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def masked_select(x: ArrayLike, mask: ArrayLike, name: str | None = None) -> Any: ...
@overload
def mean(
    x: Tensor, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> Tensor: ...
@overload
def mean(
    x: _Foreign, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> _Foreign: ...
@overload
def mean(
    x: PlainLike, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def mean(
    x: ArrayLike, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> Any: ...
@overload
def multiply(x: Tensor, y: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def multiply(x: _Foreign, y: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def multiply(x: PlainLike, y: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def multiply(x: ArrayLike, y: ArrayLike, name: str | None = None) -> Any: ...
@overload
def negative(x: Tensor, name: str | None = None) -> Tensor: ...
@overload
def negative(x: _Foreign, name: str | None = None) -> _Foreign: ...
@overload
def negative(x: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def negative(x: ArrayLike, name: str | None = None) -> Any: ...
@overload
def not_equal(x: Tensor, y: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def not_equal(x: _Foreign, y: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def not_equal(x: PlainLike, y: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def not_equal(x: ArrayLike, y: ArrayLike, name: str | None = None) -> Any: ...
@overload
def ones(
    shape: _Axes,
    dtype: DTypeLike = "float32",
    name: str | None = None,
    *,
    device: str | None = None,
) -> Tensor: ...
@overload
def ones(
    *shape: SupportsIndex,
    dtype: DTypeLike = "float32",
    name: str | None = None,
    device: str | None = None,
) -> Tensor: ...
@overload
def ones_like(x: Tensor, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor: ...
@overload
def ones_like(x: _Foreign, dtype: DTypeLike | None = None, name: str | None = None) -> _Foreign: ...
@overload
def ones_like(
    x: PlainLike, dtype: DTypeLike | None = None, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def ones_like(x: ArrayLike, dtype: DTypeLike | None = None, name: str | None = None) -> Any: ...
@overload
def prod(
    x: Tensor, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> Tensor: ...
@overload
def prod(
    x: _Foreign, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> _Foreign: ...
@overload
def prod(
    x: PlainLike, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def prod(
    x: ArrayLike, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> Any: ...
@overload
def put_along_axis(
    x: Tensor,
    index: ArrayLike,
    values: ArrayLike,
    axis: SupportsIndex,
    reduce: ReduceOrAssign = "assign",
    include_self: builtins.bool = True,
    broadcast: builtins.bool = True,
) -> Tensor: ...
@overload
def put_along_axis(
    x: _Foreign,
    index: ArrayLike,
    values: ArrayLike,
    axis: SupportsIndex,
    reduce: ReduceOrAssign = "assign",
    include_self: builtins.bool = True,
    broadcast: builtins.bool = True,
) -> _Foreign: ...
@overload
def put_along_axis(
    x: PlainLike,
    index: PlainLike,
    values: PlainLike,
    axis: SupportsIndex,
    reduce: ReduceOrAssign = "assign",
    include_self: builtins.bool = True,
    broadcast: builtins.bool = True,
) -> npt.NDArray[Any]: ...
@overload
def put_along_axis(
    x: ArrayLike,
    index: ArrayLike,
    values: ArrayLike,
    axis: SupportsIndex,
    reduce: ReduceOrAssign = "assign",
    include_self: builtins.bool = True,
    broadcast: builtins.bool = True,
) -> Any: ...
def put_along_axis_(
    x: _Target,
    index: ArrayLike,
    values: ArrayLike,
    axis: SupportsIndex,
    reduce: ReduceOrAssign = "assign",
    include_self: builtins.bool = True,
    broadcast: builtins.bool = True,
) -> _Target: ...
@overload
def real(x: Tensor, name: str | None = None) -> Tensor: ...
@overload
def real(x: _Foreign, name: str | None = None) -> _Foreign: ...
@overload
def real(x: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def real(x: ArrayLike, name: str | None = None) -> Any: ...
@overload
def reshape(x: Tensor, shape: _Axes, name: str | None = None) -> Tensor: ...
@overload
def reshape(x: Tensor, *shape: SupportsIndex, name: str | None = None) -> Tensor: ...
@overload
def reshape(x: _Foreign, shape: _Axes, name: str | None = None) -> _Foreign: ...
@overload
def reshape(x: _Foreign, *shape: SupportsIndex, name: str | None = None) -> _Foreign: ...
@overload
def reshape(x: PlainLike, shape: _Axes, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def reshape(x: PlainLike, *shape: SupportsIndex, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def reshape(x: ArrayLike, shape: _Axes, name: str | None = None) -> Any: ...
@overload
def reshape(x: ArrayLike, *shape: SupportsIndex, name: str | None = None) -> Any: ...
@overload
def scatter(
    x: Tensor,
    index: ArrayLike,
    updates: ArrayLike,
    overwrite: builtins.bool = True,
    axis: SupportsIndex = 0,
    reduce: Reduce = "sum",
    name: str | None = None,
    *,
    include_self: builtins.bool = False,
) -> Tensor: ...
@overload
def scatter(
    x: _Foreign,
    index: ArrayLike,
    updates: ArrayLike,
    overwrite: builtins.bool = True,
    axis: SupportsIndex = 0,
    reduce: Reduce = "sum",
    name: str | None = None,
    *,
    include_self: builtins.bool = False,
) -> _Foreign: ...
@overload
def scatter(
    x: PlainLike,
    index: PlainLike,
    updates: PlainLike,
    overwrite: builtins.bool = True,
    axis: SupportsIndex = 0,
    reduce: Reduce = "sum",
    name: str | None = None,
    *,
    include_self: builtins.bool = False,
) -> npt.NDArray[Any]: ...
@overload
def scatter(
    x: ArrayLike,
    index: ArrayLike,
    updates: ArrayLike,
    overwrite: builtins.bool = True,
    axis: SupportsIndex = 0,
    reduce: Reduce = "sum",
    name: str | None = None,
    *,
    include_self: builtins.bool = False,
) -> Any: ...
def scatter_(
    x: _Target,
    index: ArrayLike,
    updates: ArrayLike,
    overwrite: builtins.bool = True,
    axis: SupportsIndex = 0,
    reduce: Reduce = "sum",
    name: str | None = None,
    *,
    include_self: builtins.bool = False,
) -> _Target: ...
@overload
def scatter_nd(
    index: Tensor, updates: ArrayLike, shape: _Axes, name: str | None = None
) -> Tensor: ...
@overload
def scatter_nd(
    index: Tensor, updates: ArrayLike, *shape: SupportsIndex, name: str | None = None
) -> Tensor: ...
@overload
def scatter_nd(
    index: _Foreign, updates: ArrayLike, shape: _Axes, name: str | None = None
) -> _Foreign: ...
@overload
def scatter_nd(
    index: _Foreign, updates: ArrayLike, *shape: SupportsIndex, name: str | None = None
) -> _Foreign: ...
@overload
def scatter_nd(
    index: PlainLike, updates: PlainLike, shape: _Axes, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def scatter_nd(
    index: PlainLike, updates: PlainLike, *shape: SupportsIndex, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def scatter_nd(
    index: ArrayLike, updates: ArrayLike, shape: _Axes, name: str | None = None
) -> Any: ...
@overload
def scatter_nd(
    index: ArrayLike, updates: ArrayLike, *shape: SupportsIndex, name: str | None = None
) -> Any: ...
@overload
def scatter_nd_add(
    x: Tensor, index: ArrayLike, updates: ArrayLike, name: str | None = None
) -> Tensor: ...
@overload
def scatter_nd_add(
    x: _Foreign, index: ArrayLike, updates: ArrayLike, name: str | None = None
) -> _Foreign: ...
@overload
def scatter_nd_add(
    x: PlainLike, index: PlainLike, updates: PlainLike, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def scatter_nd_add(
    x: ArrayLike, index: ArrayLike, updates: ArrayLike, name: str | None = None
) -> Any: ...
@overload
def select_scatter(
    x: Tensor, values: ArrayLike, axis: SupportsIndex, index: SupportsIndex, name: str | None = None
) -> Tensor: ...
@overload
def select_scatter(
    x: _Foreign,
    values: ArrayLike,
    axis: SupportsIndex,
    index: SupportsIndex,
    name: str | None = None,
) -> _Foreign: ...
@overload
def select_scatter(
    x: PlainLike,
    values: PlainLike,
    axis: SupportsIndex,
    index: SupportsIndex,
    name: str | None = None,
) -> npt.NDArray[Any]: ...
@overload
def select_scatter(
    x: ArrayLike,
    values: ArrayLike,
    axis: SupportsIndex,
    index: SupportsIndex,
    name: str | None = None,
) -> Any: ...
def select_scatter_(
    x: _Target,
    values: ArrayLike,
    axis: SupportsIndex,
    index: SupportsIndex,
    name: str | None = None,
) -> _Target: ...
@overload
def slice_scatter(
    x: Tensor,
    y: ArrayLike,
    axis: _Axes = 0,
    start: _Bounds = None,
    stop: _Bounds = None,
    step: _Bounds = 1,
    name: str | None = None,
) -> Tensor: ...
@overload
def slice_scatter(
    x: _Foreign,
    y: ArrayLike,
    axis: _Axes = 0,
    start: _Bounds = None,
    stop: _Bounds = None,
    step: _Bounds = 1,
    name: str | None = None,
) -> _Foreign: ...
@overload
def slice_scatter(
    x: PlainLike,
    y: PlainLike,
    axis: _Axes = 0,
    start: _Bounds = None,
    stop: _Bounds = None,
    step: _Bounds = 1,
    name: str | None = None,
) -> npt.NDArray[Any]: ...
@overload
def slice_scatter(
    x: ArrayLike,
    y: ArrayLike,
    axis: _Axes = 0,
    start: _Bounds = None,
    stop: _Bounds = None,
    step: _Bounds = 1,
    name: str | None = None,
) -> Any: ...
def slice_scatter_(
    x: _Target,
    y: ArrayLike,
    axis: _Axes = 0,
    start: _Bounds = None,
    stop: _Bounds = None,
    step: _Bounds = 1,
    name: str | None = None,
) -> _Target: ...
@overload
def squeeze(x: Tensor, axis: _Axes | None = None, name: str | None = None) -> Tensor: ...
@overload
def squeeze(x: Tensor, *axis: SupportsIndex, name: str | None = None) -> Tensor: ...
@overload
def squeeze(x: _Foreign, axis: _Axes | None = None, name: str | None = None) -> _Foreign: ...
@overload
def squeeze(x: _Foreign, *axis: SupportsIndex, name: str | None = None) -> _Foreign: ...
@overload
def squeeze(
    x: PlainLike, axis: _Axes | None = None, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def squeeze(x: PlainLike, *axis: SupportsIndex, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def squeeze(x: ArrayLike, axis: _Axes | None = None, name: str | None = None) -> Any: ...
@overload
def squeeze(x: ArrayLike, *axis: SupportsIndex, name: str | None = None) -> Any: ...
@overload
def stack(x: Sequence[Tensor], axis: SupportsIndex = 0, name: str | None = None) -> Tensor: ...
@overload
def stack(x: Sequence[_Foreign], axis: SupportsIndex = 0, name: str | None = None) -> _Foreign: ...
@overload
def stack(
    x: Sequence[PlainLike], axis: SupportsIndex = 0, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def stack(x: Sequence[ArrayLike], axis: SupportsIndex = 0, name: str | None = None) -> Any: ...
@overload
def subtract(x: Tensor, y: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def subtract(x: _Foreign, y: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def subtract(x: PlainLike, y: PlainLike, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def subtract(x: ArrayLike, y: ArrayLike, name: str | None = None) -> Any: ...
@overload
def sum(
    x: Tensor, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> Tensor: ...
@overload
def sum(
    x: _Foreign, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> _Foreign: ...
@overload
def sum(
    x: PlainLike, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def sum(
    x: ArrayLike, axis: _Axes | None = None, keepdim: builtins.bool = False, name: str | None = None
) -> Any: ...
@overload
def take_along_axis(
    x: Tensor, index: ArrayLike, axis: SupportsIndex, broadcast: builtins.bool = True
) -> Tensor: ...
@overload
def take_along_axis(
    x: _Foreign, index: ArrayLike, axis: SupportsIndex, broadcast: builtins.bool = True
) -> _Foreign: ...
@overload
def take_along_axis(
    x: PlainLike, index: PlainLike, axis: SupportsIndex, broadcast: builtins.bool = True
) -> npt.NDArray[Any]: ...
@overload
def take_along_axis(
    x: ArrayLike, index: ArrayLike, axis: SupportsIndex, broadcast: builtins.bool = True
) -> Any: ...
@overload
def transpose(x: Tensor, perm: _Axes | None = None, name: str | None = None) -> Tensor: ...
@overload
def transpose(x: Tensor, *perm: SupportsIndex, name: str | None = None) -> Tensor: ...
@overload
def transpose(x: _Foreign, perm: _Axes | None = None, name: str | None = None) -> _Foreign: ...
@overload
def transpose(x: _Foreign, *perm: SupportsIndex, name: str | None = None) -> _Foreign: ...
@overload
def transpose(
    x: PlainLike, perm: _Axes | None = None, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def transpose(x: PlainLike, *perm: SupportsIndex, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def transpose(x: ArrayLike, perm: _Axes | None = None, name: str | None = None) -> Any: ...
@overload
def transpose(x: ArrayLike, *perm: SupportsIndex, name: str | None = None) -> Any: ...
@overload
def tril(x: Tensor, diagonal: SupportsIndex = 0, name: str | None = None) -> Tensor: ...
@overload
def tril(x: _Foreign, diagonal: SupportsIndex = 0, name: str | None = None) -> _Foreign: ...
@overload
def tril(
    x: PlainLike, diagonal: SupportsIndex = 0, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def tril(x: ArrayLike, diagonal: SupportsIndex = 0, name: str | None = None) -> Any: ...
def tril_indices(
    row: SupportsIndex,
    col: SupportsIndex | None = None,
    offset: SupportsIndex = 0,
    dtype: DTypeLike | None = None,
    *,
    device: str | None = None,
) -> Tensor: ...
@overload
def triu(x: Tensor, diagonal: SupportsIndex = 0, name: str | None = None) -> Tensor: ...
@overload
def triu(x: _Foreign, diagonal: SupportsIndex = 0, name: str | None = None) -> _Foreign: ...
@overload
def triu(
    x: PlainLike, diagonal: SupportsIndex = 0, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def triu(x: ArrayLike, diagonal: SupportsIndex = 0, name: str | None = None) -> Any: ...
def triu_indices(
    row: SupportsIndex,
    col: SupportsIndex | None = None,
    offset: SupportsIndex = 0,
    dtype: DTypeLike | None = None,
    *,
    device: str | None = None,
) -> Tensor: ...
@overload
def unsqueeze(x: Tensor, axis: _Axes, name: str | None = None) -> Tensor: ...
@overload
def unsqueeze(x: Tensor, *axis: SupportsIndex, name: str | None = None) -> Tensor: ...
@overload
def unsqueeze(x: _Foreign, axis: _Axes, name: str | None = None) -> _Foreign: ...
@overload
def unsqueeze(x: _Foreign, *axis: SupportsIndex, name: str | None = None) -> _Foreign: ...
@overload
def unsqueeze(x: PlainLike, axis: _Axes, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def unsqueeze(x: PlainLike, *axis: SupportsIndex, name: str | None = None) -> npt.NDArray[Any]: ...
@overload
def unsqueeze(x: ArrayLike, axis: _Axes, name: str | None = None) -> Any: ...
@overload
def unsqueeze(x: ArrayLike, *axis: SupportsIndex, name: str | None = None) -> Any: ...
@overload
def where(condition: Tensor, x: ArrayLike, y: ArrayLike, name: str | None = None) -> Tensor: ...
@overload
def where(condition: _Foreign, x: ArrayLike, y: ArrayLike, name: str | None = None) -> _Foreign: ...
@overload
def where(
    condition: PlainLike, x: PlainLike, y: PlainLike, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, name: str | None = None) -> Any: ...
@overload
def zeros(
    shape: _Axes,
    dtype: DTypeLike = "float32",
    name: str | None = None,
    *,
    device: str | None = None,
) -> Tensor: ...
@overload
def zeros(
    *shape: SupportsIndex,
    dtype: DTypeLike = "float32",
    name: str | None = None,
    device: str | None = None,
) -> Tensor: ...
@overload
def zeros_like(x: Tensor, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor: ...
@overload
def zeros_like(
    x: _Foreign, dtype: DTypeLike | None = None, name: str | None = None
) -> _Foreign: ...
@overload
def zeros_like(
    x: PlainLike, dtype: DTypeLike | None = None, name: str | None = None
) -> npt.NDArray[Any]: ...
@overload
def zeros_like(x: ArrayLike, dtype: DTypeLike | None = None, name: str | None = None) -> Any: ...

# functions: end
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: ArrayLike | Sequence[ArrayLike | None] | None = None,
    retain_graph: builtins.bool | None = None,
    create_graph: builtins.bool = False,
    allow_unused: builtins.bool = False,
) -> list[Any]: ...
def is_grad_enabled() -> builtins.bool: ...
def _set_grad_enabled(enabled: builtins.bool) -> builtins.bool: ...
def to_tensor(
    data: ArrayLike,
    dtype: DTypeLike | None = None,
    stop_gradient: builtins.bool = True,
    *,
    device: str | None = None,
) -> Tensor: ...
def from_numpy(array: npt.NDArray[Any]) -> Tensor: ...
def from_dlpack(x: SupportsDLPack | CapsuleType) -> Tensor: ...
def set_num_threads(n: SupportsIndex) -> None: ...
def get_num_threads() -> int: ...
def memory_stats() -> _MemoryStats: ...
def empty_cache() -> None: ...
def set_cache_limit(bytes: SupportsIndex) -> None: ...
def set_device(device: str) -> None: ...
def get_device() -> str: ...
def devices() -> list[_Device]: ...
def synchronize() -> None: ...
def gpu_memory_stats() -> _GpuMemoryStats | None: ...
def _adopt(x: Tensor, cls: type[Any], /) -> Any: ...
def _rebuild(
    data: bytes, dtype: str, shape: Sequence[int], stop_gradient: builtins.bool = True
) -> Tensor: ...
def _rebuild_program(data: bytes) -> Program: ...

@final
class Argument:
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def required(self) -> builtins.bool: ...
    @property
    def default(self) -> Any: ...
    @property
    def keyword_only(self) -> builtins.bool: ...
    @property
    def aliases(self) -> list[str]: ...

@final
class Operation:
    @property
    def name(self) -> str: ...
    @property
    def twin(self) -> str | None: ...
    @property
    def arguments(self) -> list[Argument]: ...
    @property
    def gradients(self) -> list[str]: ...
    @property
    def gathers(self) -> str | None: ...
    @property
    def returns(self) -> str: ...
    @property
    def is_method(self) -> builtins.bool: ...
    @property
    def summary(self) -> str: ...
    @property
    def doc(self) -> str: ...

def operations() -> list[Operation]: ...

_Spec: TypeAlias = tuple[str, Sequence[int | None]]

@final
class Function:
    def __new__(cls, name: str, values: tuple[Any, ...]) -> Self: ...
    @staticmethod
    def parse(text: str) -> Function: ...
    @property
    def text(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def differentiable(self) -> tuple[builtins.bool, ...]: ...
    @staticmethod
    def chain(steps: Sequence[Function]) -> Function: ...
    def vjp(self, wanted: Sequence[builtins.bool]) -> Function: ...
    def vmap(self, axes: Sequence[int | None]) -> Function: ...
    def needs(self, specs: Sequence[_Spec]) -> tuple[int, ...]: ...
    def infer(
        self, specs: Sequence[_Spec]
    ) -> list[tuple[str, list[int | tuple[int, int] | None]]]: ...
    def call(self, tensors: Sequence[Any]) -> list[Any]: ...
    def write(self, tensors: Sequence[Any]) -> None: ...
    @property
    def wanted(self) -> tuple[builtins.bool, ...]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> builtins.bool: ...

@final
class Recording:
    @staticmethod
    def enter_torch(ctx: Any, recording: Recording, *_sources: Any) -> Any: ...
    @staticmethod
    def enter_paddle(ctx: Any, recording: Recording, _sources: list[Any]) -> Any: ...
    @property
    def vjp(self) -> Function: ...
    def inputs(self, saved: tuple[Any, ...]) -> list[Any]: ...
    def gradients(self, saved: tuple[Any, ...], grad: Any) -> list[Any] | None: ...

@final
class Kernel:
    def __new__(
        cls,
        name: str,
        places: Sequence[int],
        names: Sequence[str],
        other: Any,
        skips: int,
        records: builtins.bool,
    ) -> Self: ...
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...

def _call_chain(other: Any, text: str, inputs: Sequence[Any]) -> Any: ...
def _argument(name: str, argument: int, value: Any, like: str | None = None) -> Tensor: ...
def _library(object: object) -> str | None: ...
def _use_openmp(path: str) -> builtins.bool: ...
def _recorded(
    call: Callable[[], object], in_turn: builtins.bool
) -> tuple[int, list[list[int]]]: ...
def _xla_handler() -> Any: ...
def _xla_version() -> tuple[int, int]: ...

@final
class Program:
    def __new__(cls) -> Self: ...
    @property
    def inputs(self) -> list[str]: ...
    @property
    def outputs(self) -> list[str]: ...
    def data(
        self, name: str, shape: Sequence[int | None], dtype: DTypeLike | None = None
    ) -> Tensor: ...
    def run(
        self,
        feed: dict[str, Any] | None = None,
        fetch_list: Sequence[Tensor | str] | Tensor | str | None = None,
        donate: builtins.bool = False,
        return_numpy: builtins.bool = True,
        device: str | None = None,
    ) -> list[Any]: ...
    def plan(
        self,
        fetch_list: Sequence[Tensor | str] | Tensor | str | None = None,
        donate: builtins.bool = False,
    ) -> Plan: ...
    def explain(
        self,
        fetch_list: Sequence[Tensor | str] | Tensor | str | None = None,
        donate: builtins.bool = False,
    ) -> str: ...
    def to_svg(self) -> str: ...
    def _repr_svg_(self) -> str: ...
    def set_outputs(self, outputs: dict[str, Tensor]) -> None: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    @staticmethod
    def load(path: str | PathLike[str]) -> Program: ...
    def __copy__(self) -> Program: ...
    def __deepcopy__(self, memo: Any, /) -> Program: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> builtins.bool: ...

@final
class Plan:
    @property
    def copies_saved(self) -> int: ...
    @property
    def peak_memory(self) -> int | None: ...
    @property
    def inputs(self) -> list[str]: ...

@final
class _Traces:
    def __new__(cls, donate: builtins.bool) -> Self: ...
    def call(self, args: Sequence[Any]) -> Any: ...
    def find(
        self,
        args: Sequence[Any],
        constants: Any,
        function: Callable[[list[Tensor]], tuple[list[Tensor], Callable[[list[Any]], Any] | None]],
    ) -> _Trace: ...
    def run_itself(
        self,
        args: Sequence[Any],
        function: Callable[[list[Tensor]], tuple[list[Tensor], Callable[[list[Any]], Any] | None]],
    ) -> Any: ...
    def explain(self) -> str: ...

@final
class _Trace:
    def run(self, args: Sequence[Any]) -> Any: ...
