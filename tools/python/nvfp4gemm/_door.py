# SPDX-License-Identifier: MIT
"""Checks the arrays that a caller passes. Each method of Door returns an array that the library can
read or write by its address: the caller's array, or a copy of an input that the library cannot read
directly. If neither is possible, it raises TypeError or ValueError with the argument's name.

An array is used without a copy if its type is allowed, its byte order is this machine's, its memory
holds all its elements, and the library accepts its strides and alignment. An input with other
strides, a foreign byte order or a pending negation (torch's neg bit) is copied; such an output is
refused.
"""
from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Sequence
from ctypes import c_float
from typing import Any

from nvfp4gemm import abi
from nvfp4gemm._arrays import arrays_of, on_gpu
from nvfp4gemm._types import Array

_FLOATS = (abi.F16, abi.BF16, abi.F32)
_NAMES = {abi.F16: "float16", abi.BF16: "bfloat16", abi.F32: "float32"}


def ld_of(shape: Sequence[int], strides: Sequence[int], order: int) -> int | None:
    """The leading dimension, in elements, of a matrix in that order; None if the strides do not
    have that order."""
    (m, n), (down, across) = shape, strides
    if order == abi.COLUMN_MAJOR:
        (m, n), (down, across) = (n, m), (across, down)
    if m == 0 or n == 0:
        return n  # strides do not matter if there are no elements
    if n > 1 and across != 1 or m > 1 and down < n:
        return None
    return down if m > 1 else n


def number(x: Any, what: str) -> float:
    """Returns x as a float. Device tensors are refused, since reading them would synchronise."""
    if type(x) is float:
        return x
    if isinstance(x, numbers.Real):
        return float(x)
    raise TypeError(f"{what} is {type(x).__name__}; expected a number")


def flag(x: Any, what: str) -> bool:
    """Returns x as a bool. Anything but a bool of Python or NumPy is refused."""
    if x is True or x is False:
        return x
    if type(x).__name__ in ("bool", "bool_") and not getattr(x, "ndim", 0):  # of NumPy
        return bool(x)
    raise TypeError(f"{what} is {x!r}; expected True or False")


def tensor_scale(x: Any, what: str) -> float:
    """Returns x as a tensor scale. Raises ValueError unless it is finite in float32 and not
    negative, and not rounded to 0."""
    x = float(x)
    held = c_float(x).value
    if not math.isfinite(held) or x < 0 or held == 0 != x:
        raise ValueError(f"{what} is {x:g}; expected a finite float32, 0 or more")
    return x


def whole(x: Any, what: str) -> int:
    try:
        return operator.index(x)
    except TypeError:
        raise TypeError(f"{what} is {type(x).__name__}; expected an integer") from None


def size(x: Any, what: str) -> int:
    """Returns x as an int. Raises unless it is a valid number of rows or columns."""
    x = whole(x, what)
    if not 0 <= x < 1 << 31:
        raise ValueError(f"{what} is {x}; expected 0 to {(1 << 31) - 1}")
    return x


def _words(types: Sequence[int]) -> str:
    *most, last = (_NAMES[number] for number in types)
    return f"{', '.join(most)} or {last}" if most else last


def _fit(shape: Sequence[int], rows: int | None) -> bool:
    """Whether tensor scales of that shape fit a matrix with `rows` rows: one for each row, or one
    for each group of rows."""
    if rows is None or len(shape) != 1:
        return False
    count = shape[0]
    return count == rows or count > 0 and rows % (count * abi.SCALE_COLUMNS) == 0 < rows


def rows_of(x: Array, what: str) -> tuple[int, int]:
    """(rows, columns) of x [..., columns], whose leading dimensions count as one."""
    if x.ndim < 2:
        raise ValueError(f"{what} is {tuple(x.shape)}; expected two dimensions or more")
    return math.prod(x.shape[:-1]), x.shape[-1]


def matrix(x: Array, what: str) -> Array:
    """x with its leading dimensions as one."""
    return x.reshape(rows_of(x, what))


class Door:
    """Checks the operands of one call. All of them must be of the same array package and on the
    same device as the first one. Messages call the first one `beside`."""
    __slots__ = ("arrays", "device", "gpu", "beside")

    def __init__(self, first: Any, beside: str) -> None:
        self.arrays = arrays_of(first, beside)
        self.device, self.gpu, self.beside = self.arrays.device(first), on_gpu(first), beside
        if not self.gpu and self.device != "cpu" and str(self.device) != "cpu":
            raise ValueError(f"{beside} lies on {self.device}; expected the CPU or a CUDA device")

    def value(self, x: Any, what: str) -> float:
        """Returns x, a number or an array of one element, as a float. This waits for the device of
        an array."""
        if isinstance(x, numbers.Real):
            return float(x)
        x = self.array(x, what)
        if self.arrays.size(x) != 1:
            raise ValueError(f"{what} is {tuple(x.shape)}; expected a number or one element")
        try:
            return float(self.arrays.item(x))
        except (TypeError, ValueError):  # complex numbers, structures or text
            raise TypeError(f"{what} is of {x.dtype}; expected a real number") from None

    def together(self, x: Any, what: str) -> None:
        """Raises if x is of another array package, or on another device, than the first operand."""
        arrays = arrays_of(x, what)
        if arrays is not self.arrays:
            raise TypeError(f"{what} is of {arrays.NAME}, {self.beside} of {self.arrays.NAME}; "
                            "both must be of one")
        if arrays.device(x) != self.device:
            raise ValueError(
                f"{what} lies on {arrays.device(x)}, {self.beside} on {self.device}")

    def array(self, x: Any, what: str) -> Array:
        """Returns x after general checks: it is neither masked nor sparse, its memory holds all its
        elements, and package and device match the first operand."""
        self.together(x, what)
        arrays = self.arrays
        x = arrays.plain(x, what)
        if not arrays.held(x):
            raise ValueError(f"{what} is {tuple(x.shape)} with strides {tuple(arrays.strides(x))}; "
                             "it has no memory of its own that holds all its elements")
        return x

    def floats(self, x: Array, what: str, types: Sequence[int] = _FLOATS) -> Array:
        x = self.array(x, what)
        if self.arrays.type_of(x.dtype) not in types:
            raise TypeError(f"{what} is of {x.dtype}; expected {_words(types)}")
        return x

    def _dense(self, x: Array, types: Sequence[int]) -> bool:
        """A fast check: whether x is a plain contiguous array of an allowed type, so that no other
        check is needed."""
        return self.arrays.dense(x, self.device) and self.arrays.type_of(x.dtype) in types

    def _aligned(self, x: Array, unit: int) -> bool:
        """Whether byte order and alignment allow the library to read x without a copy."""
        return self.arrays.in_order(x) and self.arrays.address(x) % unit == 0

    def matrix(self, x: Array, what: str, types: Sequence[int] = _FLOATS, *,
               unit: int | None = None, ld_unit: int = 1) -> Array:
        """Returns the input x [..., k] as a row-major [rows, k]. Its leading dimension is a
        multiple of `ld_unit` elements and, on a GPU, its address a multiple of `unit` bytes."""
        # A k that is not a multiple of ld_unit needs no check here. No operand b can have such a k,
        # so a later comparison with the k of b refuses it.
        if self._dense(x, types) and x.ndim >= 2:
            return x if x.ndim == 2 else x.reshape(rows_of(x, what))
        x = self.floats(x, what, types)
        shape = rows_of(x, what)
        arrays = self.arrays
        if x.ndim != 2:
            x = x.reshape(shape)
        ld = ld_of(shape, arrays.strides(x), abi.ROW_MAJOR)
        if ld is None or shape[0] > 1 and ld % ld_unit or not self._aligned(
                x, unit if self.gpu and unit else arrays.itemsize(x)):
            x = arrays.copy(x)
        return x

    def addend(self, x: Array, what: str, rows: int, columns: int, order: int) -> Array:
        """Returns the input x [..., columns] as [rows, columns] in that order."""
        x = self.floats(x, what)
        if x.ndim < 2 or rows_of(x, what) != (rows, columns):
            raise ValueError(f"{what} is {tuple(x.shape)}, expected ({rows}, {columns})")
        arrays = self.arrays
        if x.ndim != 2:
            x = x.reshape((rows, columns))
        if ld_of(x.shape, arrays.strides(x), order) is None or not self._aligned(
                x, 16 if self.gpu else arrays.itemsize(x)):
            x = arrays.copy(x) if order == abi.ROW_MAJOR else arrays.copy(x.T).T
        return x

    def vector(self, x: Array, what: str, n: int) -> Array:
        if self._dense(x, _FLOATS) and x.shape == (n,):
            return x
        x = self.floats(x, what)
        if tuple(x.shape) != (n,):
            raise ValueError(f"{what} is {tuple(x.shape)}, expected ({n},)")
        if n > 1 and self.arrays.strides(x)[0] != 1 or not self._aligned(
                x, self.arrays.itemsize(x)):
            x = self.arrays.copy(x)
        return x

    def vectors(self, x: Array, what: str, groups: int, n: int) -> Array:
        """Returns x, which is [n] for all groups or a contiguous [groups, n]."""
        if getattr(x, "ndim", 1) != 2:
            return self.vector(x, what, n)
        x = self.floats(x, what)
        if tuple(x.shape) != (groups, n):
            raise ValueError(f"{what} is {tuple(x.shape)}, expected ({n},) or ({groups}, {n})")
        if self.arrays.strides(x) != (n, 1) or not self._aligned(x, self.arrays.itemsize(x)):
            x = self.arrays.copy(x)
        return x

    def result(self, x: Array, what: str, rows: int, columns: int) -> tuple[Array, int]:
        """Returns (the output x [..., columns] as [rows, columns] on the same memory, its
        order)."""
        if self._dense(x, _FLOATS) and x.shape == (rows, columns) and self.arrays.writable(x):
            return x, abi.ROW_MAJOR
        x = self.floats(x, what)
        if x.ndim < 2 or rows_of(x, what) != (rows, columns):
            raise ValueError(f"{what} is {tuple(x.shape)}, expected ({rows}, {columns})")
        arrays = self.arrays
        if not arrays.writable(x):
            raise ValueError(f"{what} must not be written: it is read-only, or requires a gradient")
        if not arrays.in_order(x):
            raise TypeError(f"{what} has another order of bytes, or a negation that is pending; it "
                            "cannot be written in place")
        d = self._merged(x, what, (rows, columns))
        unit = 16 if self.gpu else arrays.itemsize(x)
        if arrays.address(d) % unit:
            raise ValueError(f"{what} begins at an address that is no multiple of {unit} bytes")
        for order in (abi.ROW_MAJOR, abi.COLUMN_MAJOR):
            if ld_of(d.shape, arrays.strides(d), order) is not None:
                return d, order
        raise ValueError(f"{what} has strides {tuple(arrays.strides(d))}; rows or columns must be "
                         "contiguous, and must not share elements")

    def maxima(self, x: Array, what: str, n: int) -> Array:
        """Returns x, a contiguous float32 [n] that the library updates in place."""
        x = self.floats(x, what, (abi.F32,))
        if tuple(x.shape) != (n,):
            raise ValueError(f"{what} is {tuple(x.shape)}, expected ({n},)")
        if not self.arrays.writable(x):
            raise ValueError(f"{what} must not be written: it is read-only, or requires a gradient")
        if n > 1 and self.arrays.strides(x)[0] != 1 or not self._aligned(x, 4):
            raise ValueError(f"{what} does not lie as this machine's float32 one after the other; "
                             "it cannot be written in place")
        return x

    def _merged(self, x: Array, what: str, shape: tuple[int, int]) -> Array:
        """x with its leading dimensions as one, on the same memory. A reshape that copies is
        refused, since the library would write into the copy."""
        if x.ndim == 2 or 0 in x.shape:
            return x.reshape(shape)
        strides, step = self.arrays.strides(x), None
        for n, stride in reversed(list(zip(x.shape[:-1], strides[:-1]))):
            if n > 1 and step is not None and stride != step:
                raise ValueError(f"{what} is {tuple(x.shape)} with strides {tuple(strides)}; its "
                                 "leading dimensions cannot be seen as rows")
            if n > 1:
                step = stride * n
        return x.reshape(shape)

    def codes(self, x: Array, what: str, rows: int, k: int) -> Array:
        """Returns codes, uint8 [rows, k / 2 or more]. Each row is contiguous and starts at a
        multiple of 16 bytes."""
        x = self._bytes(x, what)
        if x.ndim != 2 or x.shape[0] != rows or 2 * x.shape[1] < k:
            raise ValueError(f"{what} are {tuple(x.shape)}; expected ({rows}, {k // 2}) or more "
                             f"columns, of [{rows}, {k}]")
        ld = ld_of(x.shape, self.arrays.strides(x), abi.ROW_MAJOR)
        if ld is None or rows > 1 and ld % 16 or self.gpu and self.arrays.address(x) % 16:
            x = self.arrays.padded(self.arrays.copy(x[:, :k // 2]), (k + 31) // 32 * 16)
        return x

    def scale_bytes(self, x: Array, what: str, bytes_: int, whose: str) -> Array:
        """Returns `bytes_` scales, UE4M3 or UE8M0, as uint8. x is uint8 or has torch's type for
        such scales."""
        x = self.array(x, what)
        if not self.arrays.is_bytes(x.dtype) and not str(x.dtype).endswith(
                ("float8_e4m3fn", "float8_e8m0fnu")):
            raise TypeError(f"{what} are of {x.dtype}, expected uint8 or float8_e4m3fn")
        if self.arrays.size(x) != bytes_:
            raise ValueError(f"{what} {tuple(x.shape)} are no {whose}: {self.arrays.size(x)} "
                             f"bytes, expected {bytes_}")
        return self.arrays.as_bytes(x)

    def scales(self, x: Array, what: str, bytes_: int, whose: str) -> Array:
        """Returns scales as a contiguous uint8 [bytes_]."""
        x = self._bytes(x, what)
        if self.arrays.size(x) != bytes_:
            raise ValueError(f"{what} are {tuple(x.shape)}, {self.arrays.size(x)} bytes; expected "
                             f"{bytes_}, {whose}")
        flat = x if x.ndim == 1 else x.reshape(-1)
        if bytes_ > 1 and self.arrays.strides(flat) != (1,) or (
                self.gpu and self.arrays.address(flat) % 16):
            flat = self.arrays.copy(flat)
        return flat

    def ends(self, x: Array, what: str, n: int) -> Array:
        """Returns the ends of groups as a contiguous int32 [n]. x is int32 or int64 and has n
        elements, or n + 1 of which the first is 0."""
        x = self.array(x, what)
        wide = self.arrays.is_int64(x.dtype)
        if not wide and not self.arrays.is_int32(x.dtype):
            raise TypeError(f"{what} is of {x.dtype}, expected int32 or int64")
        if tuple(x.shape) not in ((n,), (n + 1,)):
            raise ValueError(f"{what} is {tuple(x.shape)}, expected ({n},) or ({n + 1},)")
        if x.shape[0] > n:
            first = 0 if self.gpu else x[:1].tolist()[0]
            if first != 0:
                raise ValueError(f"{what}[0] is {first}; of {n + 1} numbers the first one is 0")
            x = x[1:]
        if wide:
            x = self.arrays.as_int32(x)
        if n > 1 and self.arrays.strides(x)[0] != 1 or not self._aligned(x, 4):
            x = self.arrays.copy(x)
        if not self.gpu:  # on a GPU the values are not checked
            self._rising(x, what)
        return x

    def _rising(self, x: Array, what: str) -> None:
        last = 0
        for i, end in enumerate(x.tolist()):
            if end < last:
                after = f" after {last}" if i else ""
                raise ValueError(f"{what}[{i}] is {end}{after}; ends begin at 0 or more and do not "
                                 "fall")
            last = end

    def bytes(self, x: Array, what: str) -> Array:
        """Returns x, uint8 of any shape and strides. The caller checks those."""
        return self._bytes(x, what)

    def _bytes(self, x: Array, what: str) -> Array:
        x = self.array(x, what)
        if not self.arrays.is_bytes(x.dtype):
            raise TypeError(f"{what} are of {x.dtype}, expected uint8")
        return x

    def scale(self, x: Any, what: str, rows: int | None = None) -> Any:
        """Returns a tensor scale: a float; an array of one float32; or float32 with one dimension,
        with one element for each row or for each group of equally many rows."""
        return self._scale(x, what, lambda shape: _fit(shape, rows), "" if rows is None else (
            f", or {rows} of them, or one for each {abi.SCALE_COLUMNS} rows or a multiple of it "
            "that divides them"))

    def scale_of_groups(self, x: Any, what: str, groups: int) -> Any:
        """Returns the tensor scale of a Stack: a float, an array of one float32, or float32
        [groups]."""
        return self._scale(x, what, lambda shape: shape == (groups,), f", or {groups} of them")

    def _scale(self, x: Any, what: str, fits: Callable[[tuple[int, ...]], bool], many: str) -> Any:
        if isinstance(x, numbers.Real):
            return tensor_scale(x, what)
        x = self.floats(x, what, (abi.F32,))
        if self.arrays.size(x) != 1 and not fits(tuple(x.shape)):
            raise ValueError(f"{what} is {tuple(x.shape)}; expected a number or one float32{many}")
        if x.ndim == 1 and x.shape[0] > 1 and self.arrays.strides(x) != (1,):
            return self.arrays.copy(x)
        return x if self._aligned(x, 4) else self.arrays.copy(x)
