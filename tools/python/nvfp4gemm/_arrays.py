# SPDX-License-Identifier: MIT
"""NumPy arrays and torch tensors behind the few questions that the calls ask. Neither package is
imported here: whoever has an array of one has imported it."""
import sys

from nvfp4gemm import _optional
from nvfp4gemm.abi import BF16, F16, F32

_TYPE = {"float16": F16, "bfloat16": BF16, "float32": F32}
_NAME = {number: name for name, number in _TYPE.items()}


class Numpy:
    @staticmethod
    def compiling():
        return False

    @staticmethod
    def address(x):
        return x.ctypes.data

    @staticmethod
    def strides(x):
        return tuple(s // x.itemsize for s in x.strides)

    @staticmethod
    def type_of(dtype):
        return _TYPE.get(_np().dtype(dtype).name)

    @staticmethod
    def dtype(number):
        if number == BF16:
            try:
                return _optional.ml_dtypes.bfloat16
            except ImportError:
                raise TypeError("NumPy has bfloat16 through the package ml_dtypes alone") from None
        return _NAME[number]

    @staticmethod
    def empty(shape, number, _like):
        return _np().empty(shape, Numpy.dtype(number))

    @staticmethod
    def zero_bytes(shape, _like):
        return _np().zeros(shape, "uint8")

    @staticmethod
    def rows_of_f32(x):
        return _np().ascontiguousarray(x, "float32")

    @staticmethod
    def cast(x, number):
        return x.astype(Numpy.dtype(number))

    @staticmethod
    def as_bytes(x):
        return _np().ascontiguousarray(x).view("uint8")

    @staticmethod
    def copy(x):
        """The elements one after the other."""
        return _np().array(x, order="C")

    @staticmethod
    def size(x):
        return x.size

    @staticmethod
    def padded(x, columns):
        """x [rows, fewer] with rows that start at multiples of 16 bytes."""
        if x.shape[1] == columns and x.flags.c_contiguous:
            return x
        out = _np().zeros((x.shape[0], columns), "uint8")
        out[:, :x.shape[1]] = x
        return out

    @staticmethod
    def item(x):
        return x.item() if isinstance(x, _np().ndarray) else x

    @staticmethod
    def largest_finite(x):
        size = abs(x)
        return float(size.max(initial=0, where=_np().isfinite(size)))


class Torch:
    """Tensors, on the CPU or a CUDA device."""

    @staticmethod
    def compiling():
        """Under torch.compile, where the calls are operators."""
        return _torch().compiler.is_compiling()

    @staticmethod
    def address(x):
        return x.data_ptr()

    @staticmethod
    def strides(x):
        return x.stride()

    @staticmethod
    def type_of(dtype, numbers={}):
        if dtype not in numbers:
            numbers[dtype] = _TYPE.get(str(dtype).removeprefix("torch."))
        return numbers[dtype]

    @staticmethod
    def dtype(number):
        return getattr(_torch(), _NAME[number])

    @staticmethod
    def empty(shape, number, like):
        return _torch().empty(shape, dtype=Torch.dtype(number), device=like.device)

    @staticmethod
    def zero_bytes(shape, like):
        return _torch().zeros(shape, dtype=_torch().uint8, device=like.device)

    @staticmethod
    def rows_of_f32(x):
        return x.detach().to(_torch().float32).contiguous()

    @staticmethod
    def cast(x, number):
        return x.to(Torch.dtype(number))

    @staticmethod
    def as_bytes(x):
        return x.contiguous().view(_torch().uint8)

    @staticmethod
    def copy(x):
        return x.clone(memory_format=_torch().contiguous_format)

    @staticmethod
    def size(x):
        return x.numel()

    @staticmethod
    def padded(x, columns):
        if x.shape[1] == columns and x.is_contiguous():
            return x
        out = x.new_zeros((x.shape[0], columns))
        out[:, :x.shape[1]] = x
        return out

    @staticmethod
    def item(x):
        return x.item() if isinstance(x, _torch().Tensor) else x

    @staticmethod
    def largest_finite(x):
        size = x.abs()
        size = size[size.isfinite()]
        return float(size.max()) if size.numel() else 0.0


def _np():
    return sys.modules["numpy"]


def _torch():
    return sys.modules["torch"]


def arrays_of(x, what):
    """Numpy or Torch, by what x is."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(x, torch.Tensor):
        return Torch
    if numpy is not None and isinstance(x, numpy.ndarray):
        return Numpy
    raise TypeError(f"{what} is {type(x).__name__}; expected a NumPy array or a torch tensor")


def on_gpu(x):
    return getattr(x, "is_cuda", False)
