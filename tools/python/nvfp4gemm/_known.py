# SPDX-License-Identifier: MIT
"""The fast path for repeated products on a GPU. One call of torch confirms that the operands are
like those of an earlier product. All other checks can then be skipped, and the plan of that product
is used.

A Known is stored under the call's arguments, for all weights with the same signature. It computes
the product if the operands have the same class, device, type, shape and strides as before, if torch
has the same modes, and if memory holds all elements. If anything differs, the call takes the normal
path with all checks. So this module raises no errors about operands.
"""
from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from nvfp4gemm import _oldest_torch  # noqa: F401, first: it refuses a torch that is too old
import torch

from nvfp4gemm import _device, abi
from nvfp4gemm._arrays import Torch
from nvfp4gemm._device import _enter, _stream_of
from nvfp4gemm._matrix import Matrix
from nvfp4gemm._types import Places

# torch's compiled code makes this check before it runs. For all tensors of a call it compares
# class, device, type, shape, strides, requires_grad and the dispatcher's keys, including those of
# modes.
try:
    from torch._C._dynamo.guards import TensorGuards as _Guards
except ImportError:
    _Guards = None  # type: ignore[assignment,misc]  # there is no fast path

_MOST = 4096  # all are dropped at this number
_MOST_ALIKE = 4  # for the same arguments under different modes of torch
_UNIT = 256  # alignment in bytes of the parts of a quantized x
_tables: WeakValueDictionary[Any, Table] = WeakValueDictionary()
_modes = torch._C._len_torch_dispatch_stack
_forward_ad = torch.autograd.forward_ad
_empty = _device._empty  # type: ignore[attr-defined]


def _packer(names: tuple[str, ...]) -> struct.Struct:
    """A packer for the address struct of a plan: its first seven fields (size, three of a, three of
    b), then `names`, in the struct's order. All other fields are 0."""
    fields = [name for name, _ in abi.GemmAddressesFields._fields_]
    if [name for name in fields if name in names] != list(names):
        raise AssertionError("names are in another order than the struct's")
    return struct.Struct("=7Q" + "".join("Q" if name in names else "8x" for name in fields[7:]))


_ADDRESSES = _packer(("d", "bias", "workspace", "workspace_bytes", "rows", "group_alpha"))


def _held(x: torch.Tensor, address: int, bytes_: int, unit: int) -> bool:
    """Whether the address of x is a multiple of `unit`, and its memory holds `bytes_` bytes from
    there on."""
    offset = x.storage_offset()
    return address != 0 and address % unit == 0 and bool(
        bytes_ + (offset and offset * x.itemsize) <= x.untyped_storage().nbytes())


def _usable(x: torch.Tensor, device: torch.device) -> bool:
    """Whether x is a dense tensor on that device, of class Tensor or Parameter."""
    if type(x) is torch.nn.Parameter:
        x = x.detach()
    return Torch.dense(x, device)


class _Tokens:
    """How x is quantized: into one allocation, which holds the codes, the scales and, if each row
    has its own, the tensor scales."""
    __slots__ = ("fields", "scales", "of_rows", "bytes")

    def __init__(self, x: torch.Tensor, a: Matrix, scaled: bool) -> None:
        """`scaled` says whether the caller passed the tensor scale as a tensor."""
        rows, k = a.shape
        mode = _device._mode_of(a.tensor_scale)
        by_rows = mode == abi.SCALE_ON_DEVICE and not scaled
        if by_rows:
            mode = abi.SCALE_BY_ROW_AMAX
        same = _device._quantizer_of(rows, k, k, x.dtype, a.scale_layout, mode, a.format, 0)
        desc = abi.QuantizeDescFields.from_buffer_copy(same.fields)
        if mode == abi.SCALE_BY_VALUE:
            desc.tensor_scale = a.tensor_scale
        self.fields = bytes(desc)
        end = -(-math.prod(same.codes[0]) // _UNIT) * _UNIT
        scales = math.prod(same.scales[0])
        self.scales = end if scales else 0  # packed tokens have none
        end += -(-scales // _UNIT) * _UNIT
        self.of_rows = end if by_rows else 0
        self.bytes = end + (4 * rows if by_rows else 0)

    def quantize(self, x: int, memory: int, scale: int, stream: int) -> int:
        """Quantizes the x at that address. Returns the address of the tensor scale; 0 if that is a
        number."""
        to = abi.QuantizeDescFields.from_buffer_copy(self.fields)
        to.x, to.codes = x, memory
        to.scales = memory + self.scales if self.scales else 0
        if self.of_rows:
            scale = memory + self.of_rows
        to.tensor_scale_device = scale
        status = abi.lib.nvfp4_quantize(to, stream)
        if status:
            raise abi.Error(status)
        return scale


def _check_of(*operands: torch.Tensor) -> Any:
    """A function of as many tensors: whether they are like the operands."""
    return _Guards(*operands, dynamic_dims_sizes=None, dynamic_dims_strides=None).check


class Known:
    """A known product: x times a weight with b's signature, plus a bias. It is a grouped product if
    there are ends. `scale` is the tensor with which x is quantized, or None."""
    __slots__ = ("check", "no_gradient", "bytes", "tokens", "index", "sizes", "strides", "dtype",
                 "plan", "workspace_bytes", "group_scales")

    def __init__(self, plan: Any, b: Any, a: Any, scaled: bool, d: torch.Tensor,
                 *operands: torch.Tensor) -> None:
        x = operands[0]
        self.check = _check_of(*operands)
        self.no_gradient = any(one.requires_grad for one in operands)
        self.bytes = x.nbytes
        self.tokens = _Tokens(x, a, scaled) if isinstance(a, Matrix) else None
        self.index = b.codes.get_device()
        self.sizes, self.strides, self.dtype = tuple(d.shape), d.stride(), d.dtype
        self.plan, self.workspace_bytes = plan, plan.workspace_bytes
        self.group_scales = b.group_scales is not None

    def _fits(self, x: torch.Tensor, others: list[torch.Tensor]) -> bool:
        return self.check(x, *others) and all(
            _held(one, one.data_ptr(), one.nbytes, 4) for one in others)

    def __call__(self, at: Places, codes: torch.Tensor, scales: torch.Tensor, factor: Any,
                 x: torch.Tensor, bias: Any, ends: Any, scale: Any) -> Any:
        """Returns the product of x with these codes, scales and tensor scale. They were checked
        when they had the addresses `at`. Returns None if the call differs from the stored one."""
        # check() compares the keys of traces and transforms, but not those of some modes.
        if _modes() or _forward_ad._current_level >= 0 or (
                self.no_gradient and torch.is_grad_enabled()):
            return None
        if bias is None and ends is None and scale is None:
            if not self.check(x):
                return None
        elif not self._fits(x, [one for one in (bias, ends, scale) if one is not None]):
            return None
        a, index = x.data_ptr(), self.index
        if not _held(x, a, self.bytes, 16):
            return None
        b, b_scales, b_factor = at
        if b_scales is None:  # packed weights, which are scales and codes in one
            b_scales, codes = 0, scales
        elif scales.data_ptr() != b_scales:
            return None
        if codes.data_ptr() != b or (
                b_factor is not None and factor.data_ptr() != b_factor) or not _enter(index):
            return None
        stream = _stream_of(index)
        x_scales = x_factor = 0
        if self.tokens is not None:
            memory = _empty((self.tokens.bytes,), (1,), torch.uint8)
            a, x_at = memory.data_ptr(), a
            x_scales = a + self.tokens.scales if self.tokens.scales else 0
            x_factor = self.tokens.quantize(x_at, a, scale.data_ptr() if scale is not None else 0,
                                            stream)
        d = _empty(self.sizes, self.strides, self.dtype)
        workspace, bytes_ = 0, self.workspace_bytes
        if bytes_:
            lent = _empty((bytes_,), (1,), torch.uint8)
            workspace = lent.data_ptr()
        of_groups, of_all = (b_factor, 0) if self.group_scales else (0, b_factor or 0)
        status = abi.run_plan(self.plan.handle, _ADDRESSES.pack(
            _ADDRESSES.size, a, x_scales, x_factor, b, b_scales, of_all, d.data_ptr(),
            0 if bias is None else bias.data_ptr(), workspace, bytes_,
            0 if ends is None else ends.data_ptr(), of_groups), stream)
        if status:
            raise abi.Error(status)
        return d


def _there(matrix: Matrix) -> bool:
    """Whether the parts are where they were when they were checked."""
    codes, scales, factor = matrix._places
    if scales is None:  # packed weights, which are scales and codes in one
        there = matrix._scales.data_ptr() == codes
    else:
        there = matrix._codes.data_ptr() == codes and matrix._scales.data_ptr() == scales
    return there and (factor is None or matrix._tensor_scale.data_ptr() == factor)


class KnownPair:
    """A known product of two quantized matrices with the signatures of a and b, without a bias and
    c. It has no gradients."""
    __slots__ = ("check", "index", "sizes", "strides", "dtype", "plan", "workspace_bytes")

    def __init__(self, plan: Any, a: Matrix, b: Matrix, d: torch.Tensor) -> None:
        self.check = _check_of(a.codes)
        self.index = b.codes.get_device()
        self.sizes, self.strides, self.dtype = tuple(d.shape), d.stride(), d.dtype
        self.plan, self.workspace_bytes = plan, plan.workspace_bytes

    def __call__(self, a: Matrix, b: Matrix) -> Any:
        """Returns the product. Returns None if the call differs from the stored one."""
        if _modes() or _forward_ad._current_level >= 0 or not self.check(a._codes) or not (
                _there(a) and _there(b) and _enter(self.index)):
            return None
        d = _empty(self.sizes, self.strides, self.dtype)
        workspace, bytes_ = 0, self.workspace_bytes
        if bytes_:
            lent = _empty((bytes_,), (1,), torch.uint8)
            workspace = lent.data_ptr()
        (codes, scales, factor), (b_codes, b_scales, b_factor) = a._places, b._places
        status = abi.run_plan(self.plan.handle, _ADDRESSES.pack(
            _ADDRESSES.size, codes, scales, factor or 0, b_codes, b_scales or 0, b_factor or 0,
            d.data_ptr(), 0, workspace, bytes_, 0, 0), _stream_of(self.index))
        if status:
            raise abi.Error(status)
        return d


class Table(dict[Any, list[Any]]):
    """{arguments: products}, each a Known; or {arguments: [a KnownPair]}. All weights with the same
    signature share a Table and keep it alive."""


def table_of(kind: Any) -> Table:
    """The Table for weights of that kind."""
    return _tables.setdefault(kind, Table())


def remember(key: Any, b: Any, x: Any, a: Any, bias: Any, ends: Any, scale: Any, numbers: Any,
             d: Any, rows_hint: int = 0) -> None:
    """Stores the product d, which was just computed from these operands, if a later call can use
    it. `a` is x, or the quantized x. `scale` is the tensor_scale with which x was quantized, or
    None."""
    device = b.codes.device
    scale = scale if isinstance(scale, torch.Tensor) else None
    operands = [one for one in (x, bias, ends, scale) if one is not None]
    if _Guards is None or b.traced or b.moved_to(b.places(Torch)) or Torch.observed() or (
            Torch.autocasts(x) or Torch.first_with_gradient(*operands) is not None) or not all(
            _usable(one, device) for one in operands):
        return
    m = math.prod(x.shape[:-1])
    if not isinstance(a, Matrix):
        a = a.reshape(m, b.k)
    if ends is None:
        plan = _device.kept_plan(a, b, m, Torch.type_of(d.dtype), bias, numbers)
    elif ends.dtype != torch.int32 or ends.shape != (b.groups,):
        return  # ends must be converted first, so its address changes
    else:
        plan = _device.kept_grouped_plan(a, b, d.reshape(m, -1), bias, numbers, rows_hint)
    if plan is not None:
        _store(key, b, operands, lambda: Known(plan, b, a, scale is not None, d, *operands))


def remember_pair(key: Any, a: Matrix, b: Matrix, numbers: Any, d: Any) -> None:
    """Stores the product d of two quantized matrices, which was just computed, if a later call can
    use it."""
    if _Guards is None or Torch.observed() or Torch.autocasts(b.codes) or any(
            one.traced or one.moved_to(one.places(Torch)) for one in (a, b)):
        return
    plan = _device.kept_plan(a, b, a.rows, Torch.type_of(d.dtype), None, numbers)
    if plan is not None:
        _store(key, b, [a.codes], lambda: KnownPair(plan, a, b, d))


def _store(key: Any, b: Any, operands: list[torch.Tensor], make: Callable[[], Any]) -> None:
    """Stores what make() returns in b's Table, unless it is there."""
    if b._known is None:
        b._known = table_of((getattr(b, "groups", None), _device._signature(b)))
    alike = b._known.get(key, [])
    if any(known.check(*operands) for known in alike):
        return  # already stored, through another weight
    if sum(map(len, _tables.values())) >= _MOST:
        for table in _tables.values():
            table.clear()
    b._known[key] = [make(), *alike[:_MOST_ALIKE - 1]]
