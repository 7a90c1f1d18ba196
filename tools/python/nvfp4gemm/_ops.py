# SPDX-License-Identifier: MIT
"""The calls as operators of torch, which torch.compile keeps whole, autograd differentiates and
autocast casts for, and which whatever else of torch looks at calls sees: nvfp4gemm::mm, quantize,
dequantize and convert_scales, and gated and grouped, which have no gradients, each with a meta
function. A Packed goes in and comes out as its parts.

No operator writes what it is given. Where there is an out, the operator looks at it as a call at
once does, makes a result of its own, and what is traced ends in a copy into out."""
from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from nvfp4gemm import _oldest_torch  # noqa: F401, before names that old ones lack
import torch
from torch.autograd import forward_ad as _forward_ad
from torch.utils import flop_counter
from torch._C._functorch import is_batchedtensor as _is_batched
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from nvfp4gemm import _eager
from nvfp4gemm._arrays import Torch, span
from nvfp4gemm._door import Door, size
from nvfp4gemm._gemm import Gate, Numbers
from nvfp4gemm._matrix import Matrix, block_of, layout_number, row_bytes
from nvfp4gemm._stack import Stack, product

_PACKED = ("Tensor {0}, Tensor? {0}_scales, Tensor? {0}_tensor_scale, float {0}_factor, "
           "str {0}_layout, str {0}_format")
_library = torch.library.Library("nvfp4gemm", "DEF")
# a_source: what a was quantized from, which gets a's gradient; not read.
_MM = (
    "(" + _PACKED.format("a") + ", " + _PACKED.format("b") + ", SymInt k, ScalarType? out_dtype, "
    "Tensor? bias, str? activation, Tensor? c, float alpha, float beta, bool batch_invariant, "
    "str? launch, Tensor? a_source, Tensor? out=None, str a_name='a', str b_name='b') -> Tensor")
_library.define("mm" + _MM)
_library.define("mm_without_gradient" + _MM)  # for a third of the host time
_library.define("quantize(Tensor x, Tensor? tensor_scale, float? value, str? word, "
                "str scale_layout, str format, str? scale_rule=None) -> (Tensor, Tensor, Tensor)")
_library.define(
    "gated(" + ", ".join(map(_PACKED.format, ("x", "gate", "up"))) + ", SymInt k, "
    "ScalarType? out_dtype, Tensor? gate_bias, Tensor? up_bias, str activation, float limit, "
    "float alpha, float beta, bool batch_invariant, str? launch, Tensor? out) -> Tensor")
_library.define(
    "grouped(" + _PACKED.format("x") + ", Tensor ends, " + _PACKED.format("weights") + ", "
    "int groups, SymInt rows, SymInt k, ScalarType? out_dtype, Tensor? bias, str? activation, "
    "float alpha, str? launch, int rows_hint, Tensor? out) -> Tensor")
_library.define(
    "grouped_gated(" + _PACKED.format("x") + ", Tensor ends, " +
    ", ".join(map(_PACKED.format, ("gate", "up"))) + ", int groups, SymInt rows, SymInt k, "
    "ScalarType? out_dtype, Tensor? gate_bias, Tensor? up_bias, str activation, float limit, "
    "float alpha, float beta, str? launch, int rows_hint, Tensor? out) -> Tensor")
_library.define("dequantize(" + _PACKED.format("b") + ", SymInt k, ScalarType dtype) -> Tensor")
_library.define("convert_scales(" + _PACKED.format("b") + ", SymInt k, str to) -> Tensor")


class _Seen:
    """That a tensor of codes came through the door with these other parts, or was made here. Kept
    with the codes; holds no tensor, so that memory goes when its owner does. Where arrays have
    moved since, _device looks at them again."""

    def __init__(self, matrix: Matrix) -> None:
        scale = matrix.tensor_scale
        self.scales = weakref.ref(matrix.scales)
        self.scale = scale if isinstance(scale, float) else weakref.ref(scale)
        self.layout, self.k, self.places = matrix.scale_layout, matrix.k, matrix._places
        self.format = matrix.format
        matrix.codes._nvfp4gemm = self

    def fits(self, scales: torch.Tensor, scale: Any, layout: str, format: str, k: int) -> bool:
        same = self.scale == scale if isinstance(scale, float) else (
            isinstance(self.scale, weakref.ref) and self.scale() is scale)
        return same and self.scales() is scales and (
            (self.layout, self.format, self.k) == (layout, format, k))


def _part(codes: torch.Tensor, scales: torch.Tensor | None, tensor_scale: torch.Tensor | None,
          factor: float, layout: str, format: str, k: int) -> Any:
    if scales is None:
        return codes
    scale = factor if tensor_scale is None else tensor_scale
    seen = getattr(codes, "_nvfp4gemm", None)
    if seen is None or not seen.fits(scales, scale, layout, format, k):
        matrix = Matrix(codes, scales, codes.shape[0], k, scale, layout, format)
        if matrix.codes is codes and matrix.scales is scales:  # no copies, which would be lost
            _Seen(matrix)
        return matrix
    return Matrix.of_seen(seen.places, codes, scales, codes.shape[0], k, scale, layout,
                          format)


@torch.library.impl(_library, "mm", "CompositeExplicitAutograd")
@torch.library.impl(_library, "mm_without_gradient", "CompositeExplicitAutograd")
def _mm(a: torch.Tensor, a_scales: torch.Tensor | None, a_tensor_scale: torch.Tensor | None,
        a_factor: float, a_layout: str, a_format: str, b: torch.Tensor, b_scales: torch.Tensor,
        b_tensor_scale: torch.Tensor | None, b_factor: float, b_layout: str, b_format: str, k: int,
        out_dtype: torch.dtype | None, bias: torch.Tensor | None, activation: str | None,
        c: torch.Tensor | None, alpha: float, beta: float, batch_invariant: bool,
        launch: str | None, _a_source: torch.Tensor | None, out: torch.Tensor | None = None,
        a_name: str = "a", b_name: str = "b") -> torch.Tensor:
    one = _part(a, a_scales, a_tensor_scale, a_factor, a_layout, a_format, k)
    two = _part(b, b_scales, b_tensor_scale, b_factor, b_layout, b_format, k)
    numbers = Numbers(alpha=alpha, beta=beta, activation=activation, launch=launch,
                      batch_invariant=batch_invariant)
    d = _eager.mm(one, two, out_dtype, bias, c, None, numbers, (a_name, b_name))
    if out is not None:
        rows = _as_written(out, two, b_name, d.shape)
        _apart(rows, a, a_scales, a_tensor_scale, b, b_scales, b_tensor_scale, bias)
        if c is not None and not _is_same(rows, c):
            _apart(rows, c)
    return d


def _as_written(out: torch.Tensor | None, b: Matrix, name: str,
                shape: Sequence[int]) -> torch.Tensor:
    """out [.., n] as the rows of a result, where a call at once would write there."""
    rows, _ = b.door(name).result(out, "out", math.prod(shape[:-1]), shape[-1])
    return rows


def _apart(out: torch.Tensor, *read: torch.Tensor | None) -> None:
    begin, end = span(out)
    for x in read:
        if x is not None:
            first, last = span(x)
            if first < end and begin < last:
                raise ValueError("out shares memory with what is read")


def _is_same(out: torch.Tensor, c: torch.Tensor) -> bool:
    """Whether c is out, which may be added to itself."""
    c = c.reshape(out.shape)
    return (c.data_ptr(), c.dtype, c.stride()) == (out.data_ptr(), out.dtype, out.stride())


def _together(one: torch.Tensor, what: str, others: Mapping[str, torch.Tensor | None]) -> None:
    """Raises where another operand lies elsewhere."""
    for name, operand in others.items():
        if operand is not None and operand.device != one.device:
            raise ValueError(f"{name} lies on {operand.device}, {what} on {one.device}")


def _result_type(a: torch.Tensor, a_scales: torch.Tensor | None,
                 out_dtype: torch.dtype | None) -> torch.dtype:
    if out_dtype is not None:
        return out_dtype
    return torch.float16 if a_scales is not None else a.dtype


@torch.library.register_fake("nvfp4gemm::mm", lib=_library)
@torch.library.register_fake("nvfp4gemm::mm_without_gradient", lib=_library)
def _mm_meta(a: torch.Tensor, a_scales: torch.Tensor | None, a_tensor_scale: torch.Tensor | None,
             a_factor: float, a_layout: str, a_format: str, b: torch.Tensor, b_scales: torch.Tensor,
             b_tensor_scale: torch.Tensor | None, b_factor: float, b_layout: str, b_format: str,
             k: int, out_dtype: torch.dtype | None, bias: torch.Tensor | None,
             activation: str | None, c: torch.Tensor | None, alpha: float, beta: float,
             batch_invariant: bool, launch: str | None, a_source: torch.Tensor | None,
             out: torch.Tensor | None = None, a_name: str = "a", b_name: str = "b") -> torch.Tensor:
    _together(b, b_name, {
        a_name: a, f"{a_name}'s scales": a_scales, f"{a_name}'s tensor_scale": a_tensor_scale,
        f"{b_name}'s scales": b_scales, f"{b_name}'s tensor_scale": b_tensor_scale, "bias": bias,
        "c": c})
    return _made(a, a_scales, b.shape[0], out_dtype, out, a_name)


def _made(x: torch.Tensor, x_scales: torch.Tensor | None, n: int, out_dtype: torch.dtype | None,
          out: torch.Tensor | None, name: str = "x") -> torch.Tensor:
    """The result of a meta function, after a look at what may be known of out. The caller calls
    x so."""
    shape = (*x.shape[:-1], n)
    if out is not None:
        _together(x, name, {"out": out})
        if out.shape[-1:] != shape[-1:] or out.numel() != math.prod(shape):
            raise ValueError(f"out is {tuple(out.shape)}, expected {tuple(shape)}")
    return x.new_empty(shape, dtype=_result_type(x, x_scales, out_dtype))


def _remember(ctx: Any, inputs: Sequence[Any], output: torch.Tensor) -> None:
    """What the gradients of y = alpha a b^T + beta c + bias need: b, and types and shapes."""
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
    """Of a or its source, of bias and of c."""
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
                                lib=_library)


def _differentiated() -> bool:
    """Inside a gradient of torch.func or forward-mode AD, which torch does not teach operators."""
    if Torch.compiling():
        return False
    if _forward_ad._current_level >= 0:
        return True
    return torch._C._are_functorch_transforms_active() and any(
        one.key() in _OF_GRADIENTS for one in torch._C._functorch.get_interpreter_stack())


_OF_GRADIENTS = (torch._C._functorch.TransformType.Grad, torch._C._functorch.TransformType.Jvp)


class _Product(torch.autograd.Function):
    """The operator in both modes of AD, and in the transforms of torch.func."""
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
        """alpha ta b^T + tbias + beta tc, where ta is a's tangent or its source's."""
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
    """The operator under autocast: a in autocast's type where it is not quantized, and so is the
    result unless out_dtype says more. Bias and c are read in their own types."""
    def cast(a: torch.Tensor, a_scales: torch.Tensor | None, *arguments: Any) -> Any:
        dtype, others = torch.get_autocast_dtype(device), list(arguments)
        if a_scales is None and a.is_floating_point() and a.dtype != torch.float64:
            a = a.to(dtype)
        if others[11] is None:
            others[11] = dtype
        with torch.autocast(device, enabled=False):
            return operator(a, a_scales, *others)
    return cast


for _device, _key in (("cuda", "AutocastCUDA"), ("cpu", "AutocastCPU")):
    for _name in ("mm", "mm_without_gradient"):
        _library.impl(_name, _cast_for(_device, getattr(torch.ops.nvfp4gemm, _name)), _key)


@torch.library.impl(_library, "quantize", "CompositeExplicitAutograd")
def _quantize(x: torch.Tensor, tensor_scale: torch.Tensor | None, value: float | None,
              word: str | None, scale_layout: str, format: str,
              scale_rule: str | None = None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    given = next((one for one in (tensor_scale, value, word) if one is not None), None)
    codes, scales, rows, k, scale, *_ = _eager.quantize(x, given, scale_layout, format,
                                                          scale_rule)
    if not isinstance(scale, torch.Tensor):
        scale = torch.full((), scale, dtype=torch.float32, device=x.device)
    elif tensor_scale is not None:
        scale = scale.clone()  # an operator does not return what it was given
    if format == "nvfp4":  # the others' tensor scale is 1.0, no tensor
        _Seen(Matrix.of_own(Torch, codes, scales, rows, k, scale, scale_layout))
    else:
        _Seen(Matrix.of_own(Torch, codes, scales, rows, k, 1.0, scale_layout, format))
    return codes, scales, scale


def _count_of_scales(rows: int, k: int, layout: str, format: str) -> int:
    """nvfp4_scale_bytes_for(), of sizes that may be symbols."""
    across = k // block_of(format)
    if layout == "linear":
        return rows * across
    return (rows + 127) // 128 * 128 * ((across + 3) // 4 * 4)


@torch.library.register_fake("nvfp4gemm::quantize", lib=_library)
def _quantize_meta(x: torch.Tensor, tensor_scale: torch.Tensor | None, value: float | None,
                   word: str | None, scale_layout: str, format: str, scale_rule: str | None = None
                   ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rows, k = math.prod(x.shape[:-1]), x.shape[-1]
    scales = _count_of_scales(rows, k, scale_layout, format)
    return (x.new_empty((rows, row_bytes(k)), dtype=torch.uint8),
            x.new_empty((scales,), dtype=torch.uint8),
            x.new_empty((rows,) if word else (), dtype=torch.float32))


@torch.library.impl(_library, "dequantize", "CompositeExplicitAutograd")
def _dequantize(b: torch.Tensor, b_scales: torch.Tensor, b_tensor_scale: torch.Tensor | None,
                b_factor: float, b_layout: str, b_format: str, k: int,
                dtype: torch.dtype) -> torch.Tensor:
    return _eager.dequantize(
        _part(b, b_scales, b_tensor_scale, b_factor, b_layout, b_format, k), dtype)


@torch.library.register_fake("nvfp4gemm::dequantize", lib=_library)
def _dequantize_meta(b: torch.Tensor, b_scales: torch.Tensor, b_tensor_scale: torch.Tensor | None,
                     b_factor: float, b_layout: str, b_format: str, k: int,
                     dtype: torch.dtype) -> torch.Tensor:
    return b.new_empty((b.shape[0], k), dtype=dtype)


@torch.library.impl(_library, "convert_scales", "CompositeExplicitAutograd")
def _convert_scales(b: torch.Tensor, b_scales: torch.Tensor, b_tensor_scale: torch.Tensor | None,
                    b_factor: float, b_layout: str, b_format: str, k: int, to: str) -> torch.Tensor:
    part = _part(b, b_scales, b_tensor_scale, b_factor, b_layout, b_format, k)
    return _eager.with_scales(part, to).scales


@torch.library.register_fake("nvfp4gemm::convert_scales", lib=_library)
def _convert_scales_meta(b: torch.Tensor, b_scales: torch.Tensor,
                         b_tensor_scale: torch.Tensor | None, b_factor: float, b_layout: str,
                         b_format: str, k: int, to: str) -> torch.Tensor:
    return b.new_empty((_count_of_scales(b.shape[0], k, to, b_format),), dtype=torch.uint8)


@torch.library.impl(_library, "gated", "CompositeExplicitAutograd")
def _gated(x: torch.Tensor, x_scales: torch.Tensor | None, x_tensor_scale: torch.Tensor | None,
           x_factor: float, x_layout: str, x_format: str, gate: torch.Tensor,
           gate_scales: torch.Tensor, gate_tensor_scale: torch.Tensor | None, gate_factor: float,
           gate_layout: str, gate_format: str, up: torch.Tensor, up_scales: torch.Tensor,
           up_tensor_scale: torch.Tensor | None, up_factor: float, up_layout: str, up_format: str,
           k: int, out_dtype: torch.dtype | None, gate_bias: torch.Tensor | None,
           up_bias: torch.Tensor | None, activation: str | None, limit: float, alpha: float,
           beta: float, batch_invariant: bool, launch: str | None,
           out: torch.Tensor | None) -> torch.Tensor:
    second = Gate(_part(up, up_scales, up_tensor_scale, up_factor, up_layout, up_format, k),
                  up_bias, limit=limit, alpha=alpha, beta=beta)
    numbers = Numbers(activation=activation, launch=launch, batch_invariant=batch_invariant)
    first = _part(gate, gate_scales, gate_tensor_scale, gate_factor, gate_layout, gate_format, k)
    d = _eager.mm(_part(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, k), first,
                  out_dtype, gate_bias, None, None, numbers, names=("x", "gate", "up"), gate=second)
    if out is not None:
        _apart(_as_written(out, first, "gate", d.shape), x, x_scales, x_tensor_scale, gate,
               gate_scales, gate_tensor_scale, gate_bias, up, up_scales, up_tensor_scale, up_bias)
    return d


@torch.library.register_fake("nvfp4gemm::gated", lib=_library)
def _gated_meta(x: torch.Tensor, x_scales: torch.Tensor | None, x_tensor_scale: torch.Tensor | None,
                x_factor: float, x_layout: str, x_format: str, gate: torch.Tensor,
                gate_scales: torch.Tensor, gate_tensor_scale: torch.Tensor | None,
                gate_factor: float, gate_layout: str, gate_format: str, up: torch.Tensor,
                up_scales: torch.Tensor, up_tensor_scale: torch.Tensor | None, up_factor: float,
                up_layout: str, up_format: str, k: int, out_dtype: torch.dtype | None,
                gate_bias: torch.Tensor | None, up_bias: torch.Tensor | None,
                activation: str | None, limit: float, alpha: float, beta: float,
                batch_invariant: bool, launch: str | None,
                out: torch.Tensor | None) -> torch.Tensor:
    _together(gate, "gate", {"x": x, "up": up, "gate_bias": gate_bias, "up_bias": up_bias})
    return _made(x, x_scales, gate.shape[0], out_dtype, out)


def _stack(codes: torch.Tensor, scales: torch.Tensor, tensor_scale: torch.Tensor | None,
           factor: float, layout: str, format: str, groups: int, rows: int, k: int) -> Stack:
    return Stack(codes.reshape(groups, rows, codes.shape[1]), scales, groups, rows, k,
                 factor if tensor_scale is None else tensor_scale, layout, format)


@torch.library.impl(_library, "grouped", "CompositeExplicitAutograd")
def _grouped(x: torch.Tensor, x_scales: torch.Tensor | None, x_tensor_scale: torch.Tensor | None,
             x_factor: float, x_layout: str, x_format: str, ends: torch.Tensor,
             weights: torch.Tensor, weights_scales: torch.Tensor,
             weights_tensor_scale: torch.Tensor | None, weights_factor: float, weights_layout: str,
             weights_format: str, groups: int, rows: int, k: int, out_dtype: torch.dtype | None,
             bias: torch.Tensor | None, activation: str | None, alpha: float, launch: str | None,
             rows_hint: int, out: torch.Tensor | None) -> torch.Tensor:
    stack = _stack(weights, weights_scales, weights_tensor_scale, weights_factor, weights_layout,
                   weights_format, groups, rows, k)
    held = None if out is None else _held(out, stack, "weights", (*x.shape[:-1], rows), ends, x,
                                          x_scales, x_tensor_scale, weights, weights_scales,
                                          weights_tensor_scale, bias)
    d = product(_part(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, k), ends, stack,
                out_dtype, bias, held, Numbers(alpha=alpha, activation=activation, launch=launch),
                rows_hint)
    return d.reshape(*x.shape[:-1], rows)


def _held(out: torch.Tensor, b: Matrix, name: str, shape: Sequence[int],
          *read: torch.Tensor | None) -> torch.Tensor:
    """A copy of out's rows, of which a grouped product leaves those of no group as they are."""
    rows = _as_written(out, b, name, shape)
    _apart(rows, *read)
    return Torch.copy(rows)


@torch.library.register_fake("nvfp4gemm::grouped", lib=_library)
def _grouped_meta(x: torch.Tensor, x_scales: torch.Tensor | None,
                  x_tensor_scale: torch.Tensor | None, x_factor: float, x_layout: str,
                  x_format: str, ends: torch.Tensor, weights: torch.Tensor,
                  weights_scales: torch.Tensor, weights_tensor_scale: torch.Tensor | None,
                  weights_factor: float, weights_layout: str, weights_format: str, groups: int,
                  rows: int, k: int, out_dtype: torch.dtype | None, bias: torch.Tensor | None,
                  activation: str | None, alpha: float, launch: str | None, rows_hint: int,
                  out: torch.Tensor | None) -> torch.Tensor:
    _together(weights, "weights", {"x": x, "ends": ends, "bias": bias})
    return _made(x, x_scales, rows, out_dtype, out)


@torch.library.impl(_library, "grouped_gated", "CompositeExplicitAutograd")
def _grouped_gated(x: torch.Tensor, x_scales: torch.Tensor | None,
                   x_tensor_scale: torch.Tensor | None, x_factor: float, x_layout: str,
                   x_format: str, ends: torch.Tensor, gate: torch.Tensor, gate_scales: torch.Tensor,
                   gate_tensor_scale: torch.Tensor | None, gate_factor: float, gate_layout: str,
                   gate_format: str, up: torch.Tensor, up_scales: torch.Tensor,
                   up_tensor_scale: torch.Tensor | None, up_factor: float, up_layout: str,
                   up_format: str, groups: int, rows: int, k: int, out_dtype: torch.dtype | None,
                   gate_bias: torch.Tensor | None, up_bias: torch.Tensor | None,
                   activation: str | None, limit: float, alpha: float, beta: float,
                   launch: str | None, rows_hint: int, out: torch.Tensor | None) -> torch.Tensor:
    first = _stack(gate, gate_scales, gate_tensor_scale, gate_factor, gate_layout, gate_format,
                   groups, rows, k)
    second = Gate(_stack(up, up_scales, up_tensor_scale, up_factor, up_layout, up_format, groups,
                         rows, k), up_bias, limit=limit, alpha=alpha, beta=beta)
    held = None if out is None else _held(
        out, first, "gate", (*x.shape[:-1], rows), ends, x, x_scales, x_tensor_scale, gate,
        gate_scales, gate_tensor_scale, gate_bias, up, up_scales, up_tensor_scale, up_bias)
    d = product(_part(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, k), ends, first,
                out_dtype, gate_bias, held, Numbers(activation=activation, launch=launch),
                rows_hint, second)
    return d.reshape(*x.shape[:-1], rows)


@torch.library.register_fake("nvfp4gemm::grouped_gated", lib=_library)
def _grouped_gated_meta(x: torch.Tensor, x_scales: torch.Tensor | None,
                        x_tensor_scale: torch.Tensor | None, x_factor: float, x_layout: str,
                        x_format: str, ends: torch.Tensor, gate: torch.Tensor,
                        gate_scales: torch.Tensor, gate_tensor_scale: torch.Tensor | None,
                        gate_factor: float, gate_layout: str, gate_format: str, up: torch.Tensor,
                        up_scales: torch.Tensor, up_tensor_scale: torch.Tensor | None,
                        up_factor: float, up_layout: str, up_format: str, groups: int, rows: int,
                        k: int, out_dtype: torch.dtype | None, gate_bias: torch.Tensor | None,
                        up_bias: torch.Tensor | None, activation: str | None, limit: float,
                        alpha: float, beta: float, launch: str | None, rows_hint: int,
                        out: torch.Tensor | None) -> torch.Tensor:
    _together(gate, "gate", {"x": x, "ends": ends, "up": up, "gate_bias": gate_bias,
                             "up_bias": up_bias})
    return _made(x, x_scales, rows, out_dtype, out)


def _one_by_one(operator: Callable[..., Any]) -> Callable[..., Any]:
    """The batching rule of torch.vmap: a call for each member of the batch."""
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
    """One product where a alone has the batch, as its leading dimension."""
    alone = in_dims[0] is not None and not any(dim is not None for dim in in_dims[1:])
    operator = torch.ops.nvfp4gemm.mm_without_gradient
    if not alone or arguments[1] is not None or arguments[16] is not None or (
            arguments[22] is not None):
        return _one_by_one(operator)(info, in_dims, *arguments)
    return operator(arguments[0].movedim(in_dims[0], 0), *arguments[1:]), 0


for _name in ("mm", "quantize", "dequantize", "convert_scales", "gated", "grouped",
              "grouped_gated"):
    torch.library.register_vmap(f"nvfp4gemm::{_name}",
                                _one_by_one(getattr(torch.ops.nvfp4gemm, _name)), lib=_library)
torch.library.register_vmap("nvfp4gemm::mm_without_gradient", _batched_mm, lib=_library)


# Operators that multiply: the place of k among the arguments, and how many products they make.
_PRODUCTS = {"mm": (12, 1), "mm_without_gradient": (12, 1), "gated": (18, 2), "grouped": (15, 1),
             "grouped_gated": (21, 2)}


def _count_flops() -> None:
    """For torch.utils.flop_counter: 2 m n k for each product. A counter has the formulas of the
    time at which it was made, so those that count already are given ours."""
    counters = [mode.counter for mode in _get_current_dispatch_mode_stack()
                if isinstance(mode, flop_counter._FlopCounterMode)]
    for name, (place, products) in _PRODUCTS.items():
        def flops(*arguments: Any, out_shape: Any = None, place: int = place,
                  products: int = products) -> int:
            return 2 * products * math.prod(out_shape) * arguments[place]

        packet = getattr(torch.ops.nvfp4gemm, name)
        flop_counter.register_flop_formula(packet)(flops)
        for counter in counters:
            counter.flop_registry[packet] = flop_counter.flop_registry[packet]


_count_flops()


def _parts(x: Any) -> tuple[Any, ...]:
    """A Packed or a tensor as the operators take it."""
    if not isinstance(x, Matrix):
        return x, None, None, 1.0, "", ""
    tensor = isinstance(x.tensor_scale, torch.Tensor)
    return (x.codes, x.scales, x.tensor_scale if tensor else None,
            1.0 if tensor else x.tensor_scale, x.scale_layout, x.format)


def _looked_at(b: Matrix, name: str, n: int, first: Any, out_dtype: Any, out: torch.Tensor | None,
               /, **operands: Any) -> torch.dtype | None:
    """The result's type. Operands go through the door of a call at once here, before torch casts,
    traces or copies them; those that stand for tensors, and all that torch.compile traces, when the
    operator runs. The result has n columns, and as many rows as `first`."""
    door = b.door(name)
    for what, operand in operands.items():
        if operand is not None:
            _look(door, operand, what)
    if out is None:
        return out_dtype
    if _look(door, out, "out"):
        m = first.rows if isinstance(first, Matrix) else math.prod(first.shape[:-1])
        door.result(out, "out", m, n)
    elif not Torch.writable(out):
        raise ValueError("out must not be written: it requires a gradient")
    _eager.result_type(Torch, first, out_dtype, out)
    return out.dtype


def _look(door: Door, operand: Any, what: str) -> bool:
    """Whether the operand is a tensor with memory, and none that stands for one."""
    packed = isinstance(operand, Matrix)
    door.together(operand.codes if packed else operand, what)
    if Torch.compiling() or Torch.traced(operand.codes if packed else operand):
        return False
    if not packed:
        door.array(operand, what)
    return True


def mm(a: Any, b: Matrix, out_dtype: Any, bias: torch.Tensor | None, c: torch.Tensor | None,
       out: torch.Tensor | None, numbers: Numbers, a_source: torch.Tensor | None, gradient: bool,
       names: tuple[str, ...]) -> torch.Tensor:
    """`gradient` is whether an operand requires one, `names` what the caller calls a and b."""
    out_dtype = _looked_at(b, names[1], b.rows, a, out_dtype, out,
                           **{names[0]: a, "bias": bias, "c": c})
    numbers, activation = _eager.with_floats(numbers), numbers.activation
    arguments = (*_parts(a), *_parts(b), b.k, out_dtype, bias, activation, c, numbers.alpha,
                 numbers.beta, numbers.batch_invariant, numbers.launch, a_source, out, *names)
    if _differentiated():
        wanting = Torch.first_with_tangent(a if a_source is None else a_source, bias, c)
        if wanting is not None and (activation is not None or out is not None):
            has = f"activation={activation!r}" if activation is not None else "out"
            raise ValueError(f"{(names[0], 'bias', 'c')[wanting]} has a tangent of forward-mode "
                             f"AD, which a product with {has} does not have")
        return _into(out, _Product.apply(*arguments))
    operator = torch.ops.nvfp4gemm.mm if gradient else torch.ops.nvfp4gemm.mm_without_gradient
    return _into(out, operator(*arguments))


def _into(out: torch.Tensor | None, d: torch.Tensor) -> torch.Tensor:
    if out is None:
        return d
    if not Torch.compiling() and _is_batched(d) and not _is_batched(out):
        raise ValueError("out is one array, and torch.vmap has a result for each member of its "
                         "batch; leave out away")
    with torch.inference_mode(out.is_inference()) if _of_inference(out) else nullcontext():
        return out.copy_(d.reshape(out.shape))


def _of_inference(out: torch.Tensor) -> bool:
    """Whether out may be written in inference mode alone."""
    return not Torch.compiling() and out.is_inference() and not torch.is_inference_mode_enabled()


def gated(x: Any, gate: Matrix, out_dtype: Any, bias: torch.Tensor | None,
          out: torch.Tensor | None, numbers: Numbers, second: Gate) -> torch.Tensor:
    """`second` is a Gate."""
    out_dtype = _looked_at(gate, "gate", gate.rows, x, out_dtype, out, x=x, gate_bias=bias,
                           up=second.b2, up_bias=second.bias2)
    return _into(out, torch.ops.nvfp4gemm.gated(
        *_parts(x), *_parts(gate), *_parts(second.b2), gate.k, out_dtype, bias, second.bias2,
        numbers.activation, second.limit, second.alpha, second.beta, numbers.batch_invariant,
        numbers.launch, out))


def grouped(x: Any, ends: torch.Tensor, weights: Stack, out_dtype: Any, bias: torch.Tensor | None,
            out: torch.Tensor | None, numbers: Numbers, rows_hint: int) -> torch.Tensor:
    out_dtype = _looked_at(weights, "weights", weights.rows_of_a_group, x, out_dtype, out, x=x,
                           ends=ends, bias=bias)
    return _into(out, torch.ops.nvfp4gemm.grouped(
        *_parts(x), ends, *_parts(weights), weights.groups, weights.rows_of_a_group, weights.k,
        out_dtype, bias, numbers.activation, _eager.with_floats(numbers).alpha, numbers.launch,
        size(rows_hint, "rows_hint"), out))


def grouped_gated(x: Any, ends: torch.Tensor, gate: Stack, out_dtype: Any,
                  bias: torch.Tensor | None, out: torch.Tensor | None, numbers: Numbers,
                  rows_hint: int, second: Gate) -> torch.Tensor:
    """`second` is a Gate."""
    out_dtype = _looked_at(gate, "gate", gate.rows_of_a_group, x, out_dtype, out, x=x, ends=ends,
                           gate_bias=bias, up=second.b2, up_bias=second.bias2)
    return _into(out, torch.ops.nvfp4gemm.grouped_gated(
        *_parts(x), ends, *_parts(gate), *_parts(second.b2), gate.groups, gate.rows_of_a_group,
        gate.k, out_dtype, bias, second.bias2, numbers.activation, second.limit, second.alpha,
        second.beta, numbers.launch, size(rows_hint, "rows_hint"), out))


def quantize(x: torch.Tensor, tensor_scale: Any, scale_layout: str, format: str,
             scale_rule: str | None) -> tuple[Any, ...]:
    tensor, word = isinstance(tensor_scale, torch.Tensor), isinstance(tensor_scale, str)
    door = Door(x, "x")
    _look(door, x, "x")
    if tensor_scale is not None and not word and not tensor:
        tensor_scale = door.scale(tensor_scale, "tensor_scale")
    codes, scales, scale = torch.ops.nvfp4gemm.quantize(
        _without_tangent(x.detach()), tensor_scale if tensor else None,
        None if tensor or word else tensor_scale, tensor_scale if word else None, scale_layout,
        format, scale_rule)
    return (codes, scales, codes.shape[0], x.shape[-1], scale if format == "nvfp4" else 1.0,
            scale_layout, format)


def _without_tangent(x: torch.Tensor) -> torch.Tensor:
    """x, through which nothing passes in quantize()."""
    if _forward_ad._current_level < 0:
        return x
    return _forward_ad.unpack_dual(x).primal


def dequantize(packed: Matrix, dtype: torch.dtype | None) -> torch.Tensor:
    dtype = torch.float32 if dtype is None else dtype
    _eager.float_type(Torch, dtype, "dtype")
    return torch.ops.nvfp4gemm.dequantize(*_parts(packed), packed.k, dtype)


def with_scales(packed: Matrix, scale_layout: str) -> Matrix:
    layout_number(scale_layout)
    if scale_layout == packed.scale_layout:
        return packed
    scales = torch.ops.nvfp4gemm.convert_scales(*_parts(packed), packed.k, scale_layout)
    return packed.replace(scales=scales, scale_layout=scale_layout)
