# SPDX-License-Identifier: MIT
"""The calls on torch tensors of a GPU. They use torch's allocator and its current stream, and cache
plans.

A plan contains everything except addresses. If a plan is cached, a call fills a struct with
addresses and launches. Nothing here synchronises. A workspace can be freed right after the launch,
since torch's allocator reuses memory in stream order.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from nvfp4gemm import _oldest_torch  # noqa: F401, first: it refuses a torch that is too old
import torch

from nvfp4gemm import abi
from nvfp4gemm._arrays import Torch
from nvfp4gemm._gemm import (codes_ld, describe, describe_grouped, group_alphas,
                              predicted_ns)
from nvfp4gemm._matrix import Matrix, constant_and_tensor, layout_number, row_bytes, scale_bytes

_MOST_PLANS = 4096  # a new plan then replaces the oldest; a plan takes about 1 KB
_TORCH = {number: Torch.dtype(number) for number in (abi.F16, abi.BF16, abi.F32)}
_plans: dict[Any, Any] = {}
_quantizers: dict[Any, _Quantizer] = {}
_ready: set[int] = set()
_thread = threading.local()
_no_addresses = bytes(abi.GemmAddressesFields())
# torch's own compiled code calls these. The public functions are slower, since they make objects.
_current_device = torch._C._cuda_getDevice
_stream_of = torch._C._cuda_getCurrentRawStream


def _empty_of_torch(size: Sequence[int], _stride: Sequence[int],
                    dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(size, dtype=dtype, device="cuda")


# _empty(size, contiguous strides, dtype) allocates on the current device. torch's compiled code
# uses this function, too.
try:
    from torch._C._dynamo.guards import (  # type: ignore[attr-defined]
        _empty_strided_cuda as _empty)
except ImportError:
    _empty = _empty_of_torch


def _capability(device: Any) -> int:
    major, minor = torch.cuda.get_device_capability(device)
    return 10 * major + minor


class _Plan:
    """A plan of the library. It stays valid as long as somebody uses it, even after it was dropped
    from the cache."""

    def __init__(self, desc: Any, capability: int) -> None:
        self._make(desc, abi.workspace_bytes(desc, capability), abi.lib.nvfp4_gemm_plan_create,
                   desc)

    def _make(self, desc: Any, workspace_bytes: int, create: Callable[..., int],
              described: Any) -> None:
        self.workspace_bytes = workspace_bytes
        if workspace_bytes:
            workspace = torch.empty(workspace_bytes, dtype=torch.uint8, device="cuda")
            desc.workspace, desc.workspace_bytes = workspace.data_ptr(), workspace_bytes
        self.handle = abi.c_void_p()
        abi.check(create(described, self.handle))

    def __del__(self, destroy: Any = abi.lib.nvfp4_gemm_plan_destroy) -> None:
        if getattr(self, "handle", None):
            destroy(self.handle)


def _enter(device: Any) -> bool:
    """Makes the device usable by this thread and loads its kernels, so that this does not happen
    during a capture. Returns False if the device is not the current one."""
    if device != _current_device():
        return False
    if getattr(_thread, "ready", None) != device:
        torch.cuda.mem_get_info(device)  # makes the device's context current in this thread
        if device not in _ready:
            abi.check(abi.lib.nvfp4_prepare())
            _ready.add(device)
        _thread.ready = device
    return True


def _make_plan(key: Any, device: Any, arguments: Any) -> Any:
    return _keep(key, _Plan(describe(Torch, *arguments), _capability(device)))


def _keep(key: Any, plan: Any) -> Any:
    while len(_plans) >= _MOST_PLANS:
        _plans.pop(next(iter(_plans)), None)
    _plans[key] = plan
    return plan


def _signature(packed: Matrix) -> tuple[Any, ...]:
    """The key of a Matrix for plans, computed once: device, shape, strides, layout, format and the
    kind of its tensor scale."""
    try:
        return packed._signature
    except AttributeError:
        factor, tensor = constant_and_tensor(packed.common_scale)
        packed._signature = (packed.codes.get_device(), packed.rows, packed.k,
                             packed.codes.stride(0), packed.scale_layout, factor,
                             None if tensor is None else tensor.get_device(),
                             packed.scale_rows, packed.group_scales is None, packed.format)
        return packed._signature


def _lend(plan: Any, to: Any) -> torch.Tensor:
    """Allocates the plan's workspace and puts its address into `to`. The caller keeps the result
    until it has launched."""
    workspace = _empty((plan.workspace_bytes,), (1,), torch.uint8)
    to.workspace, to.workspace_bytes = workspace.data_ptr(), plan.workspace_bytes
    return workspace


def _of(tensor: torch.Tensor | None) -> Any:
    return None if tensor is None else (tensor.get_device(), tensor.dtype, tensor.stride())


def _key(a: Any, b: Matrix, m: int, result: Any, bias: torch.Tensor | None,
         c: torch.Tensor | None, numbers: Any) -> Any:
    return (_signature(a) if isinstance(a, Matrix) else (m, *_of(a)), _signature(b), result,
            _of(bias), _of(c), numbers)


def kept_plan(a: Any, b: Matrix, m: int, type_: int | None, bias: torch.Tensor | None,
              numbers: Any) -> Any:
    """The plan that mm() would use for these operands if it is still cached, else None."""
    return _plans.get(_key(a, b, m, type_, bias, None, numbers))


def mm(a: Any, b: Matrix, m: int, type_: int, bias: torch.Tensor | None, c: torch.Tensor | None,
       d: Any, order: int, numbers: Any, gate: Any = None,
       maxima: Any = None) -> torch.Tensor:
    """Computes the product into d, or into a new tensor of that type. The plan's key contains all
    of `numbers` and all numbers of the gate."""
    codes = b.codes
    index = codes.get_device()
    if not _enter(index):
        with torch.cuda.device(index):
            return mm(a, b, m, type_, bias, c, d, order, numbers, gate, maxima)
    packed = isinstance(a, Matrix)
    at_a: Any = a.places(Torch) if packed else None
    at_b = b.places(Torch)
    if b.moved_to(at_b) or packed and a.moved_to(at_a):
        return mm(a.current() if packed else a, b.current(), m, type_, bias, c, d, order, numbers,
                  gate, maxima)
    if gate is not None:
        at_b2 = gate.b2.places(Torch)
        if gate.b2.moved_to(at_b2):
            return mm(a, b, m, type_, bias, c, d, order, numbers,
                      gate._replace(b2=gate.b2.current()), maxima)
    fresh = d is None
    if fresh:
        d = _empty((m, b.rows), (b.rows, 1), _TORCH[type_])
    key = _key(a, b, m, type_ if fresh else _of(d), bias, c, numbers)
    if gate is not None:
        key += (_signature(gate.b2), _of(gate.bias2), *gate[2:])
    if maxima is not None:
        key += (maxima.amax is None, maxima.row_amax is None)
    plan = _plans.get(key)
    if plan is None:
        plan = _make_plan(key, codes.device, (a, b, d, order, bias, c, numbers, gate, maxima))
    to = abi.GemmAddressesFields.from_buffer_copy(_no_addresses)
    if packed:
        to.a, to.a_scales, to.a_tensor_scale = at_a
    else:
        to.a = a.data_ptr()
    to.b, to.b_scales, to.b_tensor_scale = at_b
    to.d = d.data_ptr()
    if bias is not None:
        to.bias = bias.data_ptr()
    if gate is not None:
        to.b2, to.b2_scales, to.b2_tensor_scale = at_b2
        if gate.bias2 is not None:
            to.bias2 = gate.bias2.data_ptr()
    if c is not None:
        to.c = c.data_ptr()
    if maxima is not None:
        if maxima.amax is not None:
            to.d_amax = maxima.amax.data_ptr()
        if maxima.row_amax is not None:
            to.d_row_amax = maxima.row_amax.data_ptr()
    workspace = _lend(plan, to) if plan.workspace_bytes else None  # noqa: F841, until the launch
    status = abi.lib.nvfp4_gemm_plan_run(plan.handle, to, _stream_of(index))
    if status:
        raise abi.Error(status)
    return d


class _GroupedPlan(_Plan):
    """A plan of a grouped product. The library reads the GroupedDesc while it makes the plan, not
    later."""

    def __init__(self, desc: Any, groups: Any, capability: int) -> None:
        size = abi.c_uint64()
        abi.check(abi.lib.nvfp4_grouped_workspace_bytes(groups, capability, size))
        self._make(desc, size.value, abi.lib.nvfp4_grouped_plan_create, groups)


def _key_of_groups(a: Any, b: Any, d: Any, order: int, bias: torch.Tensor | None,
                   numbers: Any, rows_hint: int) -> Any:
    return ("grouped", b.groups, _signature(a) if isinstance(a, Matrix) else (a.shape, *_of(a)),
            _signature(b), _signature(d) if isinstance(d, Matrix) else _of(d), order, _of(bias),
            numbers, rows_hint)


def kept_grouped_plan(a: Any, b: Any, d: torch.Tensor, bias: torch.Tensor | None, numbers: Any,
                      rows_hint: int) -> Any:
    """The plan that grouped() would use for these operands if it is still cached and no scales have
    to be multiplied first; else None."""
    if group_alphas((a, b, None, None, None, None, numbers))[0] is not b.group_scales:
        return None
    return _plans.get(_key_of_groups(a, b, d, abi.ROW_MAJOR, bias, numbers, rows_hint))


def grouped(operands: Any, ends: torch.Tensor, rows_hint: int, gate: Any = None) -> Any:
    """Computes the grouped product into d. operands are the first arguments of describe()."""
    a, b, d, order, bias, _, numbers = operands
    index = b.codes.get_device()
    if not _enter(index):
        with torch.cuda.device(index):
            return grouped(operands, ends, rows_hint, gate)
    packed = isinstance(a, Matrix)
    at_a: Any = a.places(Torch) if packed else None
    at_b = b.places(Torch)
    if b.moved_to(at_b) or packed and a.moved_to(at_a):
        return grouped((a.current() if packed else a, b.current(), *operands[2:]), ends, rows_hint,
                       gate)
    if gate is not None:
        at_b2 = gate.b2.places(Torch)
        if gate.b2.moved_to(at_b2):
            return grouped(operands, ends, rows_hint, gate._replace(b2=gate.b2.current()))
    key = _key_of_groups(a, b, d, order, bias, numbers, rows_hint)
    if gate is not None:
        key += (_signature(gate.b2), _of(gate.bias2), *gate[2:])
    alphas = of_b, of_b2 = group_alphas(operands, gate)  # must live until the launch
    plan = _plans.get(key)
    if plan is None:
        plan = _keep(key, _GroupedPlan(
            *describe_grouped(Torch, operands, ends, rows_hint, gate, alphas),
            _capability(b.codes.device)))
    to = abi.GemmAddressesFields.from_buffer_copy(_no_addresses)
    if packed:
        to.a, to.a_scales, to.a_tensor_scale = at_a
    else:
        to.a = a.data_ptr()
    to.b, to.b_scales, scale = at_b
    if of_b is None:
        to.b_tensor_scale = scale
    else:
        to.group_alpha = of_b.data_ptr()
    if isinstance(d, Matrix):
        to.d, to.d_scales, to.d_tensor_scale = d.places(Torch)
    else:
        to.d = d.data_ptr()
    to.rows = ends.data_ptr()
    if bias is not None:
        to.bias = bias.data_ptr()
    if gate is not None:
        to.b2, to.b2_scales, scale = at_b2
        if of_b2 is None:
            to.b2_tensor_scale = scale
        else:
            to.group_alpha2 = of_b2.data_ptr()
        if gate.bias2 is not None:
            to.bias2 = gate.bias2.data_ptr()
    workspace = _lend(plan, to) if plan.workspace_bytes else None  # noqa: F841, until the launch
    abi.check(abi.lib.nvfp4_gemm_plan_run(plan.handle, to, _stream_of(index)))


class _Quantizer:
    """What quantize() calls with the same sizes share: the descriptor without addresses, and the
    sizes of allocations."""

    def __init__(self, rows: int, k: int, x_ld: int, x_dtype: torch.dtype, scale_layout: str,
                 mode: int, format: str, rule: int) -> None:
        desc = abi.QuantizeDescFields(
            rows=rows, k=k, x_ld=x_ld, x_type=Torch.type_of(x_dtype), tensor_scale=1.0,
            tensor_scale_mode=mode, format=abi.FORMATS[format], scale_rule=rule)
        desc.packing = abi.TOKEN_PACKINGS.get(scale_layout, 0)
        of_row, scales = row_bytes(k), 0
        if desc.packing:
            of_row = abi.lib.nvfp4_packed_bytes(1, k, desc.packing, desc.format)
        else:
            desc.codes_ld, desc.scale_layout = 2 * of_row, layout_number(scale_layout)
            scales = scale_bytes(rows, k, scale_layout, format)
        size = abi.c_uint64()
        abi.check(abi.lib.nvfp4_quantize_workspace_bytes(desc, size))
        self.workspace_bytes = desc.workspace_bytes = size.value
        self.fields = bytes(desc)
        self.codes = (rows, of_row), (of_row, 1)
        self.scales = (scales,), (1,)


def _quantizer_of(*key: Any) -> _Quantizer:
    found = _quantizers.get(key)
    if found is None:
        if len(_quantizers) >= _MOST_PLANS:
            _quantizers.clear()
        found = _quantizers[key] = _Quantizer(*key)
    return found


_layouts: dict[Any, str] = {}


def layout_of_tokens(b: Matrix, m: int, numbers: Any, gated: bool) -> str:
    """The scale_layout to which m tokens are quantized for a product with b alone: packed where
    the device's kernels read packed tokens and the library predicts that they take less time."""
    key = b.codes.get_device(), m, *b.shape, numbers, gated
    found = _layouts.get(key)
    if found is None:
        if len(_layouts) >= _MOST_PLANS:
            _layouts.clear()
        capability = _capability(b.codes.device)
        times = [predicted_ns(m, b, packing, numbers, gated, capability)
                 for packing in (0, *abi.TOKEN_PACKINGS.values())]
        layouts = ("128x4", *abi.TOKEN_PACKINGS)
        found = _layouts[key] = layouts[times.index(min(times))]
    return found


def _mode_of(tensor_scale: Any) -> int:
    if tensor_scale is None:
        return abi.SCALE_BY_AMAX
    if isinstance(tensor_scale, str):  # "rows"
        return abi.SCALE_BY_ROW_AMAX
    return abi.SCALE_ON_DEVICE if isinstance(tensor_scale, torch.Tensor) else abi.SCALE_BY_VALUE


def quantize(x: torch.Tensor, tensor_scale: Any, scale_layout: str, format: str,
             rule: int) -> tuple[Any, ...]:
    """Quantizes x. Returns (codes, scales, rows, k, tensor_scale, scale_layout, format)."""
    index = x.get_device()
    if not _enter(index):
        with torch.cuda.device(index):
            return quantize(x, tensor_scale, scale_layout, format, rule)
    rows, k = x.shape
    mode = _mode_of(tensor_scale)
    same = _quantizer_of(rows, k, max(x.stride(0), k), x.dtype, scale_layout, mode, format,
                         rule)
    codes, scales = _empty(*same.codes, torch.uint8), _empty(*same.scales, torch.uint8)
    to = abi.QuantizeDescFields.from_buffer_copy(same.fields)
    to.x, to.codes = x.data_ptr(), codes.data_ptr()
    to.scales = 0 if to.packing else scales.data_ptr()
    if mode == abi.SCALE_BY_VALUE:
        to.tensor_scale = tensor_scale
        tensor_scale = to.tensor_scale
    else:
        if mode == abi.SCALE_BY_AMAX:
            tensor_scale = _empty((), (), torch.float32)
            workspace = _empty((same.workspace_bytes,), (1,), torch.uint8)
            to.workspace = workspace.data_ptr()
        elif mode == abi.SCALE_BY_ROW_AMAX:
            tensor_scale = _empty((rows,), (1,), torch.float32)
        if mode != abi.SCALE_ON_DEVICE and not x.numel():
            tensor_scale.fill_(1.0)  # the library writes none for an empty x
        to.tensor_scale_device = tensor_scale.data_ptr()
    status = abi.lib.nvfp4_quantize(to, _stream_of(index))
    if status:
        raise abi.Error(status)
    return codes, scales, rows, k, tensor_scale, scale_layout, format


def dequantize(packed: Matrix, number: int) -> torch.Tensor:
    index = packed.codes.get_device()
    if not _enter(index):
        with torch.cuda.device(index):
            return dequantize(packed, number)
    x = torch.empty(packed.shape, dtype=_TORCH[number], device=packed.codes.device)
    factor, tensor = constant_and_tensor(packed.tensor_scale)
    desc = abi.QuantizeDescFields(
        rows=packed.rows, k=packed.k, x=x.data_ptr(), x_ld=packed.k, x_type=number,
        codes=packed.codes.data_ptr(), codes_ld=codes_ld(Torch, packed),
        scales=packed.scales.data_ptr(), scale_layout=layout_number(packed.scale_layout),
        tensor_scale=factor, format=abi.FORMATS[packed.format])
    if tensor is not None:
        desc.tensor_scale_mode = abi.SCALES_OF_ROWS if packed.scale_rows else abi.SCALE_ON_DEVICE
        if packed.scale_rows > 1:
            tensor = tensor.repeat_interleave(packed.scale_rows)
        desc.tensor_scale_device = tensor.data_ptr()
    abi.check(abi.lib.nvfp4_dequantize(desc, _stream_of(index)))
    return x


def pack(name: str, desc: Any, memory: torch.Tensor) -> Any:
    """Calls nvfp4_pack_weights or nvfp4_unpack_weights, as `name` says, on the device of memory."""
    index = memory.get_device()
    if not _enter(index):
        with torch.cuda.device(index):
            return pack(name, desc, memory)
    abi.check(getattr(abi.lib, name)(desc, _stream_of(index)))


def convert_scales(packed: Matrix, scales: torch.Tensor, scale_layout: str) -> Any:
    index = scales.get_device()
    if not _enter(index):
        with torch.cuda.device(index):
            return convert_scales(packed, scales, scale_layout)
    abi.check(abi.lib.nvfp4_scale_convert(
        packed.scales.data_ptr(), layout_number(packed.scale_layout), scales.data_ptr(),
        layout_number(scale_layout), packed.rows, packed.k * 16 // packed.block,
        _stream_of(index)))
