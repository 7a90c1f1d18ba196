# SPDX-License-Identifier: MIT
"""Slices of a Packed along rows or along k, by the rules of nvfp4_gemm.h, SLICES.

128x4 scales are stored in tiles of 128 rows x 4 scales, which are 64 of k in NVFP4. A slice that
begins at a tile boundary takes whole tiles; scales after the slice's end count as padding. Other
slices are converted to linear scales and back.
"""
from __future__ import annotations

import math
from typing import Any

from nvfp4gemm import abi
from nvfp4gemm._arrays import arrays_of
from nvfp4gemm._door import whole
from nvfp4gemm._matrix import Matrix, row_bytes
from nvfp4gemm._packings import PACKINGS
from nvfp4gemm._types import Array, Arrays

TILE_ROWS, TILE_BYTES = 128, 512


def _check(begin: int, end: int, size: int, what: str, unit: int) -> None:
    whole(begin, "begin"), whole(end, "end")
    if not 0 <= begin <= end <= size:
        raise ValueError(f"{what} {begin} to {end} are none of 0 to {size}")
    if begin % unit or end % unit:
        raise ValueError(f"{what} {begin} to {end} are no multiples of {unit}")


def _tiles(packed: Matrix) -> Array:
    """The bytes of 128x4 scales as [tiles along rows, tiles along k, bytes]."""
    across = -(-packed.k // (4 * packed.block))
    return packed.scales.reshape(-1, across, TILE_BYTES)


def _aligned(x: Array) -> Array:
    """x itself if its address is a multiple of 16, as a GEMM requires; else a copy."""
    arrays = arrays_of(x, "x")
    return arrays.copy(x) if _lies_apart(arrays, x) else x


def _lies_apart(arrays: Arrays, x: Array) -> bool:
    """Whether the address of x is not a multiple of 16. False for a traced tensor, which has no
    address; the operators check it."""
    return not (arrays.compiling() or arrays.traced(x)) and arrays.address(x) % 16 != 0


def _of_packing(packed: Matrix, begin: int, end: int) -> Array | None:
    """The bytes of these rows of packed weights, on the same memory; None if a unit also has other
    rows."""
    unit_rows = PACKINGS[packed.scale_layout].unit_rows
    if begin % unit_rows or end % unit_rows and end != packed.rows:
        return None
    units = packed.scales.reshape(-(-packed.rows // unit_rows), -1)
    return units[begin // unit_rows:-(-end // unit_rows)].reshape(-1)


def rows(packed: Any, begin: int, end: int) -> Any:
    _check(begin, end, packed.rows, "rows", 1)
    if packed.packing:
        units = _of_packing(packed, begin, end)
        if units is None:
            plain = rows(packed.with_scales("128x4"), begin, end)
            return plain.with_scales(packed.scale_layout)
        return _with_rows(packed, begin, end, units)
    if packed.scale_layout == "128x4":
        if begin % TILE_ROWS:
            return rows(packed.with_scales("linear"), begin, end).with_scales("128x4")
        scales = _tiles(packed)[begin // TILE_ROWS:-(-end // TILE_ROWS)].reshape(-1)
    else:
        across = packed.k // packed.block
        scales = _aligned(packed.scales.reshape(-1)[begin * across:end * across])
    return _with_rows(packed, begin, end, scales)


def _with_rows(packed: Any, begin: int, end: int, scales: Array) -> Any:
    parts = {"codes": packed.codes[begin:end], "scales": scales, "rows": end - begin}
    if packed.scale_rows:
        parts["tensor_scale"] = _tensor_scales(packed, begin, end)
    return packed.replace(**parts)


def _tensor_scales(packed: Matrix, begin: int, end: int) -> Array:
    """The tensor scales of rows begin to end, with the largest group size that divides both ends
    and the old group size."""
    scales, each = packed.tensor_scale, packed.scale_rows
    first, last = begin // each, max(end - 1, begin) // each
    if each == 1 or first == last:
        return scales[begin:end] if each == 1 else scales[first:first + 1]
    width = math.gcd(each, begin, end)
    if width % abi.SCALE_COLUMNS:
        raise ValueError(f"rows {begin} to {end} cut groups of {each} rows with a tensor scale "
                         f"each; expected multiples of {abi.SCALE_COLUMNS}, or rows of one group")
    scales = arrays_of(scales, "tensor_scale").repeated(scales, each // width)
    return scales[begin // width:end // width]


def k(packed: Any, begin: int, end: int) -> Any:
    block, tile = packed.block, 4 * packed.block
    _check(begin, end, packed.k, "k", block)
    if packed.packing:
        return k(packed.with_scales("128x4"), begin, end).with_scales(packed.scale_layout)
    arrays = arrays_of(packed.codes, "codes")
    if packed.scale_layout == "128x4":
        if begin % tile:
            return k(packed.with_scales("linear"), begin, end).with_scales("128x4")
        scales = arrays.copy(_tiles(packed)[:, begin // tile:-(-end // tile)]).reshape(-1)
    else:
        scales = packed.scales.reshape(packed.rows, packed.k // block)
        scales = scales[:, begin // block:end // block]
        scales = arrays.copy(scales).reshape(-1)
    codes = packed.codes[:, begin // 2:end // 2]
    if _lies_apart(arrays, codes):
        codes = arrays.padded(arrays.copy(codes), row_bytes(end - begin))
    return packed.replace(codes=codes, scales=scales, k=end - begin)
