"""The structs of the DLPack C header for ctypes."""

from __future__ import annotations

import ctypes

VERSIONED, LEGACY, TABLE = b"dltensor_versioned", b"dltensor", b"dlpack_exchange_api"


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Legacy(ctypes.Structure):
    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


class Api(ctypes.Structure):
    """DLPack's table of C functions."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p),
        ("describe", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    )


# The types of the functions of the table. Most are called with the GIL held.
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
Allocate = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(DLTensor),
    ctypes.POINTER(ctypes.POINTER(Versioned)),
    ctypes.c_void_p,
    SetError,
)
FromObject = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Versioned))
)
ToObject = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(Versioned), ctypes.POINTER(ctypes.py_object)
)
Describe = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
Stream = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


python = ctypes.pythonapi
python.PyCapsule_GetName.restype = ctypes.c_char_p
python.PyCapsule_GetName.argtypes = [ctypes.py_object]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def name_of(capsule) -> bytes:
    return python.PyCapsule_GetName(capsule)


def inside(capsule):
    name = name_of(capsule)
    form = Versioned if name == VERSIONED else Legacy
    return form.from_address(python.PyCapsule_GetPointer(capsule, name))


def table_of(cls: type) -> Api:
    """The table of a class."""
    return Api.from_address(python.PyCapsule_GetPointer(cls.__dlpack_c_exchange_api__, TABLE))
