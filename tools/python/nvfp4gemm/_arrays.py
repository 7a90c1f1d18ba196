# SPDX-License-Identifier: MIT
"""One interface to NumPy arrays and torch tensors, with the few functions that the calls need. This
module imports neither package: a caller who has an array has imported its package."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from nvfp4gemm import _optional
from nvfp4gemm._types import Array, Arrays
from nvfp4gemm.abi import BF16, F16, F32

_TYPE = {"float16": F16, "bfloat16": BF16, "float32": F32}
_NAME = {number: name for name, number in _TYPE.items()}
_STANDING_FOR_TENSORS = (("torch._subclasses.fake_tensor", "FakeTensor"),
                         ("torch._subclasses.functional_tensor", "FunctionalTensor"))


def _reach(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """(lowest, highest) offset that the strides reach from the first element, in the unit of the
    strides. The shape is not empty."""
    steps = [(n - 1) * step for n, step in zip(shape, strides)]
    return sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)


def span(x: Array) -> tuple[int, int]:
    """(begin, end) address of the bytes from the first element of a tensor to its last one; (0, 0)
    if it has none."""
    if x.numel() == 0:
        return 0, 0
    low, high = _reach(x.shape, x.stride())
    return (x.data_ptr() + low * x.element_size(), x.data_ptr() + (high + 1) * x.element_size())


class Numpy:
    NAME = "NumPy"
    resizes_in_place = True

    @staticmethod
    def compiling() -> bool:
        return False

    @staticmethod
    def observed() -> bool:
        return False

    @staticmethod
    def traced(x: Array) -> bool:
        return False

    @staticmethod
    def autocasts(x: Array) -> bool:
        return False

    @staticmethod
    def first_with_gradient(*operands: Array | None) -> int | None:
        return None

    @staticmethod
    def first_with_tangent(*operands: Array | None) -> int | None:
        return None

    @staticmethod
    def plain(x: Array, what: str) -> Array:
        """x as a plain ndarray. Masked arrays are refused."""
        if type(x) is _np().ndarray:
            return x
        if isinstance(x, _np().ma.MaskedArray):
            raise TypeError(f"{what} is a masked array, whose mask would be lost; expected one "
                            "without, as filled() makes it")
        return x.view(_np().ndarray)

    @staticmethod
    def dense(x: Array, _device: Any) -> bool:
        """A fast check that x is a plain contiguous array that a GPU can read. False if that is not
        certain."""
        return False

    @staticmethod
    def held(x: Array) -> bool:
        """Whether x is inside the memory that it is a view of, as far as NumPy knows the size of
        that memory."""
        if x.size == 0:
            return True
        owner = x
        while getattr(owner, "base", None) is not None:
            owner = owner.base
        if owner is x or hasattr(owner, "__dlpack__") and not isinstance(owner, _np().ndarray):
            return True
        try:
            memory = owner if isinstance(owner, _np().ndarray) else _np().frombuffer(owner, "uint8")
        except (TypeError, ValueError, BufferError, AttributeError):
            return True  # the size of this memory is not known
        low, high = _reach(x.shape, x.strides)
        begin = x.ctypes.data - memory.ctypes.data
        return begin + low >= 0 and begin + high + x.itemsize <= memory.nbytes

    @staticmethod
    def in_order(x: Array) -> bool:
        """Whether elements have this machine's byte order and no pending negation (torch's neg
        bit)."""
        return x.dtype.isnative

    @staticmethod
    def device(x: Array) -> Any:
        return "cpu"

    @staticmethod
    def writable(x: Array) -> bool:
        return x.flags.writeable

    @staticmethod
    def written(x: Array) -> None:
        """Records that the elements of x have changed, for tools that track that."""

    @staticmethod
    def address(x: Array) -> int:
        return x.ctypes.data

    @staticmethod
    def strides(x: Array) -> tuple[int, ...]:
        """Strides in elements. A byte stride that is not a multiple of the element's size is
        returned as 0, like the stride of a repeated row. Callers treat both as not contiguous."""
        return tuple(0 if s % x.itemsize else s // x.itemsize for s in x.strides)

    @staticmethod
    def itemsize(x: Array) -> int:
        return x.itemsize

    @staticmethod
    def type_of(dtype: Any) -> int | None:
        try:
            return _TYPE.get(_np().dtype(dtype).name)
        except TypeError:
            return None

    @staticmethod
    def bytes_type() -> Any:
        return "uint8"

    @staticmethod
    def is_bytes(dtype: Any) -> bool:
        return dtype == "uint8"

    @staticmethod
    def is_int32(dtype: Any) -> bool:
        return _np().dtype(dtype).name == "int32"

    @staticmethod
    def is_int64(dtype: Any) -> bool:
        return _np().dtype(dtype).name == "int64"

    @staticmethod
    def as_int32(x: Array) -> Array:
        """Values outside the range of int32 are clamped."""
        return x.clip(-1, 2**31 - 1).astype("int32")

    @staticmethod
    def dtype(number: int) -> Any:
        if number == BF16:
            try:
                return _optional.ml_dtypes.bfloat16
            except ImportError:
                raise TypeError("NumPy has bfloat16 through the package ml_dtypes alone") from None
        return _NAME[number]

    @staticmethod
    def empty(shape: Sequence[int], number: int, _like: Array) -> Array:
        return _np().empty(shape, Numpy.dtype(number))

    @staticmethod
    def zero_bytes(shape: Sequence[int], _like: Array) -> Array:
        return _np().zeros(shape, "uint8")

    @staticmethod
    def empty_bytes(shape: Sequence[int], _like: Array) -> Array:
        return _np().empty(shape, "uint8")

    @staticmethod
    def rows_of_f32(x: Array) -> Array:
        return _np().ascontiguousarray(x, "float32")

    @staticmethod
    def cast(x: Array, number: int) -> Array:
        return x.astype(Numpy.dtype(number))

    @staticmethod
    def as_bytes(x: Array) -> Array:
        return _np().ascontiguousarray(x).view("uint8")

    @staticmethod
    def copy(x: Array) -> Array:
        """A contiguous copy in this machine's byte order."""
        return _np().array(x, x.dtype.newbyteorder("="), order="C")

    @staticmethod
    def repeated(x: Array, times: int) -> Array:
        """Each element of x, which has one dimension, that many times."""
        return x.repeat(times)

    @staticmethod
    def joined(parts: Sequence[Array]) -> Array:
        """The arrays joined along the first dimension."""
        return _np().concatenate(parts)

    @staticmethod
    def full(count: int, value: float, _like: Array) -> Array:
        return _np().full(count, value, "float32")

    @staticmethod
    def equal(x: Array, y: Array) -> bool:
        return _np().array_equal(x, y)

    @staticmethod
    def size(x: Array) -> int:
        return x.size

    @staticmethod
    def padded(x: Array, columns: int) -> Array:
        """x [rows, fewer] with padded rows, which start at multiples of 16 bytes."""
        if x.shape[1] == columns and x.flags.c_contiguous:
            return x
        out = _np().zeros((x.shape[0], columns), "uint8")
        out[:, :x.shape[1]] = x
        return out

    @staticmethod
    def item(x: Array) -> Any:
        return x.item() if isinstance(x, _np().ndarray) else x

    @staticmethod
    def largest_finite(x: Array) -> float:
        size = abs(x)
        return float(size.max(initial=0, where=_np().isfinite(size)))


class Torch:
    """Torch tensors, on the CPU or a CUDA device."""
    NAME = "torch"
    resizes_in_place = False

    @staticmethod
    def is_tensor(x: Any) -> bool:
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(x, torch.Tensor)

    @staticmethod
    def compiling() -> bool:
        """Whether torch.compile is tracing; calls are then torch operators."""
        return _torch().compiler.is_compiling()

    @staticmethod
    def observed() -> bool:
        """Whether calls have to be torch operators, because torch.compile, a dispatch mode,
        torch.jit.trace, a transform of torch.func or forward-mode AD has to see them."""
        torch = _torch()
        if torch.compiler.is_compiling():
            return True
        core = torch._C
        return bool(core._len_torch_dispatch_stack() or core._is_tracing() or
                    core._are_functorch_transforms_active() or
                    torch.autograd.forward_ad._current_level >= 0)

    @staticmethod
    def traced(x: Array) -> bool:
        """Whether x is a stand-in for a tensor (fake, a proxy, or wrapped by torch.func), whose
        data only operators can access."""
        torch = _torch()
        kind, own = type(x), torch.Tensor
        if kind is not own and not issubclass(kind, own):
            return False
        if kind is not own and kind.__torch_dispatch__ is not own.__torch_dispatch__:
            return any(kind is getattr(sys.modules.get(module), name, None)
                       for module, name in _STANDING_FOR_TENSORS)
        core = torch._C
        return core._are_functorch_transforms_active() and (
            core._functorch.is_functorch_wrapped_tensor(x))

    @staticmethod
    def first_with_tangent(*operands: Array | None) -> int | None:
        """Index of the first operand that has a tangent of forward-mode AD; None if there is
        none."""
        forward = _torch().autograd.forward_ad
        if forward._current_level >= 0:
            for i, x in enumerate(operands):
                if isinstance(x, _torch().Tensor) and forward.unpack_dual(x).tangent is not None:
                    return i
        return None

    @staticmethod
    def autocasts(x: Array) -> bool:
        """Whether torch.autocast is enabled for x's device."""
        return _torch().is_autocast_enabled("cuda" if x.is_cuda else "cpu")

    @staticmethod
    def first_with_gradient(*operands: Array | None) -> int | None:
        """Index of the first operand that requires a gradient; None if there is none."""
        if _torch().is_grad_enabled():
            for i, x in enumerate(operands):
                if x is not None and getattr(x, "requires_grad", False) is True:
                    return i
        return None

    @staticmethod
    def plain(x: Array, what: str) -> Array:
        """x itself. Raises TypeError unless x is a dense tensor with memory."""
        torch = _torch()
        kind, own = type(x), torch.Tensor
        if Torch.traced(x):
            raise TypeError(f"{what} stands for a tensor while torch traces or transforms a call, "
                            "which this function does not follow; call it outside, before")
        if kind is not own and kind.__torch_dispatch__ is not own.__torch_dispatch__:
            raise TypeError(f"{what} is {kind.__name__}, which has no memory of its own; expected "
                            "a tensor")
        if x.layout is not torch.strided or x.is_nested:
            raise TypeError(f"{what} is no dense tensor, its layout is {x.layout}")
        return x

    @staticmethod
    def dense(x: Array, device: Any) -> bool:
        try:
            return bool(type(x) is _torch().Tensor and x.device == device and x.is_contiguous() and
                        not x.is_neg() and not x.is_nested and
                        (address := x.data_ptr()) and address % 16 == 0 and
                        x.nbytes + ((offset := x.storage_offset()) and offset * x.itemsize) <=
                        x.untyped_storage().nbytes())
        except RuntimeError:
            return False  # sparse, or wrapped by a transform: plain() raises the error

    @staticmethod
    def held(x: Array) -> bool:
        if x.numel() == 0:
            return True
        try:
            high = x.storage_offset() + _reach(x.shape, x.stride())[1] + 1
            return x.data_ptr() != 0 and (
                high * x.element_size() <= x.untyped_storage().nbytes())
        except RuntimeError:
            return False  # wrapped by a transform of torch.func

    @staticmethod
    def in_order(x: Array) -> bool:
        return not x.is_neg()

    @staticmethod
    def device(x: Array) -> Any:
        return x.device

    @staticmethod
    def writable(x: Array) -> bool:
        return not (x.requires_grad and _torch().is_grad_enabled())

    @staticmethod
    def written(x: Array) -> None:
        """Increments x's version, so that autograd refuses a backward pass that needs the old
        values."""
        if not x.is_inference():
            _torch().autograd.graph.increment_version(x)

    @staticmethod
    def address(x: Array) -> int:
        return x.data_ptr()

    @staticmethod
    def strides(x: Array) -> tuple[int, ...]:
        return x.stride()

    @staticmethod
    def itemsize(x: Array) -> int:
        return x.element_size()

    @staticmethod
    def type_of(dtype: Any, numbers: dict[Any, int | None] = {}) -> int | None:
        if dtype not in numbers:
            numbers[dtype] = _TYPE.get(str(dtype).removeprefix("torch."))
        return numbers[dtype]

    @staticmethod
    def bytes_type() -> Any:
        return _torch().uint8

    @staticmethod
    def is_bytes(dtype: Any) -> bool:
        return dtype == _torch().uint8

    @staticmethod
    def is_int32(dtype: Any) -> bool:
        return dtype == _torch().int32

    @staticmethod
    def is_int64(dtype: Any) -> bool:
        return dtype == _torch().int64

    @staticmethod
    def as_int32(x: Array) -> Array:
        return x.detach().clamp(-1, 2**31 - 1).to(_torch().int32)

    @staticmethod
    def dtype(number: int) -> Any:
        return getattr(_torch(), _NAME[number])

    @staticmethod
    def empty(shape: Sequence[int], number: int, like: Array) -> Array:
        return _torch().empty(shape, dtype=Torch.dtype(number), device=like.device)

    @staticmethod
    def zero_bytes(shape: Sequence[int], like: Array) -> Array:
        return _torch().zeros(shape, dtype=_torch().uint8, device=like.device)

    @staticmethod
    def empty_bytes(shape: Sequence[int], like: Array) -> Array:
        return _torch().empty(shape, dtype=_torch().uint8, device=like.device)

    @staticmethod
    def rows_of_f32(x: Array) -> Array:
        return x.detach().to(_torch().float32).contiguous()

    @staticmethod
    def cast(x: Array, number: int) -> Array:
        return x.to(Torch.dtype(number))

    @staticmethod
    def as_bytes(x: Array) -> Array:
        return x.contiguous().view(_torch().uint8)

    @staticmethod
    def copy(x: Array) -> Array:
        return x.detach().resolve_neg().clone(memory_format=_torch().contiguous_format)

    @staticmethod
    def repeated(x: Array, times: int) -> Array:
        return x.repeat_interleave(times)

    @staticmethod
    def joined(parts: Sequence[Array]) -> Array:
        return _torch().cat(parts)

    @staticmethod
    def full(count: int, value: float, like: Array) -> Array:
        return _torch().full((count,), value, dtype=_torch().float32, device=like.device)

    @staticmethod
    def equal(x: Array, y: Array) -> bool:
        return _torch().equal(x, y)

    @staticmethod
    def size(x: Array) -> int:
        return x.numel()

    @staticmethod
    def padded(x: Array, columns: int) -> Array:
        if x.shape[1] == columns and x.is_contiguous():
            return x
        out = x.new_zeros((x.shape[0], columns))
        out[:, :x.shape[1]] = x
        return out

    @staticmethod
    def item(x: Array) -> Any:
        return x.item() if isinstance(x, _torch().Tensor) else x

    @staticmethod
    def largest_finite(x: Array) -> float:
        size = x.abs()
        size = size[size.isfinite()]
        return float(size.max()) if size.numel() else 0.0


def _np() -> Any:
    return sys.modules["numpy"]


def _torch() -> Any:
    return sys.modules["torch"]


def arrays_of(x: Any, what: str) -> Arrays:
    """The class Numpy or Torch, by the type of x. Raises TypeError for any other type."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(x, torch.Tensor):
        return Torch
    if numpy is not None and isinstance(x, numpy.ndarray):
        return Numpy
    if type(x).__module__.startswith("torch.fx."):
        raise TypeError(f"{what} is {type(x).__name__} of torch.fx, which sees no operators; trace "
                        "with torch.export or make_fx, or with a Tracer to which the module that "
                        "calls this is a leaf")
    raise TypeError(f"{what} is {type(x).__name__}; expected a NumPy array or a torch tensor")


def on_gpu(x: Any) -> bool:
    return getattr(x, "is_cuda", False)
