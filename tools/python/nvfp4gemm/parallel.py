# SPDX-License-Identifier: MIT
"""nn.Linear divided among the processes of a torch.distributed group: NCCL on GPUs, gloo on CPUs.

    up = ColumnLinear(nn.Linear.from_float(mlp.up), activation="silu")  # this rank's outputs
    down = RowLinear(nn.Linear.from_float(mlp.down))                    # this rank's inputs, summed
    y = down(up(x))                                                     # one all_reduce

Each rank gets the whole layer and copies its own part of the codes and scales. If the layer is
packed, each rank packs its part. The dequantized weight does not depend on the number of ranks.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from nvfp4gemm import _oldest_torch  # noqa: F401, first: it refuses a torch that is too old
import torch
import torch.distributed as dist

from nvfp4gemm import _calls, nn
from nvfp4gemm._arrays import arrays_of
from nvfp4gemm._door import flag, size
from nvfp4gemm._fused import fuse
from nvfp4gemm._packed import Packed
from nvfp4gemm._types import Group


def part_of(size: int, unit: int, group: Group = None, what: str = "size") -> tuple[int, int]:
    """Returns (begin, end) of this rank's part of size. All ranks have equal parts. Raises
    ValueError unless size is a multiple of unit times the number of ranks."""
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
    """A copy on new memory, so that the memory of the whole weight can be freed."""
    return packed.replace(codes=packed.codes.clone(memory_format=torch.contiguous_format),
                          scales=packed.scales.clone())


def _without_gradient(x: torch.Tensor) -> torch.Tensor:
    """Returns x. Raises if a gradient is required, since the ranks do not exchange gradients."""
    arrays = arrays_of(x, "x")
    if arrays.first_with_tangent(x) is not None:
        raise ValueError("x has a tangent of forward-mode AD, which a layer divided among ranks "
                         "does not have")
    if arrays.first_with_gradient(x) is not None:
        raise ValueError("x requires a gradient, which a layer divided among ranks does not have; "
                         "detach it, or call under torch.no_grad()")
    return x


class ColumnLinear(nn.Linear):
    """This rank's columns of y = activation(x W^T + bias), which come from its rows of W. Every
    rank passes all of x.

    layer       an nn.Linear. out_features, and each number in parts, must be a multiple of the
                number of ranks. If out_features / ranks is a multiple of 128, the scales are copied
                as they are; otherwise they are converted
    group       the process group; None: the default group
    gather      True: every rank gets all of y, in the order of the whole layer
    activation  None: the layer's activation
    parts       the out_features of the layers that were fused into this one, in order: gate and up;
                or q, k and v. Each rank keeps its rows of every part, so its y is (its part of
                gate, its part of up). None: layer.parts, which load_linear() sets for the layers
                that it fuses. Pass parts yourself if the checkpoint stores the fused layer as one
                tensor
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
    """y = x W^T + bias, for which each rank has some columns of W and the same features of x. The
    ranks add up their results, so that every rank has all of y.

    layer        an nn.Linear without activation. in_features / ranks must be a multiple of 32, so
                 that codes can be copied as bytes. If it is a multiple of 64, the scales are copied
                 as they are; otherwise they are converted
    group        the process group; None: the default group
    sum_type     the type in which the ranks' results are added. None: x's type. torch.float32: y is
                 rounded only once, after the sum, and the ranks send twice as many bytes
    split_input  True: each rank gets all of x and takes its part. False: each rank gets its part

    If the layer quantizes its input and has no input_scale, each rank quantizes the rows of its
    part of x by the largest values of that part.
    """

    def __init__(self, layer: nn.Linear, *, group: Group = None,
                 sum_type: torch.dtype | None = None, split_input: bool = False) -> None:
        if _checked(layer).activation is not None:
            raise ValueError(f"a sum over ranks comes before the activation {layer.activation!r}")
        begin, end = part_of(layer.in_features, 32, group, "in_features")
        # Rank 0 alone adds the bias, in fp32.
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
