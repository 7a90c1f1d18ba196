# SPDX-License-Identifier: MIT
"""Eager calls, which are not torch operators. Door checks the operands. Then nvfp4gemm._device
computes on a GPU, or the library's reference on the CPU."""
from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_float
from typing import Any

from nvfp4gemm import _optional, abi
from nvfp4gemm._door import Door, number, rows_of
from nvfp4gemm._gemm import Gate, Maxima, Numbers, codes_ld, describe
from nvfp4gemm._matrix import (Matrix, block_of, layout_number, number_of, row_bytes,
                               scale_bytes)
from nvfp4gemm._types import Array, Arrays, DType


def float_type(arrays: Arrays, dtype: Any, what: str) -> int:
    number_ = arrays.type_of(dtype)
    if number_ is None:
        raise TypeError(f"{what} is of {dtype}; there are float16, bfloat16 and float32")
    return number_


def quantize(x: Array, tensor_scale: Any, scale_layout: str, format: str,
             scale_rule: str | None) -> tuple[Any, ...]:
    """Quantizes x. Returns (codes, scales, rows, k, tensor_scale, scale_layout, format)."""
    if scale_layout not in abi.TOKEN_PACKINGS:
        layout_number(scale_layout)
    block_of(format)
    rule = number_of(scale_rule, abi.SCALE_RULES, "scale_rule")
    door = Door(x, "x")
    arrays = door.arrays
    if isinstance(tensor_scale, str):
        if tensor_scale != "rows":
            raise ValueError(f"tensor_scale is {tensor_scale!r}; the only word is 'rows'")
    elif tensor_scale is not None:
        tensor_scale = door.scale(tensor_scale, "tensor_scale")
    if format != "nvfp4":
        if tensor_scale is not None:
            raise ValueError(f"tensor_scale is {tensor_scale!r}; {format} has none")
        if scale_rule is not None:
            raise ValueError(f"scale_rule is {scale_rule!r}; {format} has none")
        tensor_scale = 1.0
    x = door.matrix(x, "x")
    if door.gpu:
        return _optional.device.quantize(x, tensor_scale, scale_layout, format, rule)
    rows, k = x.shape
    x = arrays.rows_of_f32(x)
    codes = arrays.zero_bytes((rows, row_bytes(k)), x)
    scales = arrays.zero_bytes((scale_bytes(rows, k, scale_layout, format),), x)
    desc = _quantizer(arrays, x, codes, scales, scale_layout, k, format)
    desc.scale_rule = rule
    if isinstance(tensor_scale, str):
        tensor_scale = arrays.full(rows, 1.0, x)  # the library writes none if k is 0
        desc.tensor_scale_mode = abi.SCALE_BY_ROW_AMAX
        desc.tensor_scale_device = arrays.address(tensor_scale)
    else:
        if tensor_scale is None:
            # 1 if the quotient is 0 in fp32, as on a GPU.
            tensor_scale = c_float(arrays.largest_finite(x) / 2688).value or 1.0
        desc.tensor_scale = tensor_scale = c_float(door.value(tensor_scale, "tensor_scale")).value
        if format == "nvfp4" and not rule:  # this function takes half the time
            abi.check(abi.lib.nvfp4_quantize_host(
                desc.x, k, rows, k, tensor_scale, desc.codes, desc.codes_ld, desc.scales,
                desc.scale_layout))
            return codes, scales, rows, k, tensor_scale, scale_layout, format
    abi.check(abi.lib.nvfp4_quantize_reference(desc))
    return codes, scales, rows, k, tensor_scale, scale_layout, format


def _quantizer(arrays: Arrays, x: Array, codes: Array, scales: Array, scale_layout: str, k: int,
               format: str = "nvfp4") -> Any:
    """The descriptor for x [rows, k] of float32 on the CPU, its codes and its scales. tensor_scale
    is left at 1."""
    return abi.QuantizeDescFields(
        rows=x.shape[0], k=k, x=arrays.address(x), x_ld=k, x_type=abi.F32,
        codes=arrays.address(codes), codes_ld=2 * row_bytes(k), scales=arrays.address(scales),
        scale_layout=layout_number(scale_layout), tensor_scale=1.0, format=abi.FORMATS[format])


def dequantize(packed: Matrix, dtype: Any = None) -> Array:
    if packed.packing:
        packed = with_scales(packed, "128x4")
    packed = packed.current()
    door = Door(packed.codes, "codes")
    arrays = door.arrays
    type_ = abi.F32 if dtype is None else float_type(arrays, dtype, "dtype")
    if type(packed.tensor_scale) is float and packed.tensor_scale == 0:  # the library refuses 0
        zeros = arrays.full(packed.rows * packed.k, 0.0, packed.codes).reshape(packed.shape)
        return zeros if type_ == abi.F32 else arrays.cast(zeros, type_)
    if door.gpu:
        return _optional.device.dequantize(packed, type_)
    x = arrays.empty(packed.shape, abi.F32, packed.codes)
    if packed.format != "nvfp4":
        desc = _quantizer(arrays, x, packed.codes, packed.scales, packed.scale_layout, packed.k,
                          packed.format)
        desc.codes_ld = codes_ld(arrays, packed)
        abi.check(abi.lib.nvfp4_dequantize_reference(desc))
    elif packed.scale_rows:
        of_rows = packed.tensor_scale
        if packed.scale_rows > 1:
            of_rows = arrays.repeated(of_rows, packed.scale_rows)
        desc = _quantizer(arrays, x, packed.codes, packed.scales, packed.scale_layout, packed.k)
        desc.codes_ld = codes_ld(arrays, packed)
        desc.tensor_scale_mode = abi.SCALES_OF_ROWS
        desc.tensor_scale_device = arrays.address(of_rows)
        abi.check(abi.lib.nvfp4_dequantize_reference(desc))
    else:
        abi.check(abi.lib.nvfp4_dequantize_host(
            arrays.address(packed.codes), codes_ld(arrays, packed), arrays.address(packed.scales),
            layout_number(packed.scale_layout), packed.rows, packed.k,
            door.value(packed.tensor_scale, "tensor_scale"),
            arrays.address(x), packed.k))
    return x if type_ == abi.F32 else arrays.cast(x, type_)


def with_scales(packed: Any, scale_layout: str) -> Any:
    if scale_layout == packed.scale_layout:
        return packed
    packed = packed.current()
    if packed.packing:
        return _unpacked(packed, scale_layout)
    if scale_layout in abi.PACKINGS:
        return _packed(packed, scale_layout)
    door = Door(packed.scales, "scales")
    arrays = door.arrays
    rows, k = packed.shape
    scales = arrays.zero_bytes((scale_bytes(rows, k, scale_layout, packed.format),), packed.scales)
    if door.gpu:
        _optional.device.convert_scales(packed, scales, scale_layout)
    else:
        abi.check(
            abi.lib.nvfp4_scale_convert_host(arrays.address(packed.scales),
                                             layout_number(packed.scale_layout),
                                             arrays.address(scales), layout_number(scale_layout),
                                             rows, k * 16 // packed.block))
    return packed.replace(scales=scales, scale_layout=scale_layout)


def _convert(door: Door, name: str, plain: Sequence[Array], ld: int, memory: Array, of: Matrix,
             packing: int, scale_layout: str) -> None:
    """Calls nvfp4_pack_weights or nvfp4_unpack_weights, as `name` says. `plain` is (codes, scales),
    and `memory` has the packed weights."""
    codes, scales = (door.arrays.address(x) for x in plain)
    count = of.matrices
    rows = of.rows // count
    desc = abi.PackDescFields(
        n=rows, k=of.k, l=count, codes=codes, codes_ld=ld, codes_batch_stride=rows * ld,
        scales=scales, scales_batch_stride_bytes=int(plain[1].shape[0]) // count,
        packed=door.arrays.address(memory),
        packed_batch_stride_bytes=int(memory.shape[0]) // count,
        packing=packing, format=abi.FORMATS[of.format], scale_layout=layout_number(scale_layout))
    if door.gpu:
        _optional.device.pack(name, desc, memory)
    else:
        abi.check(getattr(abi.lib, name + "_host")(desc))


def _packed(packed: Any, packing: str) -> Any:
    door = Door(packed.scales, "scales")
    arrays, rows = door.arrays, packed.rows
    memory = arrays.zero_bytes((packed.bytes_of_scales(packing),), packed.scales)
    _convert(door, "nvfp4_pack_weights", (packed.codes, packed.scales), codes_ld(arrays, packed),
             memory, packed, abi.PACKINGS[packing], packed.scale_layout)
    return packed.replace(codes=arrays.zero_bytes((rows, 0), packed.codes), scales=memory,
                          scale_layout=packing)


def _unpacked(packed: Any, scale_layout: str) -> Any:
    """Converts a packed matrix to that scale layout, or to another packing."""
    layout = "128x4" if scale_layout in abi.PACKINGS else scale_layout
    door = Door(packed.scales, "scales")
    arrays, (rows, k) = door.arrays, packed.shape
    codes = arrays.zero_bytes((rows, row_bytes(k)), packed.codes)
    scales = arrays.zero_bytes((packed.bytes_of_scales(layout),), packed.scales)
    _convert(door, "nvfp4_unpack_weights", (codes, scales), 2 * row_bytes(k), packed.scales, packed,
             packed.packing, layout)
    plain = packed.replace(codes=codes, scales=scales, scale_layout=layout)
    return plain if layout == scale_layout else with_scales(plain, scale_layout)


def result_type(arrays: Arrays, a: Any, out_dtype: DType | None, out: Array | None) -> int:
    if out is not None:
        if out_dtype is not None and arrays.type_of(out_dtype) != arrays.type_of(out.dtype):
            raise TypeError(f"out is of {out.dtype}, out_dtype is {out_dtype}")
        return float_type(arrays, out.dtype, "out")
    if out_dtype is not None:
        return float_type(arrays, out_dtype, "out_dtype")
    return abi.F16 if isinstance(a, Matrix) else arrays.type_of(a.dtype)


def _same(one: object, other: object, what: str, names: Sequence[str]) -> None:
    if one != other:
        raise ValueError(f"{names[0]} has {what} {one}, {names[1]} has {what} {other}")


def beside(door: Door, b: Matrix, n: int, bias: Any, gate: Gate, name: str,
           groups: int | None = None) -> Gate:
    """Returns the gate after checks of its operands. The library assumes that b2 has the shape and
    layout of b, and that bias2 has those of bias."""
    b2, names = gate.b2, ("gate", name)
    door.together(b2.codes, name)
    if not door.gpu:
        b2 = b2.current()
    for what in ("shape", "format", "scale_layout"):
        _same(getattr(b, what), getattr(b2, what), what, names)
    for one, other in ((b, "gate"), (b2, name)):
        if one.has_row_scales:
            raise ValueError(f"{other} has a tensor scale for each row, which x alone may have")
    _same(b.scale_rows, b2.scale_rows, "rows of a tensor scale", names)
    if (bias is None) != (gate.bias2 is None):
        raise ValueError("gate_bias and up_bias are given together or not at all")
    bias2 = gate.bias2
    if bias2 is not None:
        bias2 = (door.vector(bias2, "up_bias", n) if groups is None else
                 door.vectors(bias2, "up_bias", groups, n))
        _same(bias.dtype, bias2.dtype, "type", ("gate_bias", "up_bias"))
        _same(tuple(bias.shape), tuple(bias2.shape), "shape", ("gate_bias", "up_bias"))
    if codes_ld(door.arrays, b) != codes_ld(door.arrays, b2):
        b2 = b2.replace(codes=door.arrays.copy(b2.codes[:, :row_bytes(b2.k)]))
        if codes_ld(door.arrays, b) != codes_ld(door.arrays, b2):
            raise ValueError(f"codes of {name} lie {codes_ld(door.arrays, b2) // 2} bytes apart, "
                             f"those of gate {codes_ld(door.arrays, b) // 2}")
    return gate._replace(b2=b2, bias2=bias2)


def with_floats(numbers: Numbers) -> Numbers:
    """Returns numbers with alpha and beta as floats, so that equal numbers give the same plan key.
    Raises unless activation and launch are known words."""
    number_of(numbers.activation, abi.ACTIVATIONS, "activation")
    number_of(numbers.launch, abi.LAUNCHES, "launch")
    alpha, beta = number(numbers.alpha, "alpha"), number(numbers.beta, "beta")
    if alpha is numbers.alpha and beta is numbers.beta:
        return numbers
    return numbers._replace(alpha=alpha, beta=beta)


def mm(a: Any, b: Matrix, out_dtype: DType | None, bias: Array | None, c: Array | None,
       out: Array | None, numbers: Numbers, names: Sequence[str] = ("a", "b"),
       gate: Gate | None = None, maxima: Maxima | None = None) -> Array:
    """Computes mm() or, with a Gate, gated_linear(). For messages, `names` has the caller's names
    of a, of b and of the Gate's b2."""
    door = b.door(names[1])
    if not door.gpu:  # on a GPU, _device does this when it reads the addresses
        b = b.current()
    arrays, n, leading = door.arrays, b.rows, None
    if isinstance(a, Matrix):
        if not door.gpu:
            a = a.current()
        door.together(a.codes, names[0])
        m, k = a.shape
        if a.format != b.format:
            raise ValueError(f"{names[0]} is in {a.format}, {names[1]} in {b.format}")
        if a.packing:
            raise ValueError(f"{names[0]} is packed, {a.scale_layout}, which {names[1]} alone may "
                             "be; with_scales() unpacks it")
        if a.scale_rows > 1:
            raise ValueError(f"{names[0]} has a tensor scale for each {a.scale_rows} rows, which "
                             f"{names[1]} alone may have")
    else:
        given, a = a, door.matrix(a, names[0], (abi.F16, abi.BF16), unit=16, ld_unit=8)
        leading = given.shape[:-1] if given.ndim != 2 else None
        m, k = a.shape
    if b.has_row_scales:
        raise ValueError(f"{names[1]} has a tensor scale for each row, which {names[0]} alone may "
                         "have")
    if k != b.k:
        raise ValueError(f"{names[0]} has k = {k}, {names[1]} has k = {b.k}")
    numbers = with_floats(numbers)
    if bias is not None:
        bias = door.vector(bias, "bias" if gate is None else "gate_bias", n)
    if gate is not None:
        gate = beside(door, b, n, bias, gate, names[2])
    d, order = None, abi.ROW_MAJOR
    if out is not None:
        d, order = door.result(out, "out", m, n)
    if c is not None:
        c = door.addend(c, "c", m, n, order)
    if maxima is not None:
        maxima = Maxima(*(x if x is None else door.maxima(x, what, count) for x, what, count in
                          zip(maxima, Maxima._fields, (1, m))))
    type_ = result_type(arrays, a, out_dtype, out)
    try:
        if door.gpu:
            d = _optional.device.mm(a, b, m, type_, bias, c, d, order, numbers, gate, maxima)
        else:
            if d is None:
                d = arrays.empty((m, n), type_, b.codes)
            abi.check(abi.lib.nvfp4_gemm_reference(describe(
                arrays, a, b, d, order, bias, c, numbers, gate, maxima)))
    except abi.Error as error:
        if out is not None and error.status == abi.OVERLAP:
            raise ValueError(f"out shares memory with what is read: {error}") from None
        raise
    if maxima is not None:
        for x in maxima:
            if x is not None:
                arrays.written(x)
    if out is not None:
        arrays.written(out)
        return out
    return d if leading is None else d.reshape(*leading, n)
