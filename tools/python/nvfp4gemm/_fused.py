# SPDX-License-Identifier: MIT
"""Fuses weights that multiply the same x into one: gate and up; or q, k and v. The rows of the
parts follow each other, and each part keeps its tensor scale."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from nvfp4gemm import abi
from nvfp4gemm._door import Door
from nvfp4gemm._packed import Packed
from nvfp4gemm._slices import TILE_ROWS
from nvfp4gemm._types import Arrays


P = TypeVar("P", bound=Packed)


class Unfusable(ValueError):
    """Why the parts cannot be fused. index is the number of the part. `use` says which of its
    tensors is the reason: "codes", "tensor_scale", or the use of a row NVFP4_BESIDE of
    tools/nvfp4/dialects.def. `what` was found, and `expected` was expected."""

    def __init__(self, index: int, use: str, what: str, expected: str) -> None:
        super().__init__(f"the {use} of part {index} is {what}; expected {expected}")
        self.index, self.use, self.what, self.expected = index, use, what, expected


def fuse(parts: Iterable[P]) -> P:
    """Fuses parts, each a Packed [.., k], into one weight [sum of their rows, k], on new memory.

    If all parts have the same tensor scale, the result has it, too. Otherwise the rows are divided
    into groups, and each group has the tensor scale of its part. The size of a group is the
    greatest common divisor of the parts' row counts; it must be a multiple of 64.

    The values that a checkpoint has for its weights are kept. All parts or none must have a bias.
    input_scale and pre_quant_scale must be the same for all parts, since all parts multiply the
    same x. The result's attribute `parts` has the row count of each part; parallel.ColumnLinear
    uses it to divide the layer.

    Parts that do not fulfil these conditions raise ValueError.
    """
    parts = list(parts)
    for i, part in enumerate(parts):
        if not isinstance(part, Packed):
            raise TypeError(f"part {i} is {type(part).__name__}; expected what quantize() returns")
    if not parts:
        raise ValueError("there are no parts; expected one or more")
    parts = [part.with_scales("128x4") if part.packing else part for part in parts]
    door = Door(parts[0].codes, "part 0")
    for i, part in enumerate(parts):
        door.together(part.codes, f"part {i}")
        _check(door.arrays, parts[0], i, part)
    arrays = door.arrays
    made: Any = parts[0].replace(
        codes=arrays.joined([part.codes[:, :parts[0].k // 2] for part in parts]),
        rows=sum(part.rows for part in parts), tensor_scale=_tensor_scale(arrays, parts),
        **_scales(arrays, parts))
    if getattr(parts[0], "bias", None) is not None:
        made = made.beside(bias=arrays.joined([getattr(part, "bias") for part in parts]))
    made = made.with_scales("128x4")
    made.parts = tuple(rows for part in parts for rows in part.parts or (part.rows,))
    fused: P = made
    return fused


def _check(arrays: Arrays, first: Packed, i: int, part: Packed) -> None:
    """Checks that part i can be fused with part 0: it has the same k, input_scale and
    pre_quant_scale, and has a bias only if part 0 has one."""
    if part.k != first.k:
        raise Unfusable(i, "codes", f"of k = {part.k}", f"k = {first.k}, as part 0 has")
    for use, name in (("input_scale", "input_scale"), ("pre_quant", "pre_quant_scale"),
                      ("bias", "bias")):
        own, others = getattr(part, name, None), getattr(first, name, None)
        if (own is None) != (others is None):
            words = ("missing", "one, as part 0 has") if own is None else (
                "there", "none, as part 0 has none")
            raise Unfusable(i, use, *words)
        same = use == "bias" or own is None or own is others or (
            own == others if isinstance(own, float) else arrays.equal(own, others))
        if not same:
            one = isinstance(own, float)
            raise Unfusable(i, use, f"{own:g}" if one else "another one",
                            f"{others:g}, part 0's" if one else "part 0's")


def _scales(arrays: Arrays, parts: Sequence[Packed]) -> dict[str, Any]:
    """The parts' scales, joined: as 128x4 tiles if no tile would hold rows of two parts, else as
    linear scales."""
    whole = all(part.rows % TILE_ROWS == 0 for part in parts[:-1])
    layout = "128x4" if whole else "linear"
    scales = arrays.joined([part.with_scales(layout).scales for part in parts])
    return {"scales": scales, "scale_layout": layout}


def _tensor_scale(arrays: Arrays, parts: Sequence[Packed]) -> Any:
    """The tensor scale of the fused weight: a single one, or one for each group of rows."""
    scales = [part.tensor_scale for part in parts]
    numbers = all(isinstance(scale, float) for scale in scales)
    if (all(scale == scales[0] for scale in scales) if numbers else
            all(scale is scales[0] for scale in scales) and not parts[0].scale_rows):
        return scales[0]
    width = math.gcd(*(part.scale_rows or part.rows for part in parts))
    if width % abi.SCALE_COLUMNS:
        differing = next((i for i, scale in enumerate(scales)
                          if not isinstance(scale, float) or scale != scales[0]), 0)
        raise Unfusable(
            differing, "tensor_scale", _words(scales[differing]),
            f"{_words(scales[0])}, part 0's, or parts whose rows are multiples of "
            f"{abi.SCALE_COLUMNS}; they are {', '.join(str(part.rows) for part in parts)}")
    return arrays.joined([_groups(arrays, part, width) for part in parts])


def _words(scale: Any) -> str:
    return f"{scale:g}" if isinstance(scale, float) else "on the device"


def _groups(arrays: Arrays, part: Packed, width: int) -> Any:
    """The part's tensor scale, repeated for each group of `width` rows."""
    scale = part.tensor_scale
    if isinstance(scale, float):
        return arrays.full(part.rows // width, scale, part.codes)
    each = part.scale_rows or part.rows
    return arrays.repeated(scale.reshape(-1), each // width)
