# SPDX-License-Identifier: MIT
"""The operators' support for torch: gradients in both modes of AD, autocast, vmap, and FLOP
counts."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from nvfp4gemm import _oldest_torch  # noqa: F401, first: it refuses a torch that is too old
import torch
from torch.autograd import forward_ad as _forward_ad
from torch.utils import flop_counter
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from nvfp4gemm._arrays import Torch
from nvfp4gemm._operators import library


def _remember(ctx: Any, inputs: Sequence[Any], output: torch.Tensor) -> None:
    """Stores what the gradients of y = alpha a b^T + beta c + bias need: b, and types and
    shapes."""
    a, bias, c, a_source = inputs[0], inputs[14], inputs[16], inputs[21]
    ctx.activation = inputs[15]
    x = a if a_source is None else a_source
    ctx.alpha, ctx.beta = inputs[17], inputs[18]
    tensors = [t if isinstance(t, torch.Tensor) else None for t in inputs[6:13]]
    ctx.b = [None if isinstance(t, torch.Tensor) else t for t in inputs[6:13]]
    ctx.save_for_backward(*tensors)
    ctx.like = [None if t is None else (t.dtype, t.shape) for t in (x, bias, c)]
    ctx.source = a_source is not None


def _remember_of_operator(ctx: Any, inputs: Sequence[Any], output: torch.Tensor) -> None:
    _remember(ctx, inputs, output)
    _refuse_activation(ctx)


def _refuse_activation(ctx: Any) -> None:
    if ctx.activation is not None:
        raise ValueError(f"a gradient is required, and activation {ctx.activation!r} inside the "
                         "product has none; apply it to the result")


def _dequantized(ctx: Any, dtype: torch.dtype) -> torch.Tensor:
    b = [held if tensor is None else tensor for tensor, held in zip(ctx.saved_tensors, ctx.b)]
    return torch.ops.nvfp4gemm.dequantize(*b, dtype)


def _gradients(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """The gradients of a (or of the tensor from which it was quantized), bias and c."""
    needs, (x, bias, c) = ctx.needs_input_grad, ctx.like
    rows = dy.reshape(-1, dy.shape[-1])
    dx = dbias = dc = None
    if needs[21 if ctx.source else 0]:
        dx = rows.to(x[0]) @ _dequantized(ctx, x[0])
        dx = (dx if ctx.alpha == 1 else dx * ctx.alpha).reshape(x[1])
    if needs[14]:
        dbias = rows.sum(0, dtype=torch.float32).to(bias[0])
    if needs[16]:
        dc = (dy if ctx.beta == 1 else dy * ctx.beta).to(c[0]).reshape(c[1])
    return (None if ctx.source else dx, *(None,) * 13, dbias, None, dc, *(None,) * 4,
            dx if ctx.source else None, *(None,) * 3)


torch.library.register_autograd("nvfp4gemm::mm", _gradients, setup_context=_remember_of_operator,
                                lib=library)


def differentiated() -> bool:
    """Whether the call is inside torch.func.grad, jvp or forward-mode AD. torch has no way to
    register these for custom operators."""
    if Torch.compiling():
        return False
    if _forward_ad._current_level >= 0:
        return True
    return torch._C._are_functorch_transforms_active() and any(
        one.key() in _OF_GRADIENTS for one in torch._C._functorch.get_interpreter_stack())


_OF_GRADIENTS = (torch._C._functorch.TransformType.Grad, torch._C._functorch.TransformType.Jvp)


class Product(torch.autograd.Function):
    """The operator with both modes of AD, for the transforms of torch.func."""
    generate_vmap_rule = True

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return torch.ops.nvfp4gemm.mm_without_gradient(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Sequence[Any], output: torch.Tensor) -> None:
        _remember(ctx, inputs, output)
        ctx.save_for_forward(*(t if isinstance(t, torch.Tensor) else None for t in inputs[6:13]))
        ctx.result = output.dtype, output.shape

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        _refuse_activation(ctx)
        return _gradients(ctx, dy)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> torch.Tensor | None:
        """alpha ta b^T + tbias + beta tc, where ta is the tangent of a or of the tensor from which
        it was quantized."""
        _refuse_activation(ctx)
        (dtype, shape), ta = ctx.result, tangents[21 if ctx.source else 0]
        made = None
        if ta is not None:
            made = ta @ _dequantized(ctx, ctx.like[0][0]).T
            made = (made if ctx.alpha == 1 else made * ctx.alpha).to(dtype).reshape(shape)
        for t, factor in ((tangents[14], 1), (tangents[16], ctx.beta)):
            if t is not None:
                t = (t * factor).to(dtype).expand(shape) if t.ndim == 1 else (
                    t * factor).to(dtype).reshape(shape)
                made = t if made is None else made + t
        return made


def _cast_for(device: str, operator: Callable[..., Any]) -> Callable[..., Any]:
    """The operator under autocast. An a that is not quantized is cast to autocast's type, and the
    result has that type unless out_dtype names another. bias and c are not cast."""
    def cast(a: torch.Tensor, scales: torch.Tensor | None, *arguments: Any) -> Any:
        dtype, others = torch.get_autocast_dtype(device), list(arguments)
        if scales is None and a.is_floating_point() and a.dtype != torch.float64:
            a = a.to(dtype)
        if others[11] is None:
            others[11] = dtype
        with torch.autocast(device, enabled=False):
            return operator(a, scales, *others)
    return cast


for _device, _key in (("cuda", "AutocastCUDA"), ("cpu", "AutocastCPU")):
    for _name in ("mm", "mm_without_gradient"):
        library.impl(_name, _cast_for(_device, getattr(torch.ops.nvfp4gemm, _name)), _key)


def one_by_one(operator: Callable[..., Any]) -> Callable[..., Any]:
    """The batching rule of torch.vmap that calls the operator for each member of the batch."""
    def rule(info: Any, in_dims: Sequence[int | None], *arguments: Any) -> tuple[Any, Any]:
        def member(i: int) -> Any:
            return operator(*(x if dim is None else x.select(dim, i)
                              for x, dim in zip(arguments, in_dims)))

        results = [member(i) for i in range(info.batch_size)]
        if isinstance(results[0], torch.Tensor):
            return torch.stack(results), 0
        return tuple(map(torch.stack, zip(*results))), (0,) * len(results[0])
    return rule


def _batched_mm(info: Any, in_dims: Sequence[int | None], *arguments: Any) -> tuple[Any, Any]:
    """The batching rule of mm: one product, with the batch as a leading dimension of a, if only a
    is batched; else one product for each member."""
    alone = in_dims[0] is not None and not any(dim is not None for dim in in_dims[1:])
    operator = torch.ops.nvfp4gemm.mm_without_gradient
    if not alone or arguments[1] is not None or arguments[16] is not None or (
            arguments[22] is not None):
        return one_by_one(operator)(info, in_dims, *arguments)
    return operator(arguments[0].movedim(in_dims[0], 0), *arguments[1:]), 0


for _name in ("mm", "quantize", "dequantize", "convert_scales", "gated", "grouped",
              "grouped_gated", "grouped_gated_quantized"):
    torch.library.register_vmap(f"nvfp4gemm::{_name}",
                                one_by_one(getattr(torch.ops.nvfp4gemm, _name)), lib=library)
torch.library.register_vmap("nvfp4gemm::mm_without_gradient", _batched_mm, lib=library)
# {operator: (index of k among its arguments, number of products that it computes)}
_PRODUCTS = {"mm": (12, 1), "mm_without_gradient": (12, 1), "gated": (18, 2), "grouped": (15, 1),
             "grouped_gated": (21, 2)}


def count_flops(name: str, products: int, k_of: Callable[[Sequence[Any]], int],
                shape_of: Callable[[Sequence[Any]], Any] | None = None) -> None:
    """Registers a formula with torch.utils.flop_counter: 2 m n k for each product. k_of() returns k
    from the arguments, in which tensors are given as shapes. shape_of() returns (m, n) where the
    result does not have m n elements. A counter copies the formulas when it is made, so the formula
    is also added to counters that are already active."""
    def flops(*arguments: Any, out_shape: Any = None) -> int:
        shape = out_shape if shape_of is None else shape_of(arguments)
        return 2 * products * math.prod(shape) * k_of(arguments)

    packet = getattr(torch.ops.nvfp4gemm, name)
    flop_counter.register_flop_formula(packet)(flops)
    for mode in _get_current_dispatch_mode_stack():
        if isinstance(mode, flop_counter._FlopCounterMode):
            mode.counter.flop_registry[packet] = flop_counter.flop_registry[packet]


for _name, (_place, _products) in _PRODUCTS.items():
    count_flops(_name, _products, itemgetter(_place))


count_flops("grouped_gated_quantized", 2, itemgetter(21),
            lambda arguments: (*arguments[0][:-1], arguments[20]))
