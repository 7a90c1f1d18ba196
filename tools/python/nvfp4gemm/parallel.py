# SPDX-License-Identifier: MIT
"""nn.Linear divided among the processes of a torch.distributed group: NCCL on GPUs, gloo on CPUs.

    up = ColumnLinear(nn.Linear.from_float(mlp.up), activation="silu")  # this rank's outputs
    down = RowLinear(nn.Linear.from_float(mlp.down))                    # this rank's inputs, summed
    y = down(up(x))                                                     # one all_reduce

Each rank is given the whole layer and keeps its part of codes and scales, which it packs if the
layer is packed. Both take the weight as one rank would: the values of code * scale * tensor_scale
do not depend on the number of ranks.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from nvfp4gemm import _oldest_torch  # noqa: F401, before names that old ones lack
import torch
import torch.distributed as dist

from nvfp4gemm import _calls, nn
from nvfp4gemm._arrays import arrays_of
from nvfp4gemm._door import flag, size
from nvfp4gemm._fused import fuse
from nvfp4gemm._packed import Packed
from nvfp4gemm._types import Group


def part_of(size: int, unit: int, group: Group = None, what: str = "size") -> tuple[int, int]:
    """(begin, end) of this rank's part: whole units, as many for each rank."""
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    if size % (ranks * unit):
        raise ValueError(f"{what} {size} is no multiple of {unit} for each of {ranks} ranks")
    return size // ranks * rank, size // ranks * (rank + 1)


def _checked(layer: Any) -> nn.Linear:
    if not isinstance(layer, nn.Linear):
        raise TypeError(f"layer is {type(layer).__name__}; expected an nvfp4gemm.nn.Linear, as "
                        "from_float() makes it")
    return layer


def _rows_of_parts(layer: nn.Linear, parts: Sequence[int] | None) -> Sequence[int]:
    if parts is None:
        return layer.parts or (layer.out_features,)
    rows = [size(n, "parts") for n in parts]
    if sum(rows) != layer.out_features:
        raise ValueError(f"parts have {sum(rows)} rows, out_features is {layer.out_features}")
    return rows


def _own(packed: Packed) -> Packed:
    """On memory of its own, so that the whole weight's can go."""
    return packed.replace(codes=packed.codes.clone(memory_format=torch.contiguous_format),
                          scales=packed.scales.clone())


def _without_gradient(x: torch.Tensor) -> torch.Tensor:
    """x; raises where a derivative would need what the ranks do not exchange."""
    arrays = arrays_of(x, "x")
    if arrays.first_with_tangent(x) is not None:
        raise ValueError("x has a tangent of forward-mode AD, which a layer divided among ranks "
                         "does not have")
    if arrays.first_with_gradient(x) is not None:
        raise ValueError("x requires a gradient, which a layer divided among ranks does not have; "
                         "detach it, or call under torch.no_grad()")
    return x


class ColumnLinear(nn.Linear):
    """This rank's columns of y = activation(x W^T + bias): rows of W. x is whole on each rank.

    layer   an nn.Linear; out_features a multiple of the number of ranks. Where out_features / ranks
            is a multiple of 128 the scales are taken as they lie, else converted.
    gather  True: each rank has all of y, in the order of the whole layer
    parts   out_features of each of the layers that this one is made of, one after the other: gate
            and up; q, k and v. A rank has its rows of each, so that what comes next finds its parts
            beside each other: (gate's, up's). None: as layer.parts says, which load_linear() knows
            of layers that it fuses; pass them where a checkpoint has such a layer as one
    """

    def __init__(self, layer: nn.Linear, *, group: Group = None, gather: bool = False,
                 activation: str | None = None, parts: Sequence[int] | None = None) -> None:
        rows = _rows_of_parts(_checked(layer), parts)
        ends = list(itertools.accumulate(rows))
        cuts = [tuple(end - n + at for at in part_of(n, 1, group, "out_features"))
                for n, end in zip(rows, ends)]
        weight = layer.packed().with_scales("128x4")
        pieces = [weight.slice_rows(begin, end) for begin, end in cuts]
        bias = None if layer.bias is None else torch.cat([layer.bias[begin:end]
                                                          for begin, end in cuts])
        super().__init__(fuse(pieces) if pieces[1:] else _own(pieces[0]), bias,
                         activation=activation or layer.activation,
                         quantize_input=layer.quantize_input)
        self.group, self.gather = group, gather
        if layer.is_packed:
            self.pack()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(_without_gradient(x))
        if not self.gather:
            return y
        ranks = [torch.empty_like(y) for _ in range(dist.get_world_size(self.group))]
        dist.all_gather(ranks, y.contiguous(), group=self.group)
        if self.parts is not None:
            by_rank = [one.split(self.parts, dim=-1) for one in ranks]
            ranks = [piece for pieces in zip(*by_rank) for piece in pieces]
        whole: torch.Tensor = torch.cat(ranks, dim=-1)
        return whole


class RowLinear(nn.Linear):
    """y = x W^T + bias, of which this rank has a part of x's features: columns of W. y is whole on
    each rank.

    layer     an nn.Linear without activation; in_features a multiple of 32 for each rank, so that
              codes keep their place; where it is one of 64 the scales are taken as they lie, else
              converted.
    sum_type  of the parts that the ranks add up: None is x's type; torch.float32 rounds once, and
              sends twice as many bytes
    split_input
              True: each rank is given all of x, and takes its part

    Where the layer quantizes its input, each rank's part of x is by its own largest value.
    """

    def __init__(self, layer: nn.Linear, *, group: Group = None,
                 sum_type: torch.dtype | None = None, split_input: bool = False) -> None:
        if _checked(layer).activation is not None:
            raise ValueError(f"a sum over ranks comes before the activation {layer.activation!r}")
        begin, end = part_of(layer.in_features, 32, group, "in_features")
        # One rank adds the bias to its part, in fp32.
        bias = layer.bias if dist.get_rank(group) == 0 else None
        super().__init__(_own(layer.packed().with_scales("128x4").slice_k(begin, end)), bias,
                         quantize_input=layer.quantize_input)
        self.group, self.sum_type = group, sum_type
        self._whole = layer.in_features if flag(split_input, "split_input") else None
        self._part = slice(begin, end)
        if layer.is_packed:
            self.pack()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self._whole is not None:
            if x.shape[-1] != self._whole:
                raise ValueError(f"x is {tuple(x.shape)}; expected (..., {self._whole}), all of it")
            x = x[..., self._part]
        y = _calls.linear(_without_gradient(x), self.packed(), self.bias,
                          quantize_input=self.quantize_input, out_dtype=self.sum_type or x.dtype)
        dist.all_reduce(y, group=self.group)
        return y.to(x.dtype)
