# SPDX-License-Identifier: MIT
"""FlashInfer's functions for NVFP4 and MXFP4, with the names, arguments and layouts of
flashinfer-python 0.7.4; needs torch. They run on every GPU for which this library has a kernel, and
on the CPU.

    from nvfp4gemm.flashinfer_api import SfLayout, mm_fp4, nvfp4_quantize

Arguments that FlashInfer supports and this library does not are refused by name. `backend` may be
any backend of FlashInfer that reads the layouts below; all run the same kernel. With `enable_pdl` a
product may start before earlier work of the stream ends; it waits for that work before it reads
memory.

Codes are uint8 or float4_e2m1fn_x2, with two elements in a byte: the one with the lower k is in the
low nibble. Scales are uint8, float8_e4m3fn (NVFP4) or float8_e8m0fnu (MXFP4). There are no
gradients for 4-bit operands.

Each call checks its tensors again. To save this CPU time, make a Packed once and pass it to
nvfp4gemm.mm() or nvfp4gemm.linear().
"""
from __future__ import annotations

import enum
import os
from typing import Any, Literal

from nvfp4gemm import _oldest_torch  # noqa: F401, first: it refuses a torch that is too old
import torch

from nvfp4gemm import _calls
from nvfp4gemm._arrays import Torch
from nvfp4gemm._door import flag, number
from nvfp4gemm._kept import Kept
from nvfp4gemm._packed import Packed
from nvfp4gemm._stack import Stack
from nvfp4gemm._types import Shape
from nvfp4gemm.layouts import split_gate_up

_CODES = (torch.uint8, torch.float4_e2m1fn_x2)
_SCALES = {"nvfp4": (torch.uint8, torch.float8_e4m3fn),
           "mxfp4": (torch.uint8, torch.float8_e8m0fnu)}
_BLOCKS = {"nvfp4": 16, "mxfp4": 32}
_MM = ("auto", "cudnn", "cutlass", "cute-dsl", "cutedsl_low_latency", "b12x", "cake")
_BF16_FP4 = ("cudnn", "cute-dsl", "cute-dsl-native", "blackwell-native", "blackwell-tiled")
_QUANTIZE = ("auto", "cuda", "cute-dsl", "cake")
_FOUR_OVER_SIX = "FLASHINFER_NVFP4_4OVER6"
_UNSET: Any = object()


class SfLayout(enum.IntEnum):
    """The layout of scales, with FlashInfer's numbers. docs/integration.md has drawings of the
    tiles."""

    layout_128x4 = 0
    layout_8x4 = 1
    layout_linear = 2


def _is(what: str, value: Any, *expected: Any, why: str = "") -> None:
    """Raises unless the argument has one of the expected values."""
    if value not in expected:
        raise ValueError(f"{what} is {value!r}; expected {' or '.join(map(repr, expected))}{why}")


def _tensor(x: Any, what: str, types: tuple[torch.dtype, ...],
            dimensions: tuple[int, ...]) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{what} is {type(x).__name__}; expected a tensor")
    if x.dtype not in types or x.ndim not in dimensions:
        raise ValueError(f"{what} is {x.dtype} {tuple(x.shape)}; expected "
                         f"{' or '.join(map(str, types))} of "
                         f"{' or '.join(map(str, dimensions))} dimensions")


def _beside(x: torch.Tensor, what: str, first: torch.Tensor, first_name: str) -> None:
    if x.device != first.device:
        raise ValueError(f"{what} lies on {x.device}, {first_name} on {first.device}")


def _shape(codes: torch.Tensor, what: str, format: str,
           dimensions: tuple[int, ...] = (2,)) -> Shape:
    """(.., rows, k) of a matrix with these codes."""
    _tensor(codes, what, _CODES, dimensions)
    k, block = 2 * codes.shape[-1], _BLOCKS[format]
    if k % block:
        raise ValueError(f"{what} is {tuple(codes.shape)}: k = {k} is no multiple of {block}")
    return (*codes.shape[:-1], k)


def _scales(scales: torch.Tensor, what: str, codes: torch.Tensor, codes_name: str, bytes_: int,
            words: str, format: str) -> torch.Tensor:
    """Returns the scales with one dimension, after checks of type, device and size."""
    _tensor(scales, what, _SCALES[format], (1, 2, 3))
    _beside(scales, what, codes, codes_name)
    if scales.numel() != bytes_:
        raise ValueError(f"{what} is {tuple(scales.shape)}, {scales.numel()} bytes; expected "
                         f"{bytes_}, {words}")
    return scales.reshape(-1)


def _tiles(rows: int, k: int, format: str) -> int:
    """The bytes of 128x4 scales."""
    return -(-rows // 128) * -(-k // (4 * _BLOCKS[format])) * 512


def _packed(codes: torch.Tensor, codes_name: str, scales: torch.Tensor, scales_name: str,
            tensor_scale: float | torch.Tensor = 1.0, format: str = "nvfp4") -> Packed:
    rows, k = _shape(codes, codes_name, format)
    scales = _scales(scales, scales_name, codes, codes_name, _tiles(rows, k, format),
                     f"128x4 tiles of [{rows}, {k}]", format)
    return Packed(codes.detach(), scales.detach(), rows, k, tensor_scale, format=format)


def _rows_of_8x4(scales: torch.Tensor, what: str, codes: torch.Tensor, rows: int, k: int,
                 format: str) -> torch.Tensor:
    """Converts 8x4 tiles of scales to linear scales."""
    down, across = -(-rows // 8), -(-k // (4 * _BLOCKS[format]))
    tiles = _scales(scales, what, codes, "a", down * across * 32, f"8x4 tiles of [{rows}, {k}]",
                    format)
    linear = tiles.view(torch.uint8).reshape(down, across, 8, 4).transpose(1, 2)
    return linear.reshape(down * 8, across * 4)[:rows, :k // _BLOCKS[format]].contiguous()


def _transposed(x: torch.Tensor, what: str) -> torch.Tensor:
    """Returns x.T, which must be row-major in memory; or x, if it has one dimension."""
    if x.ndim == 1:
        return x
    x = x.T
    if not x.is_contiguous():
        raise ValueError(f"{what} is {tuple(x.shape[::-1])} with strides {x.stride()[::-1]}; "
                         "expected the transpose of a contiguous tensor")
    return x


def _factor(alpha: float | torch.Tensor | None, what: str, beside: torch.Tensor,
            rows: int | None = None) -> float | torch.Tensor:
    """alpha as a tensor scale: a number, a tensor of one float32, or one float32 for each row."""
    if alpha is None:
        return 1.0
    if not isinstance(alpha, torch.Tensor):
        return number(alpha, what)
    several = rows is not None and alpha.numel() == rows > 1
    if alpha.dtype is not torch.float32 or not (alpha.numel() == 1 or several):
        raise ValueError(f"{what} is {alpha.dtype} {tuple(alpha.shape)}; expected torch.float32 of "
                         f"one element{'' if rows is None else f', or {rows}, one for each row'}")
    _beside(alpha, what, beside, "a")
    return alpha.detach().reshape(-1)


def _format(block_size: int, use_nvfp4: bool) -> str:
    if flag(use_nvfp4, "use_nvfp4"):
        _is("block_size", block_size, 16, why=", since use_nvfp4 is True")
        return "nvfp4"
    _is("block_size", block_size, 32, why=", since use_nvfp4 is False")
    return "mxfp4"


def _launch(enable_pdl: bool) -> str | None:
    return "early" if flag(enable_pdl, "enable_pdl") else None


def mm_fp4(a: torch.Tensor, b: torch.Tensor, a_descale: torch.Tensor, b_descale: torch.Tensor,
           alpha: float | torch.Tensor | None = None, out_dtype: torch.dtype = torch.bfloat16,
           out: torch.Tensor | None = None, block_size: int = 16, use_8x4_sf_layout: bool = False,
           backend: str = "auto", use_nvfp4: bool = True, enable_pdl: bool = True, *,
           batch_invariant: bool = False) -> torch.Tensor:
    """alpha * a * b, [m, n], of two 4-bit matrices. Runs on compute capability 9.0, 10.0 and 10.3,
    on 12.x if both are NVFP4, and on the CPU.

    a          codes [m, k / 2]; NVFP4, or MXFP4 with use_nvfp4=False and block_size=32
    b          codes [k / 2, n]: the transpose of a weight [n, k / 2]
    a_descale  128x4 scales of a, or 8x4 scales if use_8x4_sf_layout is True
    b_descale  128x4 scales of the weight: the transpose of [n rounded up to 128, ..], or one
               dimension
    alpha      None, a number, or float32 on a's device: one element, or one for each row of a
    out_dtype  bfloat16, float16 or float32. If out is given, out's type is used
    backend    any except "trtllm", which shuffles the rows of b
    """
    _is("backend", backend, *_MM, why="; trtllm's b has its rows shuffled")
    format_ = _format(block_size, use_nvfp4)
    rows, k = _shape(a, "a", format_)
    _tensor(b, "b", _CODES, (2,))
    if b.shape[0] != a.shape[1]:
        raise ValueError(f"b is {tuple(b.shape)}, a {tuple(a.shape)}; expected b "
                         f"({a.shape[1]}, n)")
    _tensor(b_descale, "b_descale", _SCALES[format_], (1, 2))
    if format_ == "mxfp4" and isinstance(alpha, torch.Tensor):
        raise ValueError("alpha is a tensor, use_nvfp4 False; expected None or a number")
    factor, scale = _apart(_factor(alpha, "alpha", a, rows))
    weight = _packed(_transposed(b, "b"), "b", _transposed(b_descale, "b_descale"), "b_descale",
                     format=format_)
    if flag(use_8x4_sf_layout, "use_8x4_sf_layout"):
        linear = _rows_of_8x4(a_descale, "a_descale", a, rows, k, format_)
        tokens = Packed(a.detach(), linear.reshape(-1), rows, k, scale, "linear",
                        format_).with_scales("128x4")
    else:
        tokens = _packed(a, "a", a_descale, "a_descale", scale, format_)
    d: torch.Tensor = _calls.mm(
        tokens, weight, None if out is not None else out_dtype, alpha=factor, out=out,
        batch_invariant=batch_invariant, launch=_launch(enable_pdl))
    return d


def _apart(scale: float | torch.Tensor) -> tuple[float, float | torch.Tensor]:
    """Splits alpha into (the factor for the host, the tensor scale in device memory). One of them
    is 1."""
    return (1.0, scale) if isinstance(scale, torch.Tensor) else (scale, 1.0)


def grouped_mm_fp4(a: torch.Tensor, b: torch.Tensor, a_descale: torch.Tensor,
                   b_descale: torch.Tensor, m_indptr: torch.Tensor,
                   alpha: float | torch.Tensor | None = None, out: torch.Tensor | None = None,
                   out_dtype: torch.dtype = torch.bfloat16, block_size: int = 16, *,
                   backend: str = "cudnn", tactic: int = -1) -> torch.Tensor:
    """alpha * a[rows of group e] * b[e]^T, [cum_m, n], in one launch. Runs on compute capability
    9.0, 10.0 and 10.3, and on the CPU.

    a           codes [cum_m, k / 2]
    b           codes [experts, n, k / 2]
    a_descale   128x4 scales of a as one matrix
    b_descale   128x4 scales of each b[e], one after the other; each has n rounded up to 128 rows
    m_indptr    int32 [experts + 1] on a's device: group e has rows m_indptr[e] to m_indptr[e + 1].
                It starts with 0 and must not decrease; this is checked for CPU tensors only. Rows
                of the result after the last group are undefined
    alpha       None, a number, or for NVFP4 one float32 on a's device
    block_size  16: NVFP4; 32: MXFP4
    """
    _is("backend", backend, "cudnn")
    _is("tactic", tactic, -1, why="; others number plans of cuDNN")
    _is("block_size", block_size, 16, 32)
    format_ = "nvfp4" if block_size == 16 else "mxfp4"
    _shape(a, "a", format_)
    experts, n, k = _shape(b, "b", format_, (3,))
    if a.shape[1] != b.shape[2]:
        raise ValueError(f"b is {tuple(b.shape)}, a {tuple(a.shape)}; expected b (experts, n, "
                         f"{a.shape[1]})")
    _beside(b, "b", a, "a")
    scale = _factor(alpha, "alpha", a)
    if format_ == "mxfp4" and isinstance(scale, torch.Tensor):
        raise ValueError("alpha is a tensor, block_size 32; expected None or a number")
    _check_m_indptr(m_indptr, a, experts)
    scales = _scales(b_descale, "b_descale", b, "b", experts * _tiles(n, k, format_),
                     f"{experts} times 128x4 tiles of [{n}, {k}]", format_)
    weights = Stack(b.detach(), scales.detach(), experts, n, k, format=format_)
    factor, scale = _apart(scale)
    tokens = _packed(a, "a", a_descale, "a_descale", scale, format_)
    d: torch.Tensor = _calls.grouped_linear(
        tokens.with_scales("linear"), m_indptr[1:], weights, out=out, alpha=factor,
        out_dtype=None if out is not None else out_dtype)
    return d


def _check_m_indptr(m_indptr: torch.Tensor, a: torch.Tensor, experts: int) -> None:
    _tensor(m_indptr, "m_indptr", (torch.int32,), (1,))
    _beside(m_indptr, "m_indptr", a, "a")
    if len(m_indptr) != experts + 1:
        raise ValueError(f"m_indptr is {tuple(m_indptr.shape)}; expected ({experts + 1},), one "
                         f"more than b has experts")
    if m_indptr.is_cpu and not Torch.observed():
        values = m_indptr.tolist()
        if values[0] != 0 or values != sorted(values) or values[-1] > len(a):
            raise ValueError(f"m_indptr is {values}; expected 0 first, none that is less than the "
                             f"one before, and at most {len(a)}, the rows of a")


def prepare_bf16_fp4_weights(b: torch.Tensor, b_descale: torch.Tensor,
                             alpha: torch.Tensor | None = None, *, backend: str,
                             block_size: int = 16) -> tuple[
                                 torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Returns (b, b_descale, alpha) unchanged, after checks, for mm_bf16_fp4() of this module. b
    has codes [n, k / 2] and b_descale 128x4 scales, as nvfp4_quantize() returns them. Do not pass
    what FlashInfer's own function of this name returned: its bytes may be in another order, and
    this cannot be detected."""
    _is("backend", backend, *_BF16_FP4)
    _is("block_size", block_size, 16)
    _packed(b, "b", b_descale, "b_descale", _factor(alpha, "alpha", b))
    return b, b_descale, alpha


# {b: the Packed made from it}
_weights = Kept()


def mm_bf16_fp4(a: torch.Tensor, b: torch.Tensor, b_descale: torch.Tensor,
                alpha: float | torch.Tensor | None = None, *, backend: str,
                out_dtype: torch.dtype | None = None, out: torch.Tensor | None = None,
                block_size: int = 16, enable_pdl: bool = True) -> torch.Tensor:
    """alpha * a * b^T, [m, n]. Runs on compute capability 8.0 and later, and on the CPU.

    a          [m, k] of bfloat16 or float16
    b, b_descale, alpha
               as prepare_bf16_fp4_weights() returned them. alpha is None, a number or one float32
               on b's device
    out_dtype  None: the type of out if given, else of a
    """
    _is("backend", backend, *_BF16_FP4)
    _is("block_size", block_size, 16)
    _tensor(a, "a", (torch.bfloat16, torch.float16), (2,))
    _tensor(b, "b", _CODES, (2,))
    scale = _factor(alpha, "alpha", b)
    tensors = [x for x in (b, b_descale, scale) if isinstance(x, torch.Tensor)]
    weight = _weights.of(tensors, scale if isinstance(scale, float) else None,
                         lambda: _packed(b, "b", b_descale, "b_descale", scale),
                         copies=b.shape[1] % 16 != 0)
    d: torch.Tensor = _calls.mm(a, weight, None if out is not None else out_dtype, out=out,
                                launch=_launch(enable_pdl))
    return d


# {weight_packed: (gate, up)}. gate has the odd rows of weight_packed, to which SiLU is applied, and
# up has the even rows.
_pairs = Kept()


def fp4_linear_swiglu(a_packed: torch.Tensor, a_block_scale: torch.Tensor, a_global_scale: float,
                      weight_packed: torch.Tensor, weight_block_scale: torch.Tensor,
                      weight_global_scale: float, bias: torch.Tensor | None = None, *,
                      out_dtype: torch.dtype = torch.bfloat16,
                      output_quant_scale: torch.Tensor | None = None,
                      out: torch.Tensor | None = None) -> torch.Tensor:
    """y[:, 0::2] * silu(y[:, 1::2]), [m, n / 2], where y = a * weight^T + bias. Runs on compute
    capability 9.0, 10.0 and 10.3, and on the CPU.

    a_packed, weight_packed
               codes [m, k / 2] and [n, k / 2], with an even n. SiLU is applied to the odd rows of
               the weight, counted from 0
    a_block_scale, weight_block_scale
               128x4 scales
    a_global_scale, weight_global_scale
               numbers that multiply
    bias       [n], in pairs like the weight's rows, or None
    out_dtype  bfloat16, float16 or float32; quantized types are refused

    At the first call with a weight its even and odd rows are copied to two matrices. These take as
    much memory again, and are kept as long as weight_packed exists.
    """
    _is("output_quant_scale", output_quant_scale, None, why=": the output is not quantized")
    _is("out_dtype", out_dtype, torch.bfloat16, torch.float16, torch.float32)
    n, k = _shape(weight_packed, "weight_packed", "nvfp4")
    _shape(a_packed, "a_packed", "nvfp4")
    if n % 2 or a_packed.shape[1] != weight_packed.shape[1]:
        raise ValueError(f"weight_packed is {tuple(weight_packed.shape)}, a_packed "
                         f"{tuple(a_packed.shape)}; expected (n, {a_packed.shape[1]}), n even")
    _tensor(weight_block_scale, "weight_block_scale", _SCALES["nvfp4"], (1, 2))
    if bias is not None:
        _tensor(bias, "bias", (torch.bfloat16, torch.float16, torch.float32), (1,))
        if len(bias) != n:
            raise ValueError(f"bias is {tuple(bias.shape)}; expected ({n},)")
    scale = number(weight_global_scale, "weight_global_scale")
    gate, up = _pairs.of(
        (weight_packed, weight_block_scale), scale,
        lambda: split_gate_up(_packed(weight_packed, "weight_packed", weight_block_scale,
                                      "weight_block_scale", scale), "alternating_up_first"),
        copies=True)
    tokens = _packed(a_packed, "a_packed", a_block_scale, "a_block_scale",
                     number(a_global_scale, "a_global_scale"))
    up_bias, gate_bias = (None, None) if bias is None else (bias[0::2], bias[1::2])
    d: torch.Tensor = _calls.gated_linear(tokens, gate, up, gate_bias, up_bias, out=out,
                                          out_dtype=None if out is not None else out_dtype)
    return d


def nvfp4_quantize(a: torch.Tensor, a_global_sf: float | torch.Tensor,
                   sfLayout: int = SfLayout.layout_128x4, do_shuffle: bool = False,
                   sf_vec_size: int = 16, enable_pdl: bool | None = None, backend: str = "auto",
                   per_token_activation: bool = False,
                   expanded_idx_to_permuted_idx: torch.Tensor | None = None,
                   out_scale: torch.Tensor | None = None, nvfp4_4over6: Any = _UNSET, *,
                   batch_invariant: bool = False) -> tuple[torch.Tensor, ...]:
    """Quantizes a [m, k] of float16 or bfloat16. Returns (codes [m, k / 2], scales) of uint8, where
    a ~ code * scale / a_global_sf. The values are those of nvfp4gemm.quantize(). The bits of a row
    do not depend on other rows.

    a_global_sf  2688 / amax of a: a number, or one float32 on a's device
    sfLayout     layout, and with it the shape of the returned scales:
                 128x4: [m rounded up to 128, k / 16 rounded up to 4]
                 8x4: [m rounded up to 8, k / 16 rounded up to 4]
                 linear: [m, k / 16]
    per_token_activation
                 True: each row has its own scale, amax of the row / 2688. The scales are returned
                 as a third tensor, float32 [m]. a_global_sf must be 1 / 2688
    do_shuffle, expanded_idx_to_permuted_idx, out_scale, nvfp4_4over6
                 only their default values are supported
    enable_pdl, batch_invariant
                 ignored
    """
    _is("sfLayout", sfLayout, *SfLayout)
    _is("sf_vec_size", sf_vec_size, 16)
    _is("do_shuffle", do_shuffle, False)
    _is("backend", backend, *_QUANTIZE)
    _is("expanded_idx_to_permuted_idx", expanded_idx_to_permuted_idx, None)
    _is("out_scale", out_scale, None)
    _no_4over6(nvfp4_4over6)
    _tensor(a, "a", (torch.float16, torch.bfloat16), (2,))
    flag(batch_invariant, "batch_invariant")
    rows, k = a.shape
    layout = SfLayout(sfLayout)
    if k % 16:
        raise ValueError(f"a is {tuple(a.shape)}: k = {k} is no multiple of 16")
    scale = _of_rows(a_global_sf) if flag(per_token_activation, "per_token_activation") else (
        1 / _factor(a_global_sf, "a_global_sf", a))
    made = _calls.quantize(a, scale, scale_layout="128x4" if layout == SfLayout.layout_128x4 else
                           "linear")
    codes = made.codes[:, :k // 2].contiguous()
    scales = _shaped(made.scales, layout, rows, k)
    return (codes, scales, made.tensor_scale) if per_token_activation else (codes, scales)


def _no_4over6(nvfp4_4over6: Any) -> None:
    if nvfp4_4over6 not in (None, _UNSET):
        raise ValueError(f"nvfp4_4over6 is {nvfp4_4over6!r}; expected None")
    if nvfp4_4over6 is _UNSET and os.environ.get(_FOUR_OVER_SIX, "0") not in ("", "0"):
        raise ValueError(f"nvfp4_4over6 is left to {_FOUR_OVER_SIX}, which is "
                         f"{os.environ[_FOUR_OVER_SIX]!r}; expected None")


def _of_rows(a_global_sf: Any) -> Literal["rows"]:
    """Checks that a_global_sf is 1 / 2688, the only value that row scales support. Returns the
    tensor_scale for quantize()."""
    if abs(number(a_global_sf, "a_global_sf") * 2688 - 1) > 1e-6:
        raise ValueError(f"a_global_sf is {a_global_sf}, per_token_activation True; expected "
                         "1 / 2688")
    return "rows"


def _shaped(scales: torch.Tensor, layout: SfLayout, rows: int, k: int) -> torch.Tensor:
    """Converts 128x4 or linear scales to the shape and layout that FlashInfer returns."""
    across, padded = k // 16, -(-k // 64) * 4
    if layout == SfLayout.layout_linear:
        return scales.reshape(rows, across)
    if layout == SfLayout.layout_128x4:
        return scales.reshape(-1, padded)
    down = -(-rows // 8)
    filled = scales.new_zeros(down * 8, padded)
    filled[:rows, :across] = scales.reshape(rows, across)
    tiles = filled.reshape(down, 8, padded // 4, 4).transpose(1, 2)
    return tiles.reshape(down * 8, padded)
