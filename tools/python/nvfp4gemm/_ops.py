# SPDX-License-Identifier: MIT
"""The calls as operators that torch.compile keeps whole: nvfp4gemm::mm and nvfp4gemm::quantize,
each with a meta function. A Packed goes in and comes out as its parts."""
import torch

from nvfp4gemm import _eager
from nvfp4gemm._matrix import Matrix, row_bytes

_PACKED = ("Tensor {0}, Tensor? {0}_scales, Tensor? {0}_tensor_scale, float {0}_factor, "
           "str {0}_layout")
_library = torch.library.Library("nvfp4gemm", "DEF")
_library.define(
    "mm(" + _PACKED.format("a") + ", " + _PACKED.format("b") + ", SymInt k, ScalarType? out_dtype, "
    "Tensor? bias, str? activation, Tensor? c, float alpha, float beta, bool batch_invariant, "
    "str? launch) -> Tensor")
_library.define("quantize(Tensor x, Tensor? tensor_scale, float? value, str scale_layout) "
                "-> (Tensor, Tensor, Tensor)")


def _part(codes, scales, tensor_scale, factor, layout, k):
    if scales is None:
        return codes
    return Matrix(codes, scales, codes.shape[0], k,
                  factor if tensor_scale is None else tensor_scale, layout)


@torch.library.impl(_library, "mm", "CompositeExplicitAutograd")
def _mm(a, a_scales, a_tensor_scale, a_factor, a_layout, b, b_scales, b_tensor_scale, b_factor,
        b_layout, k, out_dtype, bias, activation, c, alpha, beta, batch_invariant, launch):
    return _eager.mm(_part(a, a_scales, a_tensor_scale, a_factor, a_layout, k),
                     _part(b, b_scales, b_tensor_scale, b_factor, b_layout, k), out_dtype, bias,
                     activation, c, alpha, beta, None, batch_invariant, launch)


@torch.library.register_fake("nvfp4gemm::mm", lib=_library)
def _mm_meta(a, a_scales, a_tensor_scale, a_factor, a_layout, b, b_scales, b_tensor_scale, b_factor,
             b_layout, k, out_dtype, bias, activation, c, alpha, beta, batch_invariant, launch):
    operands = {"a": a, "a's scales": a_scales, "a's tensor_scale": a_tensor_scale, "b": b,
                "b's scales": b_scales, "b's tensor_scale": b_tensor_scale, "bias": bias, "c": c}
    for name, operand in operands.items():
        if operand is not None and operand.device != b.device:
            raise ValueError(f"{name} lies on {operand.device}, b on {b.device}")
    if out_dtype is None:
        out_dtype = torch.float16 if a_scales is not None else a.dtype
    return a.new_empty((*a.shape[:-1], b.shape[0]), dtype=out_dtype)


@torch.library.impl(_library, "quantize", "CompositeExplicitAutograd")
def _quantize(x, tensor_scale, value, scale_layout):
    codes, scales, _, _, scale, _ = _eager.quantize(
        x, value if tensor_scale is None else tensor_scale, scale_layout)
    if not isinstance(scale, torch.Tensor):
        scale = torch.full((), scale, dtype=torch.float32, device=x.device)
    elif tensor_scale is not None:
        scale = scale.clone()  # an operator does not return what it was given
    return codes, scales, scale


@torch.library.register_fake("nvfp4gemm::quantize", lib=_library)
def _quantize_meta(x, tensor_scale, value, scale_layout):
    k = x.shape[-1]
    rows = x.numel() // k
    if scale_layout == "linear":
        scales = rows * (k // 16)
    else:
        scales = (rows + 127) // 128 * 128 * ((k + 63) // 64 * 4)
    return (x.new_empty((rows, row_bytes(k)), dtype=torch.uint8),
            x.new_empty((scales,), dtype=torch.uint8), x.new_empty((), dtype=torch.float32))


def _parts(x):
    """A Packed or a tensor as the operators take it."""
    if not isinstance(x, Matrix):
        return x, None, None, 1.0, ""
    tensor = isinstance(x.tensor_scale, torch.Tensor)
    return (x.codes, x.scales, x.tensor_scale if tensor else None,
            1.0 if tensor else x.tensor_scale, x.scale_layout)


def mm(a, b, out_dtype, bias, activation, c, alpha, beta, out, batch_invariant, launch):
    if out_dtype is None and out is not None:
        out_dtype = out.dtype
    d = torch.ops.nvfp4gemm.mm(*_parts(a), *_parts(b), b.k, out_dtype, bias, activation, c, alpha,
                               beta, batch_invariant, launch)
    return d if out is None else out.copy_(d)


def quantize(x, tensor_scale, scale_layout):
    tensor = isinstance(tensor_scale, torch.Tensor)
    codes, scales, scale = torch.ops.nvfp4gemm.quantize(
        x, tensor_scale if tensor else None, None if tensor else tensor_scale, scale_layout)
    return codes, scales, codes.shape[0], x.shape[-1], scale, scale_layout
