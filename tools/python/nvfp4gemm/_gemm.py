# SPDX-License-Identifier: MIT
"""Converts the operands of a product to the library's GemmDesc."""
from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TYPE_CHECKING

from nvfp4gemm import _fields, abi
from nvfp4gemm._door import ld_of
from nvfp4gemm._matrix import Matrix, constant_and_tensor, layout_number, number_of, row_bytes
from nvfp4gemm._types import Array, Arrays


def codes_ld(arrays: Arrays, packed: Matrix) -> int:
    """The leading dimension of the codes in elements; two elements share a byte. It is larger than
    k for slices. It is 0 for packed weights."""
    if packed.packing:
        return 0
    if packed.rows <= 1:
        return 2 * row_bytes(packed.k)
    return 2 * int(arrays.strides(packed.codes)[0])


_TYPE_OF_D = {"nvfp4": abi.NVFP4, "mxfp4": abi.MXFP4, "e2m1_ue8m0": abi.E2M1_UE8M0}
_OF_ALL, _OF_GATES = _fields.numbers(gated=False), _fields.numbers(gated=True)
_FIRST = {"alpha": 1.0, "beta": 1.0, "batch_invariant": False}
_WORDS = {"activation": abi.ACTIVATIONS, "launch": abi.LAUNCHES}
if TYPE_CHECKING:  # a type checker does not read the table
    class Numbers(Any):
        pass

    class Gate(Any):
        pass
else:
    # All arguments of a product that are not arrays, generated from fields.def. The whole tuple is
    # part of a plan's key in _device, so that no argument can be forgotten.
    Numbers = namedtuple("Numbers", _OF_ALL, defaults=[_FIRST.get(name) for name in _OF_ALL])
    # The additional arguments of a gated product: a second matrix, its bias, the numbers of the
    # gate.
    Gate = namedtuple("Gate", ("b2", "bias2", *_OF_GATES))


def _set_numbers(desc: abi.GemmDescFields, names: Mapping[str, str],
                 numbers: Sequence[Any]) -> None:
    for name, value in zip(names, numbers):
        if name in _WORDS:
            value = number_of(value, _WORDS[name], name)
        setattr(desc, names[name], value)


class Maxima(NamedTuple):
    """float32 arrays, or None. The library raises them to the largest magnitude of D, and of each
    row of D."""

    amax: object
    row_amax: object


def describe_gate(arrays: Arrays, desc: abi.GemmDescFields, b: Matrix, gate: Gate, alpha: float,
                  factor_of_a: float) -> None:
    """Sets the fields of the second matrix, which has the shape and layout of b."""
    b2 = gate.b2
    desc.b2, desc.b2_scales = b2.places(arrays)[:2]
    constant, tensor = constant_and_tensor(b2.common_scale)
    if tensor is not None:
        desc.b2_tensor_scale = arrays.address(tensor)
    if gate.bias2 is not None:
        desc.bias2 = arrays.address(gate.bias2)
    desc.alpha2 = alpha
    for one in (factor_of_a, constant):
        desc.alpha2 = desc.alpha2 * one
    _set_numbers(desc, _OF_GATES, gate[2:])


def _describe_quantized(arrays: Arrays, desc: abi.GemmDescFields, d: Matrix) -> None:
    """Sets the fields of a quantized D: type, layout, and the addresses of the parts of d."""
    desc.d, desc.d_scales, desc.d_tensor_scale = d.places(arrays)
    desc.d_type, desc.d_ld = _TYPE_OF_D[d.format], codes_ld(arrays, d)
    desc.d_scale_layout = layout_number(d.scale_layout)


def describe(arrays: Arrays, a: Any, b: Matrix, d: Any, order: int, bias: Array | None,
             c: Array | None, numbers: Numbers, gate: Gate | None = None,
             maxima: Maxima | None = None) -> abi.GemmDescFields:
    """Returns the GemmDesc, with addresses. The operands have been checked by Door. d is an array,
    or a Matrix into whose parts the call writes."""
    desc = abi.GemmDescFields(m=d.shape[0], n=d.shape[1], k=b.k, l=1)
    _set_numbers(desc, _OF_ALL, numbers)
    desc.operand_format = abi.FORMATS[b.format]
    packed = isinstance(a, Matrix)
    factors = [constant_and_tensor(b.common_scale)]
    desc.b_ld, desc.b_packing = codes_ld(arrays, b), b.packing
    desc.b, desc.b_scales = b.places(arrays)[:2]
    if not b.packing:
        desc.b_scale_layout = layout_number(b.scale_layout)
    if factors[0][1] is not None:
        desc.b_tensor_scale = arrays.address(factors[0][1])
        desc.b_tensor_scale_columns = b.scale_rows
    if packed:
        factors.insert(0, constant_and_tensor(a.tensor_scale))
        desc.a, desc.a_scales = a.places(arrays)[:2]
        desc.a_packing = a.token_packing
        if not a.token_packing:
            desc.a_ld, desc.a_scale_layout = codes_ld(arrays, a), layout_number(a.scale_layout)
        if factors[0][1] is not None:
            desc.a_tensor_scale = arrays.address(factors[0][1])
            desc.a_tensor_scale_rows = int(a.has_row_scales)
    else:
        desc.a, desc.a_type = arrays.address(a), arrays.type_of(a.dtype)
        desc.a_ld = ld_of(a.shape, arrays.strides(a), abi.ROW_MAJOR)
    if isinstance(d, Matrix):
        _describe_quantized(arrays, desc, d)
    else:
        desc.d, desc.d_type = arrays.address(d), arrays.type_of(d.dtype)
        desc.d_ld = ld_of(d.shape, arrays.strides(d), order)
    desc.cd_order = order
    if c is not None:
        desc.c, desc.c_type = arrays.address(c), arrays.type_of(c.dtype)
        desc.c_ld = ld_of(c.shape, arrays.strides(c), order)
    else:
        desc.beta = 0
    if bias is not None:
        desc.bias, desc.bias_type = arrays.address(bias), arrays.type_of(bias.dtype)
    # One fp32 multiplication per factor, since the device multiplies factors in memory in the same
    # way.
    for constant, _ in factors:
        desc.alpha = desc.alpha * constant
    if gate is not None:
        describe_gate(arrays, desc, b, gate, numbers.alpha, factors[0][0] if packed else 1.0)
    if maxima is not None:
        if maxima.amax is not None:
            desc.d_amax = arrays.address(maxima.amax)
        if maxima.row_amax is not None:
            desc.d_row_amax = arrays.address(maxima.row_amax)
    return desc


def predicted_ns(m: int, b: Matrix, packing: int, numbers: Numbers, gated: bool,
                 capability: int) -> float:
    """Of a product of m tokens in that packing by b, and where gated by another matrix like it.
    Infinity where no kernel has it or there is no prediction."""
    n, ld, at = b.rows, 2 * row_bytes(b.k), 1 << 40  # no address is read
    tiles = abi.LAYOUTS["128x4"]
    desc = abi.GemmDescFields(
        m=m, n=n, k=b.k, l=1, a=at, b=2 * at, b_ld=ld, b_scales=3 * at, b_scale_layout=tiles,
        d=4 * at, d_ld=n, d_type=abi.F16)
    _set_numbers(desc, _OF_ALL, numbers)
    desc.beta = 0.0
    if packing:
        desc.a_packing = packing
    else:
        desc.a_ld, desc.a_scales, desc.a_scale_layout = ld, 5 * at, tiles
    if gated:
        desc.b2, desc.b2_scales, desc.alpha2 = 6 * at, 7 * at, 1.0
    info = abi.PlanInfo()
    refused = abi.lib.nvfp4_gemm_describe(desc, capability, 132, info)
    return math.inf if refused else float(info.predicted_ns) or math.inf


def group_alphas(operands: Any, gate: Gate | None = None) -> list[Any]:
    """Returns [factors for b, factors for the gate's b2]. Each is float32 [groups], which replaces
    alpha: the group's tensor scale times the other factors. It is None if all groups have one
    tensor scale. operands are the first arguments of describe(), which multiplies factors in the
    same order.

    If the other factors are 1, the array of tensor scales itself is returned. Otherwise it is
    multiplied on its device, in every call: a cached product would miss a change of the tensor
    scales in place, and a product that was computed under capture exists only when the graph runs.
    """
    a, b, numbers = operands[0], operands[1], operands[6]
    factor = abi.c_float(numbers.alpha).value
    if isinstance(a, Matrix):
        factor = abi.c_float(factor * constant_and_tensor(a.tensor_scale)[0]).value
    scales = (b.group_scales, None if gate is None else gate.b2.group_scales)
    return [one if one is None or factor == 1 else one * factor for one in scales]


def describe_grouped(arrays: Arrays, operands: Any, ends: Array, rows_hint: int,
                     gate: Gate | None,
                     alphas: Sequence[Any]) -> tuple[abi.GemmDescFields, abi.GroupedDescFields]:
    """Returns (the GemmDesc of all groups, the GroupedDesc that points to it). operands are the
    first arguments of describe(), and alphas is what group_alphas() returned."""
    arguments = (*operands, gate)
    b, desc = operands[1], describe(arrays, *arguments)
    desc.n, desc.l = b.rows_of_a_group, b.groups
    if b.packing:  # `block` elements and their scale have block / 2 + 1 bytes
        desc.b_batch_stride = b.bytes_of_a_group // (b.block + 2) * 2 * b.block
    else:
        desc.b_batch_stride = b.rows_of_a_group * codes_ld(arrays, b)
        desc.b_scales_batch_stride_bytes = b.bytes_of_a_group
    alpha, alpha2 = (None if one is None else arrays.address(one) for one in alphas)
    bias = operands[4]
    each = bias is not None and bias.ndim == 2
    return desc, abi.GroupedDescFields(
        gemm=abi.addressof(desc), rows=arrays.address(ends), rows_kind=abi.ROWS_ENDS,
        rows_hint=rows_hint, group_alpha=alpha, group_alpha2=alpha2,
        bias_group_stride=desc.n if each else 0)
