# SPDX-License-Identifier: MIT
"""Weights of several groups, such as the experts of a layer, and the products of all groups in one
launch."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nvfp4gemm import _optional, _packings, abi
from nvfp4gemm._door import Door, size
from nvfp4gemm._eager import beside, result_type, with_floats, with_scales
from nvfp4gemm._gemm import Gate, Numbers, describe_grouped, group_alphas
from nvfp4gemm._matrix import Matrix, codes_in_bytes, number_of, row_bytes, scale_bytes
from nvfp4gemm._types import AnyArray, Array, Arrays, DType, Self


class Stack(Matrix):
    """`groups` matrices [rows, k] of one format, in one array of codes and one array of scales.

    codes         uint8 or float4_e2m1fn_x2 [groups, rows, k / 2 or more]
    scales        uint8, float8_e4m3fn or float8_e8m0fnu; the scales of the matrices one after the
                  other, each in `scale_layout`
    tensor_scale  a float or one float32 on the device of the codes, for all groups; or float32
                  [groups], one for each group
    scale_layout  as in Packed
    format        as in Packed

    Arrays are used, copied and refused as by Packed. stack() makes a Stack of single matrices. A
    packed Stack, from pack() or from packed matrices, has the name of its packing as scale_layout,
    codes of the shape [groups, rows, 0], and the packed matrices in scales.
    """

    def __init__(self, codes: AnyArray, scales: AnyArray, groups: int, rows: int, k: int,
                 tensor_scale: float | AnyArray = 1.0, scale_layout: str = "128x4",
                 format: str = "nvfp4") -> None:
        groups, each = size(groups, "groups"), size(rows, "rows")
        door = Door(codes, "codes")
        codes = door.bytes(codes_in_bytes(codes), "codes")
        if codes.ndim != 3 or tuple(codes.shape[:2]) != (groups, each):
            raise ValueError(f"codes are {tuple(codes.shape)}; expected ({groups}, {each}, k / 2)")
        self._groups, self._each = groups, each
        super().__init__(codes.reshape((groups * each, codes.shape[2])), scales, groups * each, k,
                         tensor_scale, scale_layout, format)

    @property
    def groups(self) -> int:
        return self._groups

    @property
    def matrices(self) -> int:  # type: ignore[override]
        return self._groups

    @property
    def rows_of_a_group(self) -> int:
        return self._each

    @property
    def bytes_of_a_group(self) -> int:
        return scale_bytes(self._each, self.k, self.scale_layout, self.format)

    def pack(self, packing: str | None = None) -> Self:
        """The same weights in the order that kernels of one GPU architecture read; see
        Packed.pack()."""
        packing = _packings.chosen(self.codes, packing)
        number_of(packing, abi.PACKINGS, "packing")
        packed: Self = with_scales(self, packing)
        return packed

    def unpack(self) -> Self:
        """The same weights as codes and 128x4 scales. Returns itself if they are not packed."""
        if not self.packing:
            return self
        plain: Self = with_scales(self, "128x4")
        return plain

    @property
    def scale_rows(self) -> int:
        return 0  # the rows of a group have one tensor scale

    @property
    def group_scales(self) -> Any:
        several = getattr(self._tensor_scale, "ndim", 0) == 1 and self._tensor_scale.shape[0] > 1
        return self._tensor_scale if several else None

    @property
    def common_scale(self) -> Any:
        return self._tensor_scale if self.group_scales is None else 1.0

    def _bytes_of_scales(self, rows: int, k: int, scale_layout: str, format: str) -> int:
        return self._groups * scale_bytes(self._each, k, scale_layout, format)

    def _scale_through(self, door: Door, tensor_scale: Any, rows: int) -> Any:
        return door.scale_of_groups(tensor_scale, "tensor_scale", self._groups)

    def __reduce__(self) -> tuple[Any, ...]:
        codes = self._codes.reshape((self._groups, self._each, self._codes.shape[1]))
        return type(self), (codes, self._scales, self._groups, self._each, self._k,
                            self._tensor_scale, self._scale_layout, self._format)

    def replace(self, **parts: Any) -> Self:
        made, own = self.__reduce__()
        if "codes" in parts and parts["codes"].ndim == 2:
            codes = parts["codes"]
            parts["codes"] = codes.reshape((self._groups, self._each, codes.shape[1]))
        names = ("codes", "scales", "groups", "rows", "k", "tensor_scale", "scale_layout", "format")
        stack: Self = made(**{**dict(zip(names, own)), **parts})
        return stack


def stack(matrices: Iterable[Matrix]) -> Stack:
    """Copies matrices, which must have the same shape, format and scale layout, into one Stack.
    Each matrix must have a single tensor scale, which it keeps. Tensor scales on a device are not
    read by the host."""
    matrices = list(matrices)
    if not matrices:
        raise ValueError("matrices are none; a stack has one or more")
    first = matrices[0]
    arrays = first.door("matrices").arrays
    for i, one in enumerate(matrices):
        first.door("matrices").together(one.codes, f"matrix {i}")
        for what in ("shape", "format", "scale_layout"):
            if getattr(one, what) != getattr(first, what):
                raise ValueError(f"matrix {i} has {what} {getattr(one, what)}, matrix 0 has "
                                 f"{getattr(first, what)}")
        if one.scale_rows:
            raise ValueError(f"matrix {i} has several tensor scales; a group has one")
    matrices = [one.current() for one in matrices]
    codes = arrays.joined([one.codes[:, :first.k // 2] for one in matrices])
    return Stack(codes.reshape((len(matrices), first.rows, codes.shape[1])),
                 arrays.joined([one.scales for one in matrices]), len(matrices), first.rows,
                 first.k, _scale_of(arrays, matrices), first.scale_layout, first.format)


def _scale_of(arrays: Arrays, matrices: Sequence[Matrix]) -> Any:
    """The tensor scale of the Stack: a single one if all matrices have the same number or the same
    array, else float32 [groups]."""
    scales = [one.tensor_scale for one in matrices]
    numbers = all(isinstance(scale, float) for scale in scales)
    if all(scale == scales[0] if numbers else scale is scales[0] for scale in scales):
        return scales[0]
    return arrays.joined([arrays.full(1, scale, one.codes) if isinstance(scale, float) else
                          scale.reshape(-1) for scale, one in zip(scales, matrices)])


def product(x: Any, ends: Array, b: Stack, out_dtype: DType | None, bias: Array | None,
            out: Array | None, numbers: Numbers, rows_hint: int, gate: Gate | None = None,
            out_scale: Any = None) -> Any:
    """Computes grouped_linear(), or grouped_gated_linear() if there is a Gate, for an x that is in
    16 bits or already quantized. With out_scale, which is its tensor scale, the result is a
    Matrix."""
    name = "weights" if gate is None else "gate"
    door = b.door(name)
    if not door.gpu:
        b = b.current()
    arrays, n, leading = door.arrays, b.rows_of_a_group, None
    if isinstance(x, Matrix):
        if not door.gpu:
            x = x.current()
        door.together(x.codes, "x")
        if x.format != b.format:
            raise ValueError(f"x is in {x.format}, {name} in {b.format}")
        if x.packing:
            raise ValueError(f"x is packed, {x.scale_layout}, which {name} alone may be")
        if x.scale_rows > 1:
            raise ValueError(f"x has a tensor scale for each {x.scale_rows} rows, which a grouped "
                             "product does not take")
    else:
        given, x = x, door.matrix(x, "x", (abi.F16, abi.BF16), unit=16, ld_unit=8)
        leading = given.shape[:-1] if given.ndim != 2 else None
    m, k = x.shape
    if k != b.k:
        raise ValueError(f"x has k = {k}, {name} has k = {b.k}")
    numbers, rows_hint = with_floats(numbers), size(rows_hint, "rows_hint")
    ends = door.ends(ends, "ends", b.groups)
    if bias is not None:
        bias = door.vectors(bias, "bias" if gate is None else "gate_bias", b.groups, n)
    if gate is not None:
        groups = getattr(gate.b2, "groups", None)
        if groups != b.groups:
            raise ValueError(f"gate has {b.groups} groups, up has {groups}")
        gate = beside(door, b, n, bias, gate, "up", groups)
    d, order = None, abi.ROW_MAJOR
    if out is not None:
        d, order = door.result(out, "out", m, n)
    if out_scale is not None:
        d = _quantized_result(door, b, m, out_scale)
    type_ = result_type(arrays, x, out_dtype, out)
    if d is None:
        d = arrays.empty((m, n), type_, b.codes)
    operands = (x, b, d, order, bias, None, numbers)
    try:
        if door.gpu:
            _optional.device.grouped(operands, ends, rows_hint, gate)
        else:
            alphas = group_alphas(operands, gate)  # must live until the call has read it
            desc, groups = describe_grouped(arrays, operands, ends, rows_hint, gate, alphas)
            abi.check(abi.lib.nvfp4_grouped_reference(groups))
    except abi.Error as error:
        if out is not None and error.status == abi.OVERLAP:
            raise ValueError(f"out shares memory with what is read: {error}") from None
        raise
    if out is not None:
        arrays.written(out)
        return out
    return d if leading is None or out_scale is not None else d.reshape(*leading, n)


def _scale_of_result(door: Door, b: Stack, out_scale: Any) -> Any:
    """The tensor scale of a result that is quantized in b's format: an array of one float32; or 1.0
    if the format has none."""
    if b.format != "nvfp4":
        if not (isinstance(out_scale, (int, float)) and out_scale == 1):
            raise ValueError(f"out_scale is {out_scale}; {b.format} has no tensor scale: it is 1")
        return 1.0
    scale = door.scale(out_scale, "out_scale")
    return door.arrays.full(1, scale, b.codes) if isinstance(scale, float) else scale


def _quantized_result(door: Door, b: Stack, m: int, out_scale: Any) -> Matrix:
    """A Matrix [m, n] for the result, without values. n is the number of rows of each weight."""
    arrays, n, format_ = door.arrays, b.rows_of_a_group, b.format
    scale = _scale_of_result(door, b, out_scale)
    if n % b.block:
        raise ValueError(f"a result with scales has a multiple of {b.block} columns, not {n}")
    return Matrix.of_own(arrays, arrays.empty_bytes((m, row_bytes(n)), b.codes),
                         arrays.empty_bytes((scale_bytes(m, n, "linear", format_),), b.codes),
                         m, n, scale, "linear", format_)
