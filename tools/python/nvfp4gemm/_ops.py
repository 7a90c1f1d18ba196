# SPDX-License-Identifier: MIT
"""The calls as torch operators. torch.compile traces them without a graph break, autograd and
autocast support mm, and torch's tools that observe calls see all of them. gated and grouped
products have no gradients."""
from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

from nvfp4gemm import _oldest_torch  # noqa: F401, first: it refuses a torch that is too old
import torch
from torch.autograd import forward_ad as _forward_ad
from torch._C._functorch import is_batchedtensor as _is_batched

from nvfp4gemm import _eager
from nvfp4gemm import _metas  # noqa: F401, which registers the meta functions
from nvfp4gemm._arrays import Torch
from nvfp4gemm._door import Door, size
from nvfp4gemm._gemm import Gate, Numbers
from nvfp4gemm._matrix import Matrix, layout_number
from nvfp4gemm._stack import Stack
from nvfp4gemm._transforms import Product, differentiated


def _parts(x: Any) -> tuple[Any, ...]:
    """Splits a Packed, or a tensor, into the arguments of an operator."""
    if not isinstance(x, Matrix):
        return x, None, None, 1.0, "", ""
    tensor = isinstance(x.tensor_scale, torch.Tensor)
    return (x.codes, x.scales, x.tensor_scale if tensor else None,
            1.0 if tensor else x.tensor_scale, x.scale_layout, x.format)


def _looked_at(b: Matrix, name: str, n: int, first: Any, out_dtype: Any, out: torch.Tensor | None,
               /, **operands: Any) -> torch.dtype | None:
    """Returns the result's type. Checks operands as an eager call would, before torch casts, traces
    or copies them. Stand-ins for tensors, and all operands under torch.compile, are checked when
    the operator runs. The result has n columns, and as many rows as `first`."""
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
    """Checks an operand. Returns whether it is a real tensor with memory, not a stand-in for
    one."""
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
    """`gradient` says whether an operand requires a gradient. `names` has the caller's names of a
    and b."""
    out_dtype = _looked_at(b, names[1], b.rows, a, out_dtype, out,
                           **{names[0]: a, "bias": bias, "c": c})
    numbers, activation = _eager.with_floats(numbers), numbers.activation
    arguments = (*_parts(a), *_parts(b), b.k, out_dtype, bias, activation, c, numbers.alpha,
                 numbers.beta, numbers.batch_invariant, numbers.launch, a_source, out, *names)
    if differentiated():
        wanting = Torch.first_with_tangent(a if a_source is None else a_source, bias, c)
        if wanting is not None and (activation is not None or out is not None):
            has = f"activation={activation!r}" if activation is not None else "out"
            raise ValueError(f"{(names[0], 'bias', 'c')[wanting]} has a tangent of forward-mode "
                             f"AD, which a product with {has} does not have")
        return _into(out, Product.apply(*arguments))
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
    """Whether out is an inference tensor, and inference mode must be enabled to write it."""
    return not Torch.compiling() and out.is_inference() and not torch.is_inference_mode_enabled()


def gated(x: Any, gate: Matrix, out_dtype: Any, bias: torch.Tensor | None,
          out: torch.Tensor | None, numbers: Numbers, second: Gate) -> torch.Tensor:
    """`second` is the Gate."""
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
    """`second` is the Gate."""
    out_dtype = _looked_at(gate, "gate", gate.rows_of_a_group, x, out_dtype, out, x=x, ends=ends,
                           gate_bias=bias, up=second.b2, up_bias=second.bias2)
    return _into(out, torch.ops.nvfp4gemm.grouped_gated(
        *_parts(x), ends, *_parts(gate), *_parts(second.b2), gate.groups, gate.rows_of_a_group,
        gate.k, out_dtype, bias, second.bias2, numbers.activation, second.limit, second.alpha,
        second.beta, numbers.launch, size(rows_hint, "rows_hint"), out))


def grouped_gated_quantized(x: Any, ends: torch.Tensor, gate: Stack, bias: torch.Tensor | None,
                            numbers: Numbers, rows_hint: int, second: Gate,
                            out_scale: Any) -> Matrix:
    """grouped_gated() to a Matrix."""
    _looked_at(gate, "gate", gate.rows_of_a_group, x, None, None, x=x, ends=ends, gate_bias=bias,
               up=second.b2, up_bias=second.bias2)
    tensor = isinstance(out_scale, torch.Tensor)
    codes, scales, scale = torch.ops.nvfp4gemm.grouped_gated_quantized(
        *_parts(x), ends, *_parts(gate), *_parts(second.b2), gate.groups, gate.rows_of_a_group,
        gate.k, out_scale if tensor else None, 1.0 if tensor else out_scale, bias, second.bias2,
        numbers.activation, second.limit, second.alpha, second.beta, numbers.launch,
        size(rows_hint, "rows_hint"))
    scale = out_scale if tensor else scale if gate.format == "nvfp4" else 1.0
    return Matrix(codes, scales, codes.shape[0], gate.rows_of_a_group, scale, "linear", gate.format)


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
    """x without its forward-mode tangent, since quantize() passes no derivative."""
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
