"""The exceptions that Inlay raises: each is an `InlayError` and the built-in one of its kind."""


class InlayError(Exception):
    """Every error that Inlay raises."""


class InlayTypeError(InlayError, TypeError):
    """An argument is of a type or dtype that the operation does not take."""


class InlayValueError(InlayError, ValueError):
    """An argument has a shape or a value that the operation does not take."""


class InlayIndexError(InlayError, IndexError):
    """An index or an axis is out of range."""


class InlayRuntimeError(InlayError, RuntimeError):
    """The operation could not be carried out, for instance for lack of memory."""


class InlayBufferError(InlayError, BufferError):
    """Memory can't be shared in the way that was asked for."""
