# SPDX-License-Identifier: MIT
"""The implementations of the torch operators nvfp4gemm::mm, quantize, dequantize, convert_scales,
gated, grouped and grouped_gated. They take and return the parts of a Packed as separate arguments.

No operator writes its arguments. If out is given, an operator checks it as an eager call would, and
returns a new tensor. The caller then copies that into out, also in a traced graph.
"""
from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

from nvfp4gemm import _oldest_torch  # noqa: F401, first: it refuses a torch that is too old
import torch

from nvfp4gemm import _eager
from nvfp4gemm._arrays import Torch, span
from nvfp4gemm._gemm import Gate, Numbers
from nvfp4gemm._matrix import Matrix
from nvfp4gemm._stack import Stack, product

_PACKED = ("Tensor {0}, Tensor? {0}_scales, Tensor? {0}_tensor_scale, float {0}_factor, "
           "str {0}_layout, str {0}_format")
library = torch.library.Library("nvfp4gemm", "DEF")
# a_source is the tensor from which a was quantized. It receives a's gradient; its values are not
# read.
_MM = (
    "(" + _PACKED.format("a") + ", " + _PACKED.format("b") + ", SymInt k, ScalarType? out_dtype, "
    "Tensor? bias, str? activation, Tensor? c, float alpha, float beta, bool batch_invariant, "
    "str? launch, Tensor? a_source, Tensor? out=None, str a_name='a', str b_name='b') -> Tensor")
library.define("mm" + _MM)
library.define("mm_without_gradient" + _MM)  # takes a third of the host time
library.define("quantize(Tensor x, Tensor? tensor_scale, float? value, str? word, "
               "str scale_layout, str format, str? scale_rule=None) -> (Tensor, Tensor, Tensor)")
library.define(
    "gated(" + ", ".join(map(_PACKED.format, ("x", "gate", "up"))) + ", SymInt k, "
    "ScalarType? out_dtype, Tensor? gate_bias, Tensor? up_bias, str activation, float limit, "
    "float alpha, float beta, bool batch_invariant, str? launch, Tensor? out) -> Tensor")
library.define(
    "grouped(" + _PACKED.format("x") + ", Tensor ends, " + _PACKED.format("weights") + ", "
    "int groups, SymInt rows, SymInt k, ScalarType? out_dtype, Tensor? bias, str? activation, "
    "float alpha, str? launch, int rows_hint, Tensor? out) -> Tensor")
library.define(
    "grouped_gated(" + _PACKED.format("x") + ", Tensor ends, " +
    ", ".join(map(_PACKED.format, ("gate", "up"))) + ", int groups, SymInt rows, SymInt k, "
    "ScalarType? out_dtype, Tensor? gate_bias, Tensor? up_bias, str activation, float limit, "
    "float alpha, float beta, str? launch, int rows_hint, Tensor? out) -> Tensor")
library.define(
    "grouped_gated_quantized(" + _PACKED.format("x") + ", Tensor ends, " +
    ", ".join(map(_PACKED.format, ("gate", "up"))) + ", int groups, SymInt rows, SymInt k, "
    "Tensor? out_scale, float out_factor, Tensor? gate_bias, Tensor? up_bias, str activation, "
    "float limit, float alpha, float beta, str? launch, int rows_hint) -> (Tensor, Tensor, Tensor)")
library.define("dequantize(" + _PACKED.format("b") + ", SymInt k, ScalarType dtype) -> Tensor")
library.define("convert_scales(" + _PACKED.format("b") + ", SymInt k, str to) -> Tensor")


class _Seen:
    """Marks a tensor of codes as checked together with its scales, or as created here. It is an
    attribute of the codes tensor. It has weak references only, so it keeps no memory alive. If
    memory has moved since, _device checks again."""

    def __init__(self, matrix: Matrix) -> None:
        scale = matrix.tensor_scale
        self.scales = weakref.ref(matrix.scales)
        self.scale = scale if isinstance(scale, float) else weakref.ref(scale)
        self.layout, self.k, self.places = matrix.scale_layout, matrix.k, matrix._places
        self.format = matrix.format
        # For _compiled: Packed._kind of such a matrix, and its Table of _known.
        self.kind = (f"{matrix.scale_layout} {matrix.format} "
                     f"{scale if isinstance(scale, float) else 1.0}")
        self.known: Any = {}
        matrix.codes._nvfp4gemm = self

    def is_of(self, scales: torch.Tensor, tensor_scale: torch.Tensor | None, kind: str) -> bool:
        """Like fits(), for the arguments that _compiled has. It need not compare k, since a known
        product has the k of x."""
        own = self.scale
        same = isinstance(own, float) if tensor_scale is None else (
            isinstance(own, weakref.ref) and own() is tensor_scale)
        return same and self.scales() is scales and self.kind == kind

    def fits(self, scales: torch.Tensor, scale: Any, layout: str, format: str, k: int) -> bool:
        same = self.scale == scale if isinstance(scale, float) else (
            isinstance(self.scale, weakref.ref) and self.scale() is scale)
        return same and self.scales() is scales and (
            (self.layout, self.format, self.k) == (layout, format, k))


def part(codes: torch.Tensor, scales: torch.Tensor | None, tensor_scale: torch.Tensor | None,
          factor: float, layout: str, format: str, k: int) -> Any:
    if scales is None:
        return codes
    scale = factor if tensor_scale is None else tensor_scale
    seen = getattr(codes, "_nvfp4gemm", None)
    if seen is None or not seen.fits(scales, scale, layout, format, k):
        matrix = Matrix(codes, scales, codes.shape[0], k, scale, layout, format)
        if matrix.codes is codes and matrix.scales is scales:  # not if Matrix made copies
            _Seen(matrix)
        return matrix
    return Matrix.of_seen(seen.places, codes, scales, codes.shape[0], k, scale, layout,
                          format)


@torch.library.impl(library, "mm", "CompositeExplicitAutograd")
@torch.library.impl(library, "mm_without_gradient", "CompositeExplicitAutograd")
def _mm(a: torch.Tensor, a_scales: torch.Tensor | None, a_tensor_scale: torch.Tensor | None,
        a_factor: float, a_layout: str, a_format: str, b: torch.Tensor, b_scales: torch.Tensor,
        b_tensor_scale: torch.Tensor | None, b_factor: float, b_layout: str, b_format: str, k: int,
        out_dtype: torch.dtype | None, bias: torch.Tensor | None, activation: str | None,
        c: torch.Tensor | None, alpha: float, beta: float, batch_invariant: bool,
        launch: str | None, _a_source: torch.Tensor | None, out: torch.Tensor | None = None,
        a_name: str = "a", b_name: str = "b") -> torch.Tensor:
    one = part(a, a_scales, a_tensor_scale, a_factor, a_layout, a_format, k)
    two = part(b, b_scales, b_tensor_scale, b_factor, b_layout, b_format, k)
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
    """Checks that an eager call could write to out [.., n], and returns it as [rows, n]."""
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
    """Whether c is out. The operator may then read it."""
    c = c.reshape(out.shape)
    return (c.data_ptr(), c.dtype, c.stride()) == (out.data_ptr(), out.dtype, out.stride())


@torch.library.impl(library, "quantize", "CompositeExplicitAutograd")
def _quantize(x: torch.Tensor, tensor_scale: torch.Tensor | None, value: float | None,
              word: str | None, scale_layout: str, format: str,
              scale_rule: str | None = None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    given = next((one for one in (tensor_scale, value, word) if one is not None), None)
    codes, scales, rows, k, scale, *_ = _eager.quantize(x, given, scale_layout, format,
                                                          scale_rule)
    if not isinstance(scale, torch.Tensor):
        scale = torch.full((), scale, dtype=torch.float32, device=x.device)
    elif tensor_scale is not None:
        scale = scale.clone()  # an operator must not return its argument
    if format == "nvfp4":  # in other formats the tensor scale is the number 1.0
        _Seen(Matrix.of_own(Torch, codes, scales, rows, k, scale, scale_layout))
    else:
        _Seen(Matrix.of_own(Torch, codes, scales, rows, k, 1.0, scale_layout, format))
    return codes, scales, scale


@torch.library.impl(library, "dequantize", "CompositeExplicitAutograd")
def _dequantize(b: torch.Tensor, b_scales: torch.Tensor, b_tensor_scale: torch.Tensor | None,
                b_factor: float, b_layout: str, b_format: str, k: int,
                dtype: torch.dtype) -> torch.Tensor:
    return _eager.dequantize(
        part(b, b_scales, b_tensor_scale, b_factor, b_layout, b_format, k), dtype)


@torch.library.impl(library, "convert_scales", "CompositeExplicitAutograd")
def _convert_scales(b: torch.Tensor, b_scales: torch.Tensor, b_tensor_scale: torch.Tensor | None,
                    b_factor: float, b_layout: str, b_format: str, k: int, to: str) -> torch.Tensor:
    packed = part(b, b_scales, b_tensor_scale, b_factor, b_layout, b_format, k)
    return _eager.with_scales(packed, to).scales


@torch.library.impl(library, "gated", "CompositeExplicitAutograd")
def _gated(x: torch.Tensor, x_scales: torch.Tensor | None, x_tensor_scale: torch.Tensor | None,
           x_factor: float, x_layout: str, x_format: str, gate: torch.Tensor,
           gate_scales: torch.Tensor, gate_tensor_scale: torch.Tensor | None, gate_factor: float,
           gate_layout: str, gate_format: str, up: torch.Tensor, up_scales: torch.Tensor,
           up_tensor_scale: torch.Tensor | None, up_factor: float, up_layout: str, up_format: str,
           k: int, out_dtype: torch.dtype | None, gate_bias: torch.Tensor | None,
           up_bias: torch.Tensor | None, activation: str | None, limit: float, alpha: float,
           beta: float, batch_invariant: bool, launch: str | None,
           out: torch.Tensor | None) -> torch.Tensor:
    second = Gate(part(up, up_scales, up_tensor_scale, up_factor, up_layout, up_format, k),
                  up_bias, limit=limit, alpha=alpha, beta=beta)
    numbers = Numbers(activation=activation, launch=launch, batch_invariant=batch_invariant)
    first = part(gate, gate_scales, gate_tensor_scale, gate_factor, gate_layout, gate_format, k)
    d = _eager.mm(part(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, k), first,
                  out_dtype, gate_bias, None, None, numbers, names=("x", "gate", "up"), gate=second)
    if out is not None:
        _apart(_as_written(out, first, "gate", d.shape), x, x_scales, x_tensor_scale, gate,
               gate_scales, gate_tensor_scale, gate_bias, up, up_scales, up_tensor_scale, up_bias)
    return d


def _stack(codes: torch.Tensor, scales: torch.Tensor, tensor_scale: torch.Tensor | None,
           factor: float, layout: str, format: str, groups: int, rows: int, k: int) -> Stack:
    return Stack(codes.reshape(groups, rows, codes.shape[1]), scales, groups, rows, k,
                 factor if tensor_scale is None else tensor_scale, layout, format)


@torch.library.impl(library, "grouped", "CompositeExplicitAutograd")
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
    d = product(part(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, k), ends, stack,
                out_dtype, bias, held, Numbers(alpha=alpha, activation=activation, launch=launch),
                rows_hint)
    return d.reshape(*x.shape[:-1], rows)


def _held(out: torch.Tensor, b: Matrix, name: str, shape: Sequence[int],
          *read: torch.Tensor | None) -> torch.Tensor:
    """A copy of the rows of out. A grouped product leaves rows outside all groups unchanged, so the
    copy must have their old values."""
    rows = _as_written(out, b, name, shape)
    _apart(rows, *read)
    return Torch.copy(rows)


@torch.library.impl(library, "grouped_gated", "CompositeExplicitAutograd")
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
    d = product(part(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, k), ends, first,
                out_dtype, gate_bias, held, Numbers(activation=activation, launch=launch),
                rows_hint, second)
    return d.reshape(*x.shape[:-1], rows)


@torch.library.impl(library, "grouped_gated_quantized", "CompositeExplicitAutograd")
def _grouped_gated_quantized(
        x: torch.Tensor, x_scales: torch.Tensor | None, x_tensor_scale: torch.Tensor | None,
        x_factor: float, x_layout: str, x_format: str, ends: torch.Tensor, gate: torch.Tensor,
        gate_scales: torch.Tensor, gate_tensor_scale: torch.Tensor | None, gate_factor: float,
        gate_layout: str, gate_format: str, up: torch.Tensor, up_scales: torch.Tensor,
        up_tensor_scale: torch.Tensor | None, up_factor: float, up_layout: str, up_format: str,
        groups: int, rows: int, k: int, out_scale: torch.Tensor | None, out_factor: float,
        gate_bias: torch.Tensor | None, up_bias: torch.Tensor | None, activation: str | None,
        limit: float, alpha: float, beta: float, launch: str | None,
        rows_hint: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(codes, scales, the tensor scale that out_factor became)."""
    first = _stack(gate, gate_scales, gate_tensor_scale, gate_factor, gate_layout, gate_format,
                   groups, rows, k)
    second = Gate(_stack(up, up_scales, up_tensor_scale, up_factor, up_layout, up_format, groups,
                         rows, k), up_bias, limit=limit, alpha=alpha, beta=beta)
    d = product(part(x, x_scales, x_tensor_scale, x_factor, x_layout, x_format, k), ends, first,
                None, gate_bias, None, Numbers(activation=activation, launch=launch), rows_hint,
                second, out_factor if out_scale is None else out_scale)
    made = out_scale is None and gate_format == "nvfp4"
    return d.codes, d.scales, d.tensor_scale if made else gate.new_empty(0, dtype=torch.float32)
