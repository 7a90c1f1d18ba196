# SPDX-License-Identifier: MIT
"""What quantize() makes and mm() multiplies."""
from __future__ import annotations

from typing import Any

from nvfp4gemm import _eager, _optional, _slices, abi
from nvfp4gemm._arrays import arrays_of
from nvfp4gemm._matrix import Matrix
from nvfp4gemm._types import Array, DType, Self, Shape


class Packed(Matrix):
    """A matrix [rows, k] in NVFP4: value = code * scale * tensor_scale.

    codes         uint8 [rows, ceil(k / 32) * 16]; the element with the lower k in the low nibble;
                  each row starts at a multiple of 16 bytes
    scales        uint8, one dimension; UE4M3, one per 16 along k, in `scale_layout`, or what
                  `format` has
    tensor_scale  a float, or one float32 on the device of the codes, or one for each row: [rows];
                  or [g], one for each rows / g of them, a multiple of 64, as weights have that
                  checkpoints.fuse() made of several. A float is a finite float32, 0 or more
    scale_layout  "128x4", which tensor cores read, or "linear", [rows, k / 16]; what pack() makes
                  has its packing there
    format        "nvfp4"; "mxfp4": UE8M0 scales, 2^(byte - 127), one per 32; "e2m1_ue8m0": the
                  same, one per 16. Neither has a tensor_scale

    codes may be of torch.float4_e2m1fn_x2, too, and scales of float8_e4m3fn, or where they are
    UE8M0 of float8_e8m0fnu: the Packed has them as uint8, on the same memory.

    codes, scales and a tensor_scale that is an array are of one kind: NumPy arrays, or torch
    tensors on one device. They are used where they are. Copied are codes whose rows are not
    contiguous or no multiple of 16 bytes apart, scales that are not contiguous, and on a GPU either
    whose address is no multiple of 16 bytes. Sizes that do not fit rows and k, another type,
    another device or a view that reaches beyond its memory are refused. The parts cannot be set:
    replace(codes=...) makes another Packed.
    """

    # What a checkpoint has beside its weight, see checkpoints.load().
    input_scale: Any = None
    pre_quant_scale: Any = None
    parts: Shape | None = None  # of what checkpoints.fuse() made: how many rows each part had

    def _hold(self, codes: Array, scales: Array, rows: int, k: int, tensor_scale: Any,
              scale_layout: str, format: str = "nvfp4") -> None:
        super()._hold(codes, scales, rows, k, tensor_scale, scale_layout, format)
        # What compiled code is traced with, so that its guards look at three parts and no more.
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
        """The values, [rows, k]; float32 if no dtype is given."""
        if arrays_of(self.codes, "codes").observed() or self.traced:
            return _optional.ops.dequantize(self, dtype)
        return _eager.dequantize(self, dtype)

    def pack(self, packing: str = "sm90_1") -> Self:
        """The same weights in the order that kernels of a GPU read: "sm90_1" for compute capability
        9.0 and x of bfloat16 or float16. docs/packing.md describes it. A product takes the packed
        matrix as b. Its codes and scales lie together: `scales` has both, and `codes` is [rows, 0].
        with_scales("128x4") unpacks, and so does whatever needs codes: dequantize(), gradients,
        slices that cut 64 rows."""
        return self.with_scales(packing)

    def with_scales(self, scale_layout: str) -> Self:
        """The same matrix, its scales in that layout; codes are shared, not copied, except where
        the matrix is packed or becomes so."""
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
        """Rows begin to end. Codes are shared, and so are 128x4 scales where begin is a multiple of
        128; else scales are converted. Where groups of rows have a tensor scale each, rows are all
        of one group, or begin and end are multiples of 64."""
        made: Self = _slices.rows(self, begin, end)
        return made

    def slice_k(self, begin: int, end: int) -> Self:
        """Columns begin to end of k, multiples of 16, in MXFP4 of 32. Codes are shared where begin
        is a multiple of 32; 128x4 scales are copied where begin is at a tile of 4 scales, else
        converted."""
        made: Self = _slices.k(self, begin, end)
        return made
