# SPDX-License-Identifier: MIT
"""Matrix: the parts of a 4-bit matrix and their sizes. The other modules build on it. Packed, the
public class, adds operations."""
from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_float
from typing import Any

from nvfp4gemm import abi
from nvfp4gemm._arrays import arrays_of
from nvfp4gemm._door import Door, size
from nvfp4gemm._types import Array, Arrays, Places, Self, Shape


# Types of torch and ml_dtypes for two codes or one scale in a byte. They are viewed as uint8.
_CODES = ("float4_e2m1fn_x2",)
_SCALES = {"nvfp4": ("float8_e4m3fn",), "mxfp4": ("float8_e8m0fnu",),
           "e2m1_ue8m0": ("float8_e8m0fnu",)}
_BLOCKS = {"nvfp4": 16, "mxfp4": 32, "e2m1_ue8m0": 16}


class Matrix:
    """The parts of a matrix; Packed documents them. They are checked once and cannot be changed;
    replace() makes another matrix."""

    _traced = False
    _signature: tuple[Any, ...]  # the matrix's part of a plan's key, set by _device
    _known: Any = None  # the Table of _known for matrices with this signature

    def __init__(self, codes: Array, scales: Array, rows: int, k: int, tensor_scale: Any = 1.0,
                 scale_layout: str = "128x4", format: str = "nvfp4") -> None:
        if scale_layout not in abi.PACKINGS:
            layout_number(scale_layout)
        block = block_of(format)
        arrays = arrays_of(codes, "codes")
        codes = codes_in_bytes(codes)
        scales = scales_in_bytes(scales, format)
        self._traced = arrays.compiling() or arrays.traced(codes)
        if not self._traced:  # otherwise the operators check them
            rows, k = size(rows, "rows"), size(k, "k")
            if k % block:
                raise ValueError(f"k = {k} is not a multiple of {block}")
            door = Door(codes, "codes")
            codes = door.codes(codes, "codes", rows, 0 if scale_layout in abi.PACKINGS else k)
            scales = door.scales(scales, "scales", self._bytes_of_scales(
                rows, k, scale_layout, format), f"{scale_layout} ones of [{rows}, {k}]")
            tensor_scale = self._scale_through(door, tensor_scale, rows)
            if format != "nvfp4" and not (type(tensor_scale) is float and tensor_scale == 1):
                raise ValueError(f"tensor_scale is {tensor_scale}; {format} has none, its scales "
                                 "reach every number")
        self._hold(codes, scales, rows, k, tensor_scale, scale_layout, format)
        if not self._traced:
            self._places = self.places(arrays)

    matrices = 1  # how many matrices the arrays hold: in a Stack one for each group

    def _bytes_of_scales(self, rows: int, k: int, scale_layout: str, format: str) -> int:
        return scale_bytes(rows, k, scale_layout, format)

    def bytes_of_scales(self, scale_layout: str) -> int:
        """Bytes of the scales of this matrix in that layout. For a packing: bytes of the whole
        packed matrix."""
        return self._bytes_of_scales(self._rows, self._k, scale_layout, self._format)

    def _scale_through(self, door: Door, tensor_scale: Any, rows: int) -> Any:
        return door.scale(tensor_scale, "tensor_scale", rows)

    @classmethod
    def of_own(cls, arrays: Arrays, *parts: Any) -> Self:
        """Makes a matrix of parts that this package created, which need no checks."""
        made = cls.__new__(cls)
        made._hold(*parts)
        made._places = made.places(arrays)
        return made

    @classmethod
    def of_seen(cls, places: Places, *parts: Any) -> Self:
        """Makes a matrix of parts that were checked before, when they had these addresses."""
        made = cls.__new__(cls)
        made._hold(*parts)
        made._places = places
        return made

    def _hold(self, codes: Array, scales: Array, rows: int, k: int, tensor_scale: Any,
              scale_layout: str, format: str = "nvfp4") -> None:
        self._codes, self._scales, self._tensor_scale = codes, scales, tensor_scale
        self._rows, self._k, self._scale_layout = rows, k, scale_layout
        self._format = format
        self._scale_rows = rows_of_a_scale(tensor_scale, rows)
        self._doors: dict[str, Door] = {}

    codes = property(lambda self: self._codes)
    scales = property(lambda self: self._scales)
    tensor_scale = property(lambda self: self._tensor_scale)

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def k(self) -> int:
        return self._k

    @property
    def shape(self) -> tuple[int, int]:
        return self._rows, self._k

    @property
    def scale_layout(self) -> str:
        return self._scale_layout

    @property
    def packing(self) -> int:
        """desc.b_packing for a product with this matrix; 0 if it is not packed."""
        return abi.PACKINGS.get(self._scale_layout, 0)

    @property
    def token_packing(self) -> int:
        """desc.a_packing of a product with this matrix. Where it is not 0, codes are elements times
        their scales in fp16 and there are no scales. linear() and gated_linear() make such a matrix
        of x, which nobody else sees."""
        return abi.TOKEN_PACKINGS.get(self._scale_layout, 0)

    @property
    def format(self) -> str:
        return self._format

    @property
    def block(self) -> int:
        """The number of elements that share a scale."""
        return _BLOCKS[self._format]

    @property
    def traced(self) -> bool:
        """Whether the parts are stand-ins for tensors, whose data only operators can access."""
        return self._traced

    @property
    def scale_rows(self) -> int:
        """The number of rows that share a tensor scale; 0 if there is a single one. In a product,
        only a may have one for each row, and only b may have one for each group of rows."""
        return self._scale_rows

    @property
    def has_row_scales(self) -> bool:
        return self.scale_rows == 1

    # The tensor scale, or tensor scales of rows. In a Stack with one for each group this is 1.0,
    # and group_scales has them.
    common_scale = property(lambda self: self._tensor_scale)
    group_scales: Any = None

    def __repr__(self) -> str:
        scale = self.tensor_scale if isinstance(self.tensor_scale, float) else "on the device"
        if self.scale_rows:
            scale = f"for each {'row' if self.has_row_scales else f'{self.scale_rows} rows'}"
        if self.group_scales is not None:
            scale = "for each group"
        return (f"{type(self).__name__}([{self.rows}, {self.k}], scales {self.scale_layout}, "
                f"tensor scale {scale})" if self.format == "nvfp4" else
                f"{type(self).__name__}([{self.rows}, {self.k}], {self.format}, scales "
                f"{self.scale_layout})")

    def __reduce__(self) -> tuple[Any, ...]:
        """A copied or unpickled matrix is made by the constructor, which checks its arrays.
        Attributes of subclasses are kept."""
        beside = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return type(self), (self._codes, self._scales, self._rows, self._k, self._tensor_scale,
                            self._scale_layout, self._format), beside or None

    def replace(self, **parts: Any) -> Self:
        """The same matrix with these parts in place of its own."""
        own = {"codes": self.codes, "scales": self.scales, "rows": self.rows, "k": self.k,
               "tensor_scale": self.tensor_scale, "scale_layout": self.scale_layout,
               "format": self.format}
        return type(self)(**{**own, **parts})

    def current(self) -> Self:
        """Returns the matrix itself if its arrays have not moved since they were checked; otherwise
        a new one, whose arrays are checked again. NumPy arrays are always checked again, since
        NumPy can shrink an array in place. The arrays of a matrix that torch.compile made are
        checked here for the first time."""
        arrays = arrays_of(self._codes, "codes")
        if self._traced or arrays.resizes_in_place or self.moved_to(self.places(arrays)):
            return self.replace()
        return self

    def places(self, arrays: Arrays) -> Places:
        """The addresses of the codes, of the scales, and of the tensor scale if it is an array. For
        packed weights: their address, and None."""
        scale = self._tensor_scale
        tensor = None if type(scale) is float else arrays.address(scale)
        if self.packing:
            return arrays.address(self._scales), None, tensor
        scales = None if self.token_packing else arrays.address(self._scales)
        return arrays.address(self._codes), scales, tensor

    def moved_to(self, places: Places) -> bool:
        return self._traced or places != self._places

    def door(self, beside: str) -> Door:
        """The Door for operands that are used with this matrix. `beside` is the caller's name of
        the matrix, for messages."""
        door = self._doors.get(beside)
        if door is None:
            door = self._doors[beside] = Door(self._codes, beside)
        return door


def _in_bytes(x: Any, types: tuple[str, ...]) -> Any:
    """x viewed as uint8 if it has one of those types, else x."""
    if str(getattr(x, "dtype", "")).removeprefix("torch.") not in types:
        return x
    arrays = arrays_of(x, "x")
    return x.view(arrays.bytes_type())


def codes_in_bytes(x: Any) -> Any:
    return _in_bytes(x, _CODES)


def scales_in_bytes(x: Any, format: str) -> Any:
    return _in_bytes(x, _SCALES[format])


def rows_of_a_scale(tensor_scale: Any, rows: int) -> int:
    """The number of rows that share one of several tensor scales; 0 if there is only one."""
    shape: Shape = getattr(tensor_scale, "shape", ())
    if len(shape) != 1 or shape[0] == 1:
        return 0
    return 1 if shape[0] == rows else rows // shape[0]


def row_bytes(k: int) -> int:
    """The distance between rows of codes in bytes: rows start at multiples of 16 bytes, as the GEMM
    requires."""
    return (k + 31) // 32 * 16


def scale_bytes(rows: int, k: int, scale_layout: str, format: str = "nvfp4") -> int:
    """Bytes of the scales in that layout. For a packing: bytes of codes and scales together."""
    number = abi.FORMATS[format]
    bytes_: int = (
        abi.lib.nvfp4_packed_bytes(rows, k, abi.PACKINGS[scale_layout], number)
        if scale_layout in abi.PACKINGS else
        abi.lib.nvfp4_scale_bytes_for(rows, k, layout_number(scale_layout), number))
    return bytes_


def block_of(format: str) -> int:
    """The number of elements that share a scale in that format."""
    return number_of(format, _BLOCKS, "format")


def number_of(name: str | None, table: Mapping[Any, int], what: str) -> int:
    try:
        return table[name]
    except (KeyError, TypeError):
        known = ", ".join(repr(n) for n in table)
        raise ValueError(f"{what} is {name!r}; there are {known}") from None


def layout_number(scale_layout: str) -> int:
    return number_of(scale_layout, abi.LAYOUTS, "scale_layout")


def constant_and_tensor(scale: Any) -> tuple[float, Any]:
    """Splits a tensor scale into (the factor that goes into alpha, the tensor that the device reads
    or None)."""
    if isinstance(scale, (int, float)):
        return c_float(scale).value, None  # rounded to float32
    return 1.0, scale
