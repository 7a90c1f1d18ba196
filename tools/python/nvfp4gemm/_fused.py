# SPDX-License-Identifier: MIT
"""One weight of several that multiply the same x: gate and up; q, k and v. Their rows come one
after the other, and each part keeps its tensor scale."""
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
    """Why parts make no weight: the part's place among them, what of it (a use of
    tools/nvfp4/dialects.def, or "codes", "tensor_scale"), what it is and what was expected."""

    def __init__(self, index: int, use: str, what: str, expected: str) -> None:
        super().__init__(f"the {use} of part {index} is {what}; expected {expected}")
        self.index, self.use, self.what, self.expected = index, use, what, expected


def fuse(parts: Iterable[P]) -> P:
    """The parts, each a Packed [.., k], as one weight [sum of their rows, k], on memory of its own.

    It has one tensor scale where all parts have the same number. Else it has one for each group of
    as many rows as the greatest common divisor of the parts' rows, which must be a multiple of 64.
    What a checkpoint has beside its weights is kept: biases of all parts or of none, an input_scale
    and a pre_quant_scale that are the same for all, since they concern the x that the parts share.
    The result's `parts` are the parts' rows, by which parallel.ColumnLinear divides each of them.
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
    """That part i multiplies what the first one does."""
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
    """The parts' 128x4 scales where tiles hold rows of one part alone; else their linear ones."""
    whole = all(part.rows % TILE_ROWS == 0 for part in parts[:-1])
    layout = "128x4" if whole else "linear"
    scales = arrays.joined([part.with_scales(layout).scales for part in parts])
    return {"scales": scales, "scale_layout": layout}


def _tensor_scale(arrays: Arrays, parts: Sequence[Packed]) -> Any:
    """One number, or as many as there are groups of rows."""
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
    """The part's tensor scale for each `width` rows."""
    scale = part.tensor_scale
    if isinstance(scale, float):
        return arrays.full(part.rows // width, scale, part.codes)
    each = part.scale_rows or part.rows
    return arrays.repeated(scale.reshape(-1), each // width)
