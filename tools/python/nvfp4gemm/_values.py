# SPDX-License-Identifier: MIT
"""Finds errors that only the values of a layer show: a tensor scale that is inverted or 0; many
scales that are 0 although their codes are not; and scales that have the layout of another dialect.
docs/integration.md describes the statistics, which `nvfp4 check` also computes."""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from nvfp4gemm import _optional
from nvfp4gemm._dialects import LIMIT
from nvfp4gemm._shapes import Layer, Refusal, size_of
from nvfp4gemm._types import Array
from nvfp4gemm._weights import Weight

_TILE_ROWS, _TILE_SCALES = 128, 4
_LARGEST_CODE = 6


def _ue4m3(byte: int) -> float:
    exponent, mantissa = byte >> 3, byte & 7
    return math.ldexp(mantissa if exponent == 0 else 8 + mantissa, max(exponent, 1) - 10)


# log2 of the magnitude of each UE4M3 byte; 0 counts as the smallest magnitude above 0.
_LOGS = [math.log2(max(_ue4m3(byte & 0x7F), 2.0 ** -9)) for byte in range(256)]


def check_values(layer: Layer, made: Weight, expert: int | None) -> None:
    """Raises Refusal if the values of made, which has 128x4 scales, cannot be those of a layer."""
    if made.format != "nvfp4":
        return
    scale = layer.parts.get("tensor_scale", layer.parts["codes"]).name
    t, exact = made.tensor_scale, []
    if t == 0 and bool((made.codes & 0x77 != 0).any()):
        raise Refusal(scale, "0, over codes that are not", "a positive number")
    if _largest(made.scales, t) > LIMIT["largest_weight"]:  # may be only in the padding
        exact = [made.with_scales("linear").scales]
        largest = _largest(exact[0], t)
        if largest > LIMIT["largest_weight"]:
            raise Refusal(scale, f"{t:.6g} as a multiplier, which makes weights of {largest:.6g}",
                          f"weights of at most {LIMIT['largest_weight']}; it may be the reciprocal")
    # Some of these zeros may be padding.
    zeros, blocks = int((made.scales & 0x7F == 0).sum()), made.rows * made.k // made.block
    if zeros * LIMIT["lost_blocks"] >= blocks:
        scales = exact[0] if exact else made.with_scales("linear").scales
        _check_lost(layer, made, scales, expert)


def _largest(scales: Array, t: float) -> float:
    return _LARGEST_CODE * _ue4m3(int(scales.max())) * t


def _check_lost(layer: Layer, made: Weight, scales: Array, expert: int | None) -> None:
    """Raises Refusal, with the message of `nvfp4 check`, if too many blocks have a scale of 0 and
    codes that are not 0."""
    blocks = made.codes[:, :made.k // 2].reshape(made.rows, -1, made.block // 2)
    used = ((blocks & 0x77) != 0).any(-1).reshape(-1)
    lost, used = int((used & (scales.reshape(-1) & 0x7F == 0)).sum()), int(used.sum())
    if lost and lost * LIMIT["lost_blocks"] >= used:
        name = layer.parts["scales"].name + ("" if expert is None else f"[{expert}]")
        raise Refusal(name, f"0 over codes that are not in {lost} of {used} blocks",
                      f"fewer than one of {LIMIT['lost_blocks']}")


class Layouts:
    """Checks by statistics that scales have the layout that their layer's dialect says. This is
    needed if both layouts have the same size."""

    def __init__(self, arrays: Any, layers: Iterable[Layer | Refusal]) -> None:
        self.arrays = arrays
        self._proof: bool | None = None
        self._named = [layer for layer in layers if isinstance(layer, Layer) and layer.by_name]

    def check(self, layer: Layer, scales: Array, tiles: bool, expert: int | None) -> None:
        """Raises Refusal if the statistics of scales, which are in the file's layout, show the
        other layout. Raises it, too, if only names suggest the dialect and no layer's statistics
        confirm that."""
        linear, tiled = self._structures(layer, scales) or (0, 0)
        own, other = (tiled, linear) if tiles else (linear, tiled)
        read, best = ("128x4 tiles", "linear scales") if tiles else ("linear", "128x4 tiles")
        name = layer.parts["scales"].name
        if own and other >= LIMIT["other_layout"] * own:
            raise Refusal(name, f"read as {read}, but its rows and columns explain "
                          f"{other / own:.6g} times as much of its scales in the other layout",
                          f"a declaration of {best}")
        if layer.by_name and not self._proved():
            raise Refusal(name, f"of a layer that is {layer.dialect.title}'s by its names only, "
                          "and no scales tell 128x4 tiles from linear ones",
                          "a declaration of its layout")

    def _proved(self) -> bool:
        """Whether one of the layers whose names suggest a dialect has scales that are, by their
        statistics or size, in the layout of that dialect."""
        if self._proof is None:
            self._proof = any(map(self._speaks, self._named))
        return self._proof

    def _speaks(self, layer: Layer) -> bool:
        _, n, k = size_of(layer)
        if n % _TILE_ROWS or k // 16 % _TILE_SCALES:
            return True  # the size shows the layout
        seen = self._structures(layer, self.arrays.bytes_of(layer.parts["scales"]))
        return bool(seen and seen[1] >= LIMIT["other_layout"] * seen[0] > 0)

    def _structures(self, layer: Layer, scales: Array) -> tuple[float, float] | None:
        """Two numbers: how much of the variance of the scales is between rows or columns, if they
        are read as linear and as tiles. None if that cannot be computed."""
        _, n, k = size_of(layer)
        across = k // 16
        if n % _TILE_ROWS or across % _TILE_SCALES or not across:
            return None
        most = LIMIT["most_scales"] // across // _TILE_ROWS * _TILE_ROWS
        rows = min(n, LIMIT["most_rows"], max(_TILE_ROWS, most))
        if rows * across < LIMIT["fewest_scales"]:
            return None
        logs = self._logs(scales.reshape(-1)[:rows * across])
        tiles = logs.reshape(rows // _TILE_ROWS, across // _TILE_SCALES, 32, 4, _TILE_SCALES)
        return (_structure(logs.reshape(rows, across)),
                _structure(tiles.swapaxes(1, 3).reshape(rows, across)))

    def _logs(self, scales: Array) -> Array:
        if self.arrays.device is None:
            return _optional.numpy.array(_LOGS)[scales]
        torch = _optional.torch
        return torch.tensor(_LOGS, dtype=torch.float64)[scales.cpu().long()]


def _structure(logs: Array) -> float:
    return max(_between_over_inside(logs), _between_over_inside(logs.swapaxes(0, 1)))


def _between_over_inside(groups: Array) -> float:
    """The variance of the means of rows, divided by the variance that they would have if all values
    came from one distribution."""
    count, items = groups.shape
    means = groups.mean(1)
    inside = float(((groups - means.reshape(-1, 1)) ** 2).sum())
    between = float(((means - means.mean()) ** 2).sum())
    if inside == 0:
        return 0.0
    return float(items * between / (count - 1) * count * (items - 1) / inside)
