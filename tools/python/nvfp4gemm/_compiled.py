# SPDX-License-Identifier: MIT
"""linear() under torch.compile: the operator nvfp4gemm::linear. It has fewer arguments than
nvfp4gemm::mm, so torch's dispatcher takes less time. It also reads few Python names, so compiled
code has few guards to check before each call. It has no gradient. A call that needs one, or that is
more than x times a weight plus a bias, is traced as nvfp4gemm::mm."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from nvfp4gemm import _oldest_torch  # noqa: F401, first: it refuses a torch that is too old
import torch
from torch.autograd import profiler as _profiler

from nvfp4gemm import _eager, _known
from nvfp4gemm._arrays import on_gpu
from nvfp4gemm._gemm import Numbers
from nvfp4gemm._operators import library, part
from nvfp4gemm._transforms import count_flops, one_by_one

# kind is Packed._kind. No argument has a default value, because inductor passes all of them by
# name.
library.define("linear(Tensor x, Tensor codes, Tensor scales, Tensor? tensor_scale, "
                     "Tensor? bias, str kind, str? activation) -> Tensor")
_operator = torch.ops.nvfp4gemm.linear.default


@cache
def _parts_of(kind: str) -> tuple[str, str, float]:
    layout, format_, factor = kind.split()
    return layout, format_, float(factor)


@torch.library.impl(library, "linear", "CompositeExplicitAutograd")
def _linear(x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor,
            tensor_scale: torch.Tensor | None, bias: torch.Tensor | None, kind: str,
            activation: str | None) -> torch.Tensor:
    layout, format_, factor = _parts_of(kind)
    weight = part(codes, scales, tensor_scale, factor, layout, format_, x.shape[-1])
    numbers = Numbers(activation=activation)
    d = _eager.mm(x, weight, None, bias, None, None, numbers, ("x", "weight"))
    seen = getattr(codes, "_nvfp4gemm", None)
    if on_gpu(codes) and seen is not None:
        key = x.shape, x.dtype, None if bias is None else bias.is_nested, activation
        _known.remember(key, weight, x, x, bias, None, None, numbers, d)
        seen.known = weight._known or seen.known
    return d


def _at_once(x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor,
             tensor_scale: torch.Tensor | None, bias: torch.Tensor | None, kind: str,
             activation: str | None) -> torch.Tensor:
    """Runs the operator without torch's dispatcher, if _known has such a product and nothing has to
    see the call."""
    seen = getattr(codes, "_nvfp4gemm", None)
    if seen is not None and seen.known and not _profiler._is_profiler_enabled and (
            seen.is_of(scales, tensor_scale, kind)) and not x.is_nested:
        key = x.shape, x.dtype, None if bias is None else bias.is_nested, activation
        for known in seen.known.get(key, ()):
            d = known(seen.places, codes, scales, tensor_scale, x, bias, None, None)
            if d is not None:
                return d
    return _by_dispatcher(x, codes, scales, tensor_scale, bias, kind, activation)


# torch calls _op if Python code or compiled code calls the operator. It is replaced here. In a
# version of torch that calls another function, this has no effect, and calls are slower.
_by_dispatcher = _operator._op
_operator._op = _at_once


@torch.library.register_fake("nvfp4gemm::linear", lib=library)
def _linear_meta(x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor,
                 tensor_scale: torch.Tensor | None, bias: torch.Tensor | None, kind: str,
                 activation: str | None) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], codes.shape[0]))


def _cast_for(device: str) -> Any:
    """The operator under autocast, with the same rules as nvfp4gemm::mm."""
    def cast(x: torch.Tensor, *others: Any) -> torch.Tensor:
        dtype = torch.get_autocast_dtype(device)
        if x.is_floating_point() and x.dtype != torch.float64:
            x = x.to(dtype)
        with torch.autocast(device, enabled=False):
            return _operator(x, *others)
    return cast


for _device, _key in (("cuda", "AutocastCUDA"), ("cpu", "AutocastCPU")):
    library.impl("linear", _cast_for(_device), _key)


def _batched(info: Any, in_dims: Sequence[int | None], *arguments: Any) -> tuple[Any, Any]:
    """The batching rule of torch.vmap: one product, with the batch as a leading dimension of x, if
    only x is batched; else one product for each member."""
    if in_dims[0] is None or any(dim is not None for dim in in_dims[1:]):
        return one_by_one(torch.ops.nvfp4gemm.linear)(info, in_dims, *arguments)
    return _operator(arguments[0].movedim(in_dims[0], 0), *arguments[1:]), 0


torch.library.register_vmap("nvfp4gemm::linear", _batched, lib=library)


count_flops("linear", 1, lambda arguments: int(arguments[0][-1]))


def linear(x: Any, weight: Any, bias: Any, activation: str | None) -> Any:
    """Returns the product, or None if it must be traced in the general way, as nvfp4gemm::mm. Each
    name that this function reads is a guard of the compiled code, so it reads as few as
    possible."""
    try:
        if weight.pre_quant_scale is not None or x.shape[-1] != weight._k or x.ndim < 2 or (
                x.device != weight._codes.device) or x.requires_grad:
            return None
        if bias is not None and (bias.device != x.device or bias.requires_grad):
            return None
    except AttributeError:  # x or bias is no tensor, or weight is no Packed
        return None
    return _operator(x, weight._codes, weight._scales, weight._scale_tensor, bias, weight._kind,
                     activation)


def layer(self: Any, x: Any) -> Any:
    """linear() for a layer; None if it must be traced in the general way."""
    packed, buffers, parameters = self._packed, self._buffers, self._parameters
    if packed is None or self.quantize_input or packed._scales is not buffers["scales"] or (
            packed._scale_tensor is not None and (
                packed._scale_tensor is not buffers["tensor_scale"])) or (
            self._packed_codes is not parameters["codes"]):
        return None
    return linear(x, packed, parameters["bias"], self.activation)
