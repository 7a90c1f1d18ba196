# SPDX-License-Identifier: MIT
"""Packed: the 4-bit matrix that quantize() returns and mm() multiplies."""
from __future__ import annotations

from typing import Any

from nvfp4gemm import _eager, _optional, _packings, _slices, abi
from nvfp4gemm._arrays import arrays_of
from nvfp4gemm._matrix import Matrix
from nvfp4gemm._types import Array, DType, Self, Shape


class Packed(Matrix):
    """A matrix [rows, k] in NVFP4: value = code * scale * tensor_scale.

    codes         uint8 [rows, ceil(k / 32) * 16]. The element with the lower k is in the low
                  nibble. Each row starts at a multiple of 16 bytes
    scales        uint8 with one dimension, in the order of `scale_layout`. In NVFP4 they are UE4M3,
                  one for 16 elements along k; for other formats see `format`
    tensor_scale  one of:
                  a float, finite in float32 and not negative;
                  one float32 on the device of the codes;
                  float32 [rows], one for each row;
                  float32 [g], one for each of g groups of neighbouring rows. A group has rows / g
                  rows, and this number is a multiple of 64. checkpoints.fuse() makes such weights
    scale_layout  "128x4", which tensor cores read; "linear", [rows, k / 16]; or, for a matrix made
                  by pack(), the name of its packing, such as "sm90_1"
    format        "nvfp4"; "mxfp4": UE8M0 scales, 2^(byte - 127), one for 32 elements; or
                  "e2m1_ue8m0": the same, one for 16 elements. The last two have no tensor_scale

    codes may also be float4_e2m1fn_x2, and scales float8_e4m3fn (UE4M3) or float8_e8m0fnu (UE8M0).
    The Packed views them as uint8 without a copy.

    All arrays must be NumPy arrays, or torch tensors on one device. The Packed refers to the
    caller's arrays and keeps them alive. It copies codes whose rows are not contiguous or not a
    multiple of 16 bytes apart, and scales that are not contiguous. On a GPU it also copies codes or
    scales whose address is not a multiple of 16 bytes. A size that does not match rows and k, a
    wrong type or device, and a view that reaches beyond its memory raise TypeError or ValueError.
    The parts cannot be assigned; replace(codes=...) makes another Packed.
    """

    # Attributes that a checkpoint may add to a weight, see checkpoints.load().
    input_scale: Any = None
    pre_quant_scale: Any = None
    parts: Shape | None = None  # rows of each part, if checkpoints.fuse() made the weight

    def _hold(self, codes: Array, scales: Array, rows: int, k: int, tensor_scale: Any,
              scale_layout: str, format: str = "nvfp4") -> None:
        super()._hold(codes, scales, rows, k, tensor_scale, scale_layout, format)
        # Compiled code reads these three attributes only, so that it has three guards to check.
        number = isinstance(tensor_scale, float)
        self.pre_quant_scale = None
        self._scale_tensor = None if number else tensor_scale
        self._kind = f"{scale_layout} {format} {tensor_scale if number else 1.0}"

    def replace(self, **parts: Any) -> Self:
        made = super().replace(**parts)
        if made.rows == self.rows:
            made.parts = self.parts
        return made

    def dequantize(self, dtype: DType | None = None) -> Any:
        """The values, [rows, k], as an array of the same package and device. dtype is float16,
        bfloat16 or float32, which is the default."""
        if arrays_of(self.codes, "codes").observed() or self.traced:
            return _optional.ops.dequantize(self, dtype)
        return _eager.dequantize(self, dtype)

    def pack(self, packing: str | None = None) -> Self:
        """The same weights in the order that kernels of one GPU architecture read. "sm90_1" is for
        compute capability 9.0 and an x of bfloat16 or float16; "sm100_1" is for 10.0 and 10.3 and a
        quantized x. None chooses the packing of the GPU on which the matrix lies, and on the CPU
        "sm90_1"; on a GPU that has none it raises ValueError. docs/packing.md describes them.

        Pass the packed matrix as b of a product. Its attribute scales holds codes and scales
        together; codes has the shape [rows, 0]. with_scales("128x4") unpacks it. So do
        dequantize(), gradients, and slices that do not begin and end at multiples of 64 rows, of
        128 in "sm100_1".
        """
        return self.with_scales(_packings.chosen(self.codes, packing))

    def with_scales(self, scale_layout: str) -> Self:
        """The same matrix with its scales in the layout "128x4" or "linear", or packed. Codes are
        shared with this matrix; only packing and unpacking copy them."""
        if self.packing or scale_layout in abi.PACKINGS:
            if self.traced:
                raise ValueError("weights are packed and unpacked before they are traced")
            packed: Self = _eager.with_scales(self, scale_layout)
            return packed
        if arrays_of(self.codes, "codes").observed() or self.traced:
            made: Self = _optional.ops.with_scales(self, scale_layout)
        else:
            made = _eager.with_scales(self, scale_layout)
        return made

    def slice_rows(self, begin: int, end: int) -> Self:
        """Rows begin to end. Codes are shared with this matrix. 128x4 scales are shared, too, if
        begin is a multiple of 128; otherwise they are converted. If groups of rows have their own
        tensor scales, the slice must be inside one group, or begin and end must be multiples of
        64."""
        made: Self = _slices.rows(self, begin, end)
        return made

    def slice_k(self, begin: int, end: int) -> Self:
        """Columns begin to end, which must be multiples of 16, in MXFP4 of 32. Codes are shared
        with this matrix if begin is a multiple of 32, else copied. 128x4 scales are copied if begin
        is a multiple of 64, in MXFP4 of 128; otherwise they are converted."""
        made: Self = _slices.k(self, begin, end)
        return made
