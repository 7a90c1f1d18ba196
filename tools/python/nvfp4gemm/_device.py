# SPDX-License-Identifier: MIT
"""The calls on torch tensors of a GPU: plans kept per shape, torch's memory and current stream.

A plan holds everything but addresses, so that a call that was seen before fills a struct of
addresses and launches. Nothing here synchronises, and torch's allocator orders the reuse of a
workspace by the stream.
"""
import threading

import torch

from nvfp4gemm import abi
from nvfp4gemm._arrays import Torch
from nvfp4gemm._gemm import codes_ld, describe
from nvfp4gemm._matrix import Matrix, constant_and_tensor, layout_number, row_bytes, scale_bytes

_MOST_PLANS = 4096  # then the oldest goes; a plan is about a kilobyte
_TORCH = {number: Torch.dtype(number) for number in (abi.F16, abi.BF16, abi.F32)}
_plans = {}
_sizes = {}  # of what quantize() allocates
_ready = set()
_thread = threading.local()
_no_addresses = bytes(abi.GemmAddressesFields())
# What torch's own compiled code asks; the public way makes an object of each answer.
_current_device = torch._C._cuda_getDevice
_stream_of = torch._C._cuda_getCurrentRawStream


class _Plan:
    """Lives as long as somebody runs it, even when it was dropped from the table meanwhile."""

    def __init__(self, desc, capability):
        self.workspace_bytes = abi.workspace_bytes(desc, capability)
        if self.workspace_bytes:
            workspace = torch.empty(self.workspace_bytes, dtype=torch.uint8, device="cuda")
            desc.workspace, desc.workspace_bytes = workspace.data_ptr(), self.workspace_bytes
        self.handle = abi.c_void_p()
        abi.check(abi.lib.nvfp4_gemm_plan_create(desc, self.handle))

    def __del__(self, destroy=abi.lib.nvfp4_gemm_plan_destroy):
        if getattr(self, "handle", None):
            destroy(self.handle)


def _enter(device):
    """True if the device is the current one, and its context this thread's; its kernels are loaded,
    so that a stream under capture need not."""
    if device != _current_device():
        return False
    if getattr(_thread, "ready", None) != device:
        torch.cuda.mem_get_info(device)  # a thread without a context gets the device's
        if device not in _ready:
            abi.check(abi.lib.nvfp4_prepare())
            _ready.add(device)
        _thread.ready = device
    return True


def _make_plan(key, device, arguments):
    major, minor = torch.cuda.get_device_capability(device)
    plan = _Plan(describe(Torch, *arguments), 10 * major + minor)
    while len(_plans) >= _MOST_PLANS:
        _plans.pop(next(iter(_plans)), None)
    _plans[key] = plan
    return plan


def _signature(packed):
    """What a plan depends on in a Matrix, made once: where it lies, shape, layout, what scales
    it."""
    try:
        return packed._signature
    except AttributeError:
        factor, tensor = constant_and_tensor(packed.tensor_scale)
        packed._signature = (packed.codes.get_device(), packed.rows, packed.k,
                             packed.codes.stride(0), packed.scale_layout, factor,
                             None if tensor is None else tensor.get_device(),
                             packed.scale_rows)
        return packed._signature


def _of(tensor):
    return None if tensor is None else (tensor.get_device(), tensor.dtype, tensor.stride())


def mm(a, b, m, number, bias, activation, c, alpha, beta, d, order, batch_invariant, launch):
    codes = b.codes
    index = codes.get_device()
    if not _enter(index):
        with torch.cuda.device(index):
            return mm(a, b, m, number, bias, activation, c, alpha, beta, d, order,
                      batch_invariant, launch)
    packed = isinstance(a, Matrix)
    at_a, at_b = packed and a.places(Torch), b.places(Torch)
    if b.moved_to(at_b) or packed and a.moved_to(at_a):
        return mm(a.current() if packed else a, b.current(), m, number, bias, activation, c, alpha,
                  beta, d, order, batch_invariant, launch)
    fresh = d is None
    if fresh:
        d = torch.empty((m, b.rows), dtype=_TORCH[number], device=codes.device)
    key = (_signature(a) if packed else (m, *_of(a)), _signature(b), number if fresh else _of(d),
           _of(bias), activation, _of(c), alpha, beta, batch_invariant, launch)
    plan = _plans.get(key)
    if plan is None:
        plan = _make_plan(key, codes.device, (a, b, d, order, bias, activation, c, alpha, beta,
                                              batch_invariant, launch))
    to = abi.GemmAddressesFields.from_buffer_copy(_no_addresses)
    if packed:
        to.a, to.a_scales, to.a_tensor_scale = at_a
    else:
        to.a = a.data_ptr()
    to.b, to.b_scales, to.b_tensor_scale = at_b
    to.d = d.data_ptr()
    if bias is not None:
        to.bias = bias.data_ptr()
    if c is not None:
        to.c = c.data_ptr()
    if plan.workspace_bytes:
        workspace = torch.empty(plan.workspace_bytes, dtype=torch.uint8, device=codes.device)
        to.workspace, to.workspace_bytes = workspace.data_ptr(), plan.workspace_bytes
    status = abi.lib.nvfp4_gemm_plan_run(plan.handle, to, _stream_of(index))
    if status:
        raise abi.Error(status)
    return d


def _quantize_sizes(rows, k, scale_layout, amax):
    """Bytes of scales and of the workspace."""
    key = (rows, k, scale_layout, amax)
    if key not in _sizes:
        bytes_ = abi.c_uint64()
        desc = abi.QuantizeDescFields(rows=rows,
                                k=k,
                                x_type=abi.F32,
                                scale_layout=layout_number(scale_layout),
                                tensor_scale=1.0,
                                x_ld=k,
                                codes_ld=2 * row_bytes(k))
        desc.tensor_scale_mode = abi.SCALE_BY_AMAX if amax else abi.SCALE_BY_VALUE
        abi.check(abi.lib.nvfp4_quantize_workspace_bytes(desc, bytes_))
        if len(_sizes) >= _MOST_PLANS:
            _sizes.clear()
        _sizes[key] = scale_bytes(rows, k, scale_layout), bytes_.value
    return _sizes[key]


def quantize(x, tensor_scale, scale_layout):
    """(codes, scales, rows, k, tensor_scale, scale_layout) of x."""
    index = x.get_device()
    if not _enter(index):
        with torch.cuda.device(index):
            return quantize(x, tensor_scale, scale_layout)
    rows, k = x.shape
    device, byte = x.device, torch.uint8
    of_scales, of_workspace = _quantize_sizes(rows, k, scale_layout, tensor_scale is None)
    codes = torch.empty((rows, row_bytes(k)), dtype=byte, device=device)
    scales = torch.empty(of_scales, dtype=byte, device=device)
    desc = abi.QuantizeDescFields()
    desc.rows, desc.k, desc.scale_layout = rows, k, layout_number(scale_layout)
    desc.x, desc.x_ld, desc.x_type = x.data_ptr(), max(x.stride(0), k), Torch.type_of(x.dtype)
    desc.codes, desc.codes_ld, desc.scales = codes.data_ptr(), 2 * codes.shape[1], scales.data_ptr()
    if tensor_scale is None:
        tensor_scale = torch.empty((), dtype=torch.float32, device=device)
        workspace = torch.empty(of_workspace, dtype=byte, device=device)
        desc.workspace, desc.workspace_bytes = workspace.data_ptr(), of_workspace
        desc.tensor_scale_mode = abi.SCALE_BY_AMAX
        desc.tensor_scale_device = tensor_scale.data_ptr()
    elif isinstance(tensor_scale, str):  # "rows"
        tensor_scale = torch.empty((rows,), dtype=torch.float32, device=device)
        desc.tensor_scale_mode = abi.SCALE_BY_ROW_AMAX
        desc.tensor_scale_device = tensor_scale.data_ptr()
    elif isinstance(tensor_scale, torch.Tensor):
        desc.tensor_scale_mode = abi.SCALE_ON_DEVICE
        desc.tensor_scale_device = tensor_scale.data_ptr()
    else:
        tensor_scale = abi.c_float(float(tensor_scale)).value
        desc.tensor_scale = tensor_scale
    status = abi.lib.nvfp4_quantize(desc, _stream_of(index))
    if status:
        raise abi.Error(status)
    return codes, scales, rows, k, tensor_scale, scale_layout


def dequantize(packed, number):
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
        tensor_scale=factor)
    if tensor is not None:
        desc.tensor_scale_mode = abi.SCALES_OF_ROWS if packed.scale_rows else abi.SCALE_ON_DEVICE
        if packed.scale_rows > 1:
            tensor = tensor.repeat_interleave(packed.scale_rows)
        desc.tensor_scale_device = tensor.data_ptr()
    abi.check(abi.lib.nvfp4_dequantize(desc, _stream_of(index)))
    return x


def convert_scales(packed, scales, scale_layout):
    index = scales.get_device()
    if not _enter(index):
        with torch.cuda.device(index):
            return convert_scales(packed, scales, scale_layout)
    abi.check(abi.lib.nvfp4_scale_convert(
        packed.scales.data_ptr(), layout_number(packed.scale_layout), scales.data_ptr(),
        layout_number(scale_layout), packed.rows, packed.k, _stream_of(index)))
