"""The exceptions that Inlay raises. Each is an `InlayError` and a built-in exception."""


class InlayError(Exception):
    """The base class of all exceptions that Inlay raises."""


class InlayTypeError(InlayError, TypeError):
    """An argument has a type or dtype that the operation does not accept."""


class InlayValueError(InlayError, ValueError):
    """An argument has a shape or a value that the operation does not accept."""


class InlayIndexError(InlayError, IndexError):
    """An index or an axis is out of range."""


class InlayRuntimeError(InlayError, RuntimeError):
    """The operation could not be executed."""


class InlayMemoryError(InlayError, MemoryError):
    """Memory ran out, or a tensor is larger than its device allows."""


class InlayBufferError(InlayError, BufferError):
    """Memory can't be shared in the requested way."""


class InlayReplacedError(InlayRuntimeError):
    """The memory of a torch tensor was replaced while a call used the tensor."""
