# SPDX-License-Identifier: MIT
"""The meta function of each operator. It returns a tensor without memory, with the shape and type
of the operator's result."""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from nvfp4gemm import _oldest_torch  # noqa: F401, first: it refuses a torch that is too old
import torch

from nvfp4gemm._matrix import block_of, row_bytes
from nvfp4gemm._operators import library


def _together(one: torch.Tensor, what: str, others: Mapping[str, torch.Tensor | None]) -> None:
    """Raises ValueError if another operand is on another device."""
    for name, operand in others.items():
        if operand is not None and operand.device != one.device:
            raise ValueError(f"{name} lies on {operand.device}, {what} on {one.device}")


def _result_type(a: torch.Tensor, a_scales: torch.Tensor | None,
                 out_dtype: torch.dtype | None) -> torch.dtype:
    if out_dtype is not None:
        return out_dtype
    return torch.float16 if a_scales is not None else a.dtype


@torch.library.register_fake("nvfp4gemm::mm", lib=library)
@torch.library.register_fake("nvfp4gemm::mm_without_gradient", lib=library)
def _mm_meta(a: torch.Tensor, a_scales: torch.Tensor | None, a_tensor_scale: torch.Tensor | None,
             a_factor: float, a_layout: str, a_format: str, b: torch.Tensor, b_scales: torch.Tensor,
             b_scale: torch.Tensor | None, b_factor: float, b_layout: str, b_format: str,
             k: int, out_dtype: torch.dtype | None, bias: torch.Tensor | None,
             activation: str | None, c: torch.Tensor | None, alpha: float, beta: float,
             batch_invariant: bool, launch: str | None, a_source: torch.Tensor | None,
             out: torch.Tensor | None = None, a_name: str = "a", b_name: str = "b") -> torch.Tensor:
    _together(b, b_name, {
        a_name: a, f"{a_name}'s scales": a_scales, f"{a_name}'s tensor_scale": a_tensor_scale,
        f"{b_name}'s scales": b_scales, f"{b_name}'s tensor_scale": b_scale, "bias": bias,
        "c": c})
    return _made(a, a_scales, b.shape[0], out_dtype, out, a_name)


def _made(x: torch.Tensor, x_scales: torch.Tensor | None, n: int, out_dtype: torch.dtype | None,
          out: torch.Tensor | None, name: str = "x") -> torch.Tensor:
    """Returns the result of a meta function. Checks device and shape of out, if it is given. `name`
    is the caller's name of x."""
    shape = (*x.shape[:-1], n)
    if out is not None:
        _together(x, name, {"out": out})
        if out.shape[-1:] != shape[-1:] or out.numel() != math.prod(shape):
            raise ValueError(f"out is {tuple(out.shape)}, expected {tuple(shape)}")
    return x.new_empty(shape, dtype=_result_type(x, x_scales, out_dtype))


def _count_of_scales(rows: int, k: int, layout: str, format: str) -> int:
    """nvfp4_scale_bytes_for(), for sizes that may be symbolic."""
    across = k // block_of(format)
    if layout == "linear":
        return rows * across
    return (rows + 127) // 128 * 128 * ((across + 3) // 4 * 4)


@torch.library.register_fake("nvfp4gemm::quantize", lib=library)
def _quantize_meta(x: torch.Tensor, tensor_scale: torch.Tensor | None, value: float | None,
                   word: str | None, scale_layout: str, format: str, scale_rule: str | None = None
                   ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rows, k = math.prod(x.shape[:-1]), x.shape[-1]
    scales = _count_of_scales(rows, k, scale_layout, format)
    return (x.new_empty((rows, row_bytes(k)), dtype=torch.uint8),
            x.new_empty((scales,), dtype=torch.uint8),
            x.new_empty((rows,) if word else (), dtype=torch.float32))


@torch.library.register_fake("nvfp4gemm::dequantize", lib=library)
def _dequantize_meta(b: torch.Tensor, b_scales: torch.Tensor, b_scale: torch.Tensor | None,
                     b_factor: float, b_layout: str, b_format: str, k: int,
                     dtype: torch.dtype) -> torch.Tensor:
    return b.new_empty((b.shape[0], k), dtype=dtype)


@torch.library.register_fake("nvfp4gemm::convert_scales", lib=library)
def _convert_scales_meta(b: torch.Tensor, b_scales: torch.Tensor,
                         b_scale: torch.Tensor | None, b_factor: float, b_layout: str,
                         b_format: str, k: int, to: str) -> torch.Tensor:
    return b.new_empty((_count_of_scales(b.shape[0], k, to, b_format),), dtype=torch.uint8)


@torch.library.register_fake("nvfp4gemm::gated", lib=library)
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


@torch.library.register_fake("nvfp4gemm::grouped", lib=library)
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


@torch.library.register_fake("nvfp4gemm::grouped_gated", lib=library)
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


@torch.library.register_fake("nvfp4gemm::grouped_gated_quantized", lib=library)
def _grouped_gated_quantized_meta(
        x: torch.Tensor, x_scales: torch.Tensor | None, x_tensor_scale: torch.Tensor | None,
        x_factor: float, x_layout: str, x_format: str, ends: torch.Tensor, gate: torch.Tensor,
        gate_scales: torch.Tensor, gate_tensor_scale: torch.Tensor | None, gate_factor: float,
        gate_layout: str, gate_format: str, up: torch.Tensor, up_scales: torch.Tensor,
        up_tensor_scale: torch.Tensor | None, up_factor: float, up_layout: str, up_format: str,
        groups: int, rows: int, k: int, out_scale: torch.Tensor | None, out_factor: float,
        gate_bias: torch.Tensor | None, up_bias: torch.Tensor | None, activation: str | None,
        limit: float, alpha: float, beta: float, launch: str | None,
        rows_hint: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    _together(gate, "gate", {"x": x, "ends": ends, "up": up, "gate_bias": gate_bias,
                             "up_bias": up_bias, "out_scale": out_scale})
    m = math.prod(x.shape[:-1])
    return (x.new_empty((m, row_bytes(rows)), dtype=torch.uint8),
            x.new_empty((_count_of_scales(m, rows, "linear", gate_format),), dtype=torch.uint8),
            x.new_empty((int(out_scale is None and gate_format == "nvfp4"),), dtype=torch.float32))
