# SPDX-License-Identifier: MIT
"""weight(): checks arrays that another program stored, and makes a Packed of them."""
from __future__ import annotations

import math
from typing import Any

from nvfp4gemm._door import Door, flag
from nvfp4gemm._matrix import block_of, codes_in_bytes, number_of, row_bytes, scale_bytes
from nvfp4gemm._packed import Packed
from nvfp4gemm._types import AnyArray, Array, Arrays, Self

NIBBLES = {"low_first": False, "high_first": True}


class Weight(Packed):
    """A Packed from a checkpoint, with other values that the checkpoint has for the layer.

    dialect          how the layer was stored; a name of tools/nvfp4/dialects.def
    bias             [n], or None
    input_scale      the tensor scale of the layer's input, a float, or None. linear() uses it if
                     quantize_input is True
    pre_quant_scale  [k] float32, or None. linear() first multiplies x by it, as the program that
                     quantized the weight expects. mm() refuses such a weight
    """

    dialect: str | None = None
    bias: Any = None

    def beside(self, **parts: Any) -> Self:
        """The same matrix with other values of dialect, bias, input_scale and pre_quant_scale."""
        made = self.replace()
        vars(made).update(parts)
        return made

    def replace(self, **parts: Any) -> Self:
        made = super().replace(**parts)
        made.dialect, made.bias = self.dialect, self.bias
        made.input_scale, made.pre_quant_scale = self.input_scale, self.pre_quant_scale
        return made

    def slice_rows(self, begin: int, end: int) -> Self:
        made = super().slice_rows(begin, end)
        return made if self.bias is None else made.beside(bias=self.bias[begin:end])

    def slice_k(self, begin: int, end: int) -> Self:
        made, scale = super().slice_k(begin, end), self.pre_quant_scale
        return made if scale is None else made.beside(pre_quant_scale=scale[begin:end])


def tensor_scale_of(value: float, *, divides: bool = False, what: str = "tensor_scale") -> float:
    """The multiplier that a stored tensor scale stands for. Raises ValueError if the scale is not
    finite, is negative, or is a divisor of 0: every element of the matrix would be wrong."""
    if not math.isfinite(value) or value < 0 or (divides and value == 0):
        sign = "positive" if divides else "non-negative"
        raise ValueError(f"{what} is {value:g}, expected a finite {sign} number")
    return 1 / value if divides else value


def _refuse_first(mask: Array, scales: Array, what: str) -> None:
    if bool(mask.any()):
        row, block = divmod(int((mask.reshape(-1) * 1).argmax()), scales.shape[1])
        raise ValueError(f"the scale of row {row}, block {block} is "
                         f"{int(scales[row, block]):#04x}, {what}")


def _checked(arrays: Arrays, codes: Array, scales: Array) -> Array:
    """Returns linear scales [n, k / 16] after a check. Negative scales are refused, and so are NaN
    scales of blocks whose codes are not all 0. The NaN scale of a block of zeros is replaced by 0;
    otherwise the products of the block would be NaN."""
    _refuse_first((scales > 0x80) & (scales != 0xFF), scales, "negative; UE4M3 has no sign")
    nan = (scales & 0x7F) == 0x7F
    blocks = (codes & 0x77).reshape(*scales.shape, 8)
    _refuse_first(nan & (blocks != 0).any(-1), scales, "NaN, over codes that are not 0")
    return arrays.copy(scales * (scales < 0x7F))


def _checked_ue8m0(arrays: Arrays, codes: Array, scales: Array, block: int) -> Array:
    """The same check for UE8M0 scales. In UE8M0 0xFF is NaN, and no scale is 0 or negative. The NaN
    scale of a block of zeros is replaced by the smallest scale."""
    nan = scales == 0xFF
    blocks = (codes & 0x77).reshape(*scales.shape, block // 2)
    _refuse_first(nan & (blocks != 0).any(-1), scales, "NaN, over codes that are not 0")
    return arrays.copy(scales * (scales != 0xFF))


def weight(codes: AnyArray, scales: AnyArray, tensor_scale: float | AnyArray = 1.0, *,
           divides: bool = False, scale_layout: str = "linear", nibbles: str = "low_first",
           format: str = "nvfp4") -> Weight:
    """Makes a Packed [n, k] of arrays of a checkpoint, NumPy or torch.

    codes         uint8 [n, k / 2]. The element with the lower k is in the low nibble, or in the
                  high one if nibbles is "high_first"
    scales        UE4M3 as uint8 or float8_e4m3fn; [n, k / 16], or 128x4 tiles if scale_layout is
                  "128x4"
    tensor_scale  a float, or an array of one float32. It is a multiplier (ModelOpt's
                  weight_scale_2) or, with divides=True, a divisor (compressed-tensors'
                  weight_global_scale)
    format        "nvfp4"; "mxfp4", with UE8M0 scales [n, k / 32] and no tensor_scale; or
                  "e2m1_ue8m0", with UE8M0 scales [n, k / 16] and no tensor_scale

    The result has 128x4 scales, which every GPU reads directly. Rows of codes that do not start at
    multiples of 16 bytes are copied; others are not. ValueError is raised for a scale that is
    negative, for a scale that is NaN unless all codes of its block are 0, and for a tensor scale
    that is negative or not finite.
    """
    door = Door(codes, "codes")
    arrays, codes = door.arrays, codes_in_bytes(door.array(codes, "codes"))
    if codes.ndim != 2 or str(codes.dtype).removeprefix("torch.") != "uint8":
        raise ValueError(f"codes are {codes.dtype} {tuple(codes.shape)}, expected uint8 [n, k / 2]")
    n, k = codes.shape[0], 2 * codes.shape[1]
    block = block_of(format)
    if k % block:
        raise ValueError(f"codes are {tuple(codes.shape)}: k = {k} is no multiple of {block}")
    scales = door.scale_bytes(scales, "scales", scale_bytes(n, k, scale_layout, format),
                              f"{scale_layout} ones of [{n}, {k}]")
    value = tensor_scale_of(door.value(tensor_scale, "tensor_scale"),
                            divides=flag(divides, "divides"))
    if number_of(nibbles, NIBBLES, "nibbles"):
        codes = codes >> 4 | codes << 4
    packed = Weight(arrays.padded(codes, row_bytes(k)), scales.reshape(-1), n, k, value,
                    scale_layout, format)
    ue8m0 = format != "nvfp4"
    if bool((scales > (0xFE if ue8m0 else 0x7E)).any()):  # may be only in the padding of 128x4
        linear = packed.with_scales("linear").scales.reshape(n, k // block)
        checked = (_checked_ue8m0(arrays, codes, linear, block) if ue8m0 else
                   _checked(arrays, codes, linear))
        packed = packed.replace(scales=checked.reshape(-1), scale_layout="linear")
    return packed.with_scales("128x4")
