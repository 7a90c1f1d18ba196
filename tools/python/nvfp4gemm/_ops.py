# SPDX-License-Identifier: MIT
"""The calls as operators of torch, which torch.compile keeps whole, autograd differentiates and
autocast casts for: nvfp4gemm::mm, nvfp4gemm::quantize and nvfp4gemm::dequantize, and gated and
grouped, which have no gradients, each with a meta function. A Packed goes in and comes out as its
parts."""
import math
import weakref

import torch

from nvfp4gemm import _eager
from nvfp4gemm._arrays import Torch
from nvfp4gemm._gemm import Gate
from nvfp4gemm._matrix import Matrix, block_of, row_bytes
from nvfp4gemm._stack import Stack, product

_PACKED = ("Tensor {0}, Tensor? {0}_scales, Tensor? {0}_tensor_scale, float {0}_factor, "
           "str {0}_layout, str {0}_format")
_library = torch.library.Library("nvfp4gemm", "DEF")
# a_source: what a was quantized from, which gets a's gradient; not read.
_MM = (
    "(" + _PACKED.format("a") + ", " + _PACKED.format("b") + ", SymInt k, ScalarType? out_dtype, "
    "Tensor? bias, str? activation, Tensor? c, float alpha, float beta, bool batch_invariant, "
    "str? launch, Tensor? a_source) -> Tensor")
_library.define("mm" + _MM)
_library.define("mm_without_gradient" + _MM)  # for a third of the host time
_library.define("quantize(Tensor x, Tensor? tensor_scale, float? value, str? word, "
                "str scale_layout, str format) -> (Tensor, Tensor, Tensor)")
_library.define(
    "gated(" + ", ".join(map(_PACKED.format, ("x", "gate", "up"))) + ", SymInt k, "
    "ScalarType? out_dtype, Tensor? gate_bias, Tensor? up_bias, str activation, float limit, "
    "float alpha, float beta, bool batch_invariant, str? launch) -> Tensor")
_library.define(
    "grouped(" + _PACKED.format("x") + ", Tensor ends, " + _PACKED.format("weights") + ", "
    "int groups, SymInt rows, SymInt k, ScalarType? out_dtype, Tensor? bias, str? activation, "
    "float alpha, str? launch, int rows_hint) -> Tensor")
_library.define(
    "grouped_gated(" + _PACKED.format("x") + ", Tensor ends, " +
    ", ".join(map(_PACKED.format, ("gate", "up"))) + ", int groups, SymInt rows, SymInt k, "
    "ScalarType? out_dtype, Tensor? gate_bias, Tensor? up_bias, str activation, float limit, "
    "float alpha, float beta, str? launch, int rows_hint) -> Tensor")
_library.define("dequantize(" + _PACKED.format("b") + ", SymInt k, ScalarType dtype) -> Tensor")


class _Seen:
    """That a tensor of codes came through the door with these other parts, or was made here. Kept
    with the codes; holds no tensor, so that memory goes when its owner does. Where arrays have
    moved since, _device looks at them again."""

    def __init__(self, matrix):
        scale = matrix.tensor_scale
        self.scales = weakref.ref(matrix.scales)
        self.scale = scale if isinstance(scale, float) else weakref.ref(scale)
        self.layout, self.k, self.places = matrix.scale_layout, matrix.k, matrix._places
        self.format = matrix.format
        matrix.codes._nvfp4gemm = self

    def fits(self, scales, scale, layout, format, k):
        same = self.scale == scale if isinstance(scale, float) else (
            isinstance(self.scale, weakref.ref) and self.scale() is scale)
        return same and self.scales() is scales and (
            (self.layout, self.format, self.k) == (layout, format, k))


def _part(codes, scales, tensor_scale, factor, layout, format, k):
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
def _mm(a, a_scales, a_tensor_scale, a_factor, a_layout, a_format, b, b_scales, b_tensor_scale,
        b_factor, b_layout, b_format, k, out_dtype, bias, activation, c, alpha, beta,
        batch_invariant, launch, _a_source):
    return _eager.mm(_part(a, a_scales, a_tensor_scale, a_factor, a_layout, a_format, k),
                     _part(b, b_scales, b_tensor_scale, b_factor, b_layout, b_format, k), out_dtype,
                     bias, activation, c, alpha, beta, None, batch_invariant, launch)


def _together(one, what, others):
    """Raises where another operand lies elsewhere."""
    for name, operand in others.items():
        if operand is not None and operand.device != one.device:
            raise ValueError(f"{name} lies on {operand.device}, {what} on {one.device}")


def _result_type(a, a_scales, out_dtype):
    if out_dtype is not None:
        return out_dtype
    return torch.float16 if a_scales is not None else a.dtype


@torch.library.register_fake("nvfp4gemm::mm", lib=_library)
@torch.library.register_fake("nvfp4gemm::mm_without_gradient", lib=_library)
def _mm_meta(a, a_scales, a_tensor_scale, a_factor, a_layout, a_format, b, b_scales, b_tensor_scale,
             b_factor, b_layout, b_format, k, out_dtype, bias, activation, c, alpha, beta,
             batch_invariant, launch, a_source):
    _together(b, "b", {"a": a, "a's scales": a_scales, "a's tensor_scale": a_tensor_scale,
                       "b's scales": b_scales, "b's tensor_scale": b_tensor_scale, "bias": bias,
                       "c": c})
    return a.new_empty((*a.shape[:-1], b.shape[0]), dtype=_result_type(a, a_scales, out_dtype))


def _remember(ctx, inputs, output):
    """What the gradients of y = alpha a b^T + beta c + bias need: b, and types and shapes."""
    a, bias, c, a_source = inputs[0], inputs[14], inputs[16], inputs[21]
    if inputs[15] is not None:
        raise ValueError(f"a gradient is required, and activation {inputs[15]!r} inside the "
                         "product has none; apply it to the result")
    x = a if a_source is None else a_source
    ctx.b, ctx.alpha, ctx.beta = inputs[6:13], inputs[17], inputs[18]
    ctx.save_for_backward(*(t for t in ctx.b if isinstance(t, torch.Tensor)))
    ctx.like = [None if t is None else (t.dtype, t.shape) for t in (x, bias, c)]
    ctx.source = a_source is not None


def _gradients(ctx, dy):
    """Of a or its source, of bias and of c."""
    saved = iter(ctx.saved_tensors)
    b = [next(saved) if isinstance(t, torch.Tensor) else t for t in ctx.b]
    n = b[0].shape[0]
    needs, (x, bias, c) = ctx.needs_input_grad, ctx.like
    rows = dy.reshape(-1, n)
    dx = dbias = dc = None
    if needs[21 if ctx.source else 0]:
        w = torch.ops.nvfp4gemm.dequantize(*b, x[0])
        dx = rows.to(x[0]) @ w
        dx = (dx if ctx.alpha == 1 else dx * ctx.alpha).reshape(x[1])
    if needs[14]:
        dbias = rows.sum(0, dtype=torch.float32).to(bias[0])
    if needs[16]:
        dc = (dy if ctx.beta == 1 else dy * ctx.beta).to(c[0]).reshape(c[1])
    return (None if ctx.source else dx, *(None,) * 13, dbias, None, dc, *(None,) * 4,
            dx if ctx.source else None)


torch.library.register_autograd("nvfp4gemm::mm", _gradients, setup_context=_remember, lib=_library)


def _cast_for(device, operator):
    """The operator under autocast: a in autocast's type where it is not quantized, and so is the
    result unless out_dtype says more. Bias and c are read in their own types."""
    def cast(a, a_scales, *arguments):
        dtype, arguments = torch.get_autocast_dtype(device), list(arguments)
        if a_scales is None and a.is_floating_point() and a.dtype != torch.float64:
            a = a.to(dtype)
        if arguments[11] is None:
            arguments[11] = dtype
        with torch.autocast(device, enabled=False):
            return operator(a, a_scales, *arguments)
    return cast


for _device, _key in (("cuda", "AutocastCUDA"), ("cpu", "AutocastCPU")):
    for _name in ("mm", "mm_without_gradient"):
        _library.impl(_name, _cast_for(_device, getattr(torch.ops.nvfp4gemm, _name)), _key)


@torch.library.impl(_library, "quantize", "CompositeExplicitAutograd")
def _quantize(x, tensor_scale, value, word, scale_layout, format):
    given = next((one for one in (tensor_scale, value, word) if one is not None), None)
    codes, scales, rows, k, scale, *_ = _eager.quantize(x, given, scale_layout, format)
    if not isinstance(scale, torch.Tensor):
        scale = torch.full((), scale, dtype=torch.float32, device=x.device)
    elif tensor_scale is not None:
        scale = scale.clone()  # an operator does not return what it was given
    if format == "nvfp4":  # the others' tensor scale is 1.0, no tensor
        _Seen(Matrix.of_own(Torch, codes, scales, rows, k, scale, scale_layout))
    else:
        _Seen(Matrix.of_own(Torch, codes, scales, rows, k, 1.0, scale_layout, format))
    return codes, scales, scale


@torch.library.register_fake("nvfp4gemm::quantize", lib=_library)
def _quantize_meta(x, tensor_scale, value, word, scale_layout, format):
    rows, k, block = math.prod(x.shape[:-1]), x.shape[-1], block_of(format)
    if scale_layout == "linear":
        scales = rows * (k // block)
    else:
        scales = (rows + 127) // 128 * 128 * ((k // block + 3) // 4 * 4)
    return (x.new_empty((rows, row_bytes(k)), dtype=torch.uint8),
            x.new_empty((scales,), dtype=torch.uint8),
            x.new_empty((rows,) if word else (), dtype=torch.float32))


@torch.library.impl(_library, "dequantize", "CompositeExplicitAutograd")
def _dequantize(b, b_scales, b_tensor_scale, b_factor, b_layout, b_format, k, dtype):
    return _eager.dequantize(
        _part(b, b_scales, b_tensor_scale, b_factor, b_layout, b_format, k), dtype)


@torch.library.register_fake("nvfp4gemm::dequantize", lib=_library)
def _dequantize_meta(b, b_scales, b_tensor_scale, b_factor, b_layout, b_format, k, dtype):
    return b.new_empty((b.shape[0], k), dtype=dtype)


@torch.library.impl(_library, "gated", "CompositeExplicitAutograd")
def _gated(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, gate, gate_scales,
           gate_tensor_scale, gate_factor, gate_layout, gate_format, up, up_scales, up_tensor_scale,
           up_factor, up_layout, up_format, k, out_dtype, gate_bias, up_bias, activation, limit,
           alpha, beta, batch_invariant, launch):
    second = Gate(_part(up, up_scales, up_tensor_scale, up_factor, up_layout, up_format, k),
                  up_bias, limit, alpha, beta)
    return _eager.mm(_part(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, k),
                     _part(gate, gate_scales, gate_tensor_scale, gate_factor, gate_layout,
                           gate_format, k),
                     out_dtype, gate_bias, activation, None, 1.0, 1.0, None, batch_invariant,
                     launch, names=("x", "gate", "up"), gate=second)


@torch.library.register_fake("nvfp4gemm::gated", lib=_library)
def _gated_meta(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, gate, gate_scales,
                gate_tensor_scale, gate_factor, gate_layout, gate_format, up, up_scales,
                up_tensor_scale, up_factor, up_layout, up_format, k, out_dtype, gate_bias, up_bias,
                activation, limit, alpha, beta, batch_invariant, launch):
    _together(gate, "gate", {"x": x, "up": up, "gate_bias": gate_bias, "up_bias": up_bias})
    return x.new_empty((*x.shape[:-1], gate.shape[0]), dtype=_result_type(x, x_scales, out_dtype))


def _stack(codes, scales, tensor_scale, factor, layout, format, groups, rows, k):
    return Stack(codes.reshape(groups, rows, codes.shape[1]), scales, groups, rows, k,
                 factor if tensor_scale is None else tensor_scale, layout, format)


@torch.library.impl(_library, "grouped", "CompositeExplicitAutograd")
def _grouped(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, ends, weights,
             weights_scales, weights_tensor_scale, weights_factor, weights_layout, weights_format,
             groups, rows, k, out_dtype, bias, activation, alpha, launch, rows_hint):
    stack = _stack(weights, weights_scales, weights_tensor_scale, weights_factor, weights_layout,
                   weights_format, groups, rows, k)
    return product(_part(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, k), ends, stack,
                   out_dtype, bias, activation, alpha, None, launch, rows_hint)


@torch.library.register_fake("nvfp4gemm::grouped", lib=_library)
def _grouped_meta(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, ends, weights,
                  weights_scales, weights_tensor_scale, weights_factor, weights_layout,
                  weights_format, groups, rows, k, out_dtype, bias, activation, alpha, launch,
                  rows_hint):
    _together(weights, "weights", {"x": x, "ends": ends, "bias": bias})
    return x.new_empty((*x.shape[:-1], rows), dtype=_result_type(x, x_scales, out_dtype))


@torch.library.impl(_library, "grouped_gated", "CompositeExplicitAutograd")
def _grouped_gated(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, ends, gate,
                   gate_scales, gate_tensor_scale, gate_factor, gate_layout, gate_format, up,
                   up_scales, up_tensor_scale, up_factor, up_layout, up_format, groups, rows, k,
                   out_dtype, gate_bias, up_bias, activation, limit, alpha, beta, launch,
                   rows_hint):
    first = _stack(gate, gate_scales, gate_tensor_scale, gate_factor, gate_layout, gate_format,
                   groups, rows, k)
    second = Gate(_stack(up, up_scales, up_tensor_scale, up_factor, up_layout, up_format, groups,
                         rows, k), up_bias, limit, alpha, beta)
    return product(_part(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, k), ends, first,
                   out_dtype, gate_bias, activation, 1.0, None, launch, rows_hint, second)


@torch.library.register_fake("nvfp4gemm::grouped_gated", lib=_library)
def _grouped_gated_meta(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, ends, gate,
                        gate_scales, gate_tensor_scale, gate_factor, gate_layout, gate_format, up,
                        up_scales, up_tensor_scale, up_factor, up_layout, up_format, groups, rows,
                        k, out_dtype, gate_bias, up_bias, activation, limit, alpha, beta, launch,
                        rows_hint):
    _together(gate, "gate", {"x": x, "ends": ends, "up": up, "gate_bias": gate_bias,
                             "up_bias": up_bias})
    return x.new_empty((*x.shape[:-1], rows), dtype=_result_type(x, x_scales, out_dtype))


def _parts(x):
    """A Packed or a tensor as the operators take it."""
    if not isinstance(x, Matrix):
        return x, None, None, 1.0, "", ""
    tensor = isinstance(x.tensor_scale, torch.Tensor)
    return (x.codes, x.scales, x.tensor_scale if tensor else None,
            1.0 if tensor else x.tensor_scale, x.scale_layout, x.format)


def mm(a, b, out_dtype, bias, activation, c, alpha, beta, out, batch_invariant, launch,
       a_source, gradient):
    """`gradient` is whether an operand requires one."""
    if out_dtype is None and out is not None:
        out_dtype = out.dtype
    operator = torch.ops.nvfp4gemm.mm if gradient else torch.ops.nvfp4gemm.mm_without_gradient
    d = operator(*_parts(a), *_parts(b), b.k, out_dtype, bias, activation, c, alpha,
                               beta, batch_invariant, launch, a_source)
    return _into(out, d)


def _into(out, d):
    if out is None:
        return d
    if out.shape[-1:] != d.shape[-1:] or out.numel() != d.numel():
        raise ValueError(f"out is {tuple(out.shape)}, expected {tuple(d.shape)}")
    return out.copy_(d.reshape(out.shape))


def gated(x, gate, out_dtype, bias, activation, second, out, batch_invariant, launch):
    """`second` is a Gate."""
    if out_dtype is None and out is not None:
        out_dtype = out.dtype
    return _into(out, torch.ops.nvfp4gemm.gated(
        *_parts(x), *_parts(gate), *_parts(second.b2), gate.k, out_dtype, bias, second.bias2,
        activation, second.limit, second.alpha, second.beta, batch_invariant, launch))


def grouped(x, ends, weights, out_dtype, bias, activation, alpha, out, launch, rows_hint):
    if out_dtype is None and out is not None:
        out_dtype = out.dtype
    return _into(out, torch.ops.nvfp4gemm.grouped(
        *_parts(x), ends, *_parts(weights), weights.groups, weights.rows_of_a_group, weights.k,
        out_dtype, bias, activation, alpha, launch, rows_hint))


def grouped_gated(x, ends, gate, out_dtype, bias, activation, second, out, launch, rows_hint):
    """`second` is a Gate."""
    if out_dtype is None and out is not None:
        out_dtype = out.dtype
    return _into(out, torch.ops.nvfp4gemm.grouped_gated(
        *_parts(x), ends, *_parts(gate), *_parts(second.b2), gate.groups, gate.rows_of_a_group,
        gate.k, out_dtype, bias, second.bias2, activation, second.limit, second.alpha, second.beta,
        launch, rows_hint))


def quantize(x, tensor_scale, scale_layout, format):
    tensor, word = isinstance(tensor_scale, torch.Tensor), isinstance(tensor_scale, str)
    codes, scales, scale = torch.ops.nvfp4gemm.quantize(
        x.detach(), tensor_scale if tensor else None, None if tensor or word else tensor_scale,
        tensor_scale if word else None, scale_layout, format)
    return (codes, scales, codes.shape[0], x.shape[-1], scale if format == "nvfp4" else 1.0,
            scale_layout, format)
