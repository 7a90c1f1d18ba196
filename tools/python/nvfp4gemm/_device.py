# SPDX-License-Identifier: MIT
"""The calls on torch tensors of a GPU: plans kept per shape, torch's memory and current stream.

A plan holds everything but addresses, so that a call that was seen before fills a struct of addresses
and launches. Nothing here synchronises, and torch's allocator orders the reuse of a workspace by the
stream.
"""
import torch

from nvfp4gemm import _c
from nvfp4gemm._arrays import Torch
from nvfp4gemm._calls import constant_and_tensor, describe, layout_number, row_bytes, scale_bytes
from nvfp4gemm._packed import Packed

_MOST_PLANS = 4096  # then the oldest goes; a plan is about a kilobyte
_TORCH = {number: Torch.dtype(number) for number in (_c.F16, _c.BF16, _c.F32)}
_plans = {}
_ready = set()


class _Plan:
    """Lives as long as somebody runs it, even when it was dropped from the table meanwhile."""

    def __init__(self, desc, capability):
        bytes_ = _c.c_uint64()
        _c.check(_c.lib.nvfp4_gemm_workspace_bytes(desc, capability, bytes_))
        self.workspace_bytes = bytes_.value
        if self.workspace_bytes:
            workspace = torch.empty(self.workspace_bytes, dtype=torch.uint8, device="cuda")
            desc.workspace, desc.workspace_bytes = workspace.data_ptr(), self.workspace_bytes
        self.handle = _c.c_void_p()
        _c.check(_c.lib.nvfp4_gemm_plan_create(desc, self.handle))

    def __del__(self):
        if getattr(self, "handle", None):
            _c.lib.nvfp4_gemm_plan_destroy(self.handle)


def _prepare(device):
    """Loads the kernels at a device's first use, so that a stream under capture need not."""
    if device not in _ready:
        _c.check(_c.lib.nvfp4_prepare())
        _ready.add(device)


def _stream():
    return torch.cuda.current_stream().cuda_stream


def _same_device(device, **tensors):
    for name, tensor in tensors.items():
        if tensor is not None and tensor.device != device:
            raise ValueError(f"{name} lies on {tensor.device}, b on {device}")


def _make_plan(key, device, arguments):
    a, tensor_scales = arguments[0], {}
    packed = isinstance(a, Packed)
    if packed:
        tensor_scales["a's tensor_scale"] = constant_and_tensor(a.tensor_scale)[1]
    b, d, bias, _, c = arguments[1:6]
    tensor_scales["b's tensor_scale"] = constant_and_tensor(b.tensor_scale)[1]
    _same_device(device, a=a.codes if packed else a, out=d, bias=bias, c=c, **tensor_scales)
    _prepare(device.index)
    major, minor = torch.cuda.get_device_capability(device)
    plan = _Plan(describe(Torch, *arguments), 10 * major + minor)
    while len(_plans) >= _MOST_PLANS:
        _plans.pop(next(iter(_plans)), None)
    _plans[key] = plan
    return plan


def mm(a, b, m, number, bias, activation, c, alpha, beta, d, batch_invariant, launch):
    device = b.codes.device
    if device.index != torch.cuda.current_device():
        with torch.cuda.device(device):
            return mm(a, b, m, number, bias, activation, c, alpha, beta, d, batch_invariant, launch)
    if d is None:
        d = torch.empty((m, b.rows), dtype=_TORCH[number], device=device)
    b_factor, b_tensor = constant_and_tensor(b.tensor_scale)
    to = _c.GemmAddresses()
    if isinstance(a, Packed):
        a_factor, a_tensor = constant_and_tensor(a.tensor_scale)
        a_key = (a.codes.get_device(), a.codes.stride(0), a.scale_layout, a_factor,
                 None if a_tensor is None else a_tensor.get_device())
        to.a, to.a_scales = a.codes.data_ptr(), a.scales.data_ptr()
        if a_tensor is not None:
            to.a_tensor_scale = a_tensor.data_ptr()
    else:
        a_key = (a.get_device(), a.dtype, a.stride())
        to.a = a.data_ptr()
    key = (device.index, m, b.rows, b.k, a_key, b.codes.stride(0), b.scale_layout, b_factor,
           None if b_tensor is None else b_tensor.get_device(), d.dtype, d.get_device(), d.stride(),
           bias if bias is None else (bias.get_device(), bias.dtype), activation,
           c if c is None else (c.get_device(), c.dtype, c.stride(), beta), alpha, batch_invariant,
           launch)
    plan = _plans.get(key)
    if plan is None:
        plan = _make_plan(key, device, (a, b, d, bias, activation, c, alpha, beta, batch_invariant,
                                        launch))
    to.b, to.b_scales, to.d = b.codes.data_ptr(), b.scales.data_ptr(), d.data_ptr()
    if b_tensor is not None:
        to.b_tensor_scale = b_tensor.data_ptr()
    if bias is not None:
        to.bias = bias.data_ptr()
    if c is not None:
        to.c = c.data_ptr()
    if plan.workspace_bytes:
        workspace = torch.empty(plan.workspace_bytes, dtype=torch.uint8, device=device)
        to.workspace, to.workspace_bytes = workspace.data_ptr(), plan.workspace_bytes
    _c.check(_c.lib.nvfp4_gemm_plan_run(plan.handle, to, _stream()))
    return d


def quantize(x, tensor_scale, scale_layout):
    device = x.device
    with torch.cuda.device(device):
        _prepare(device.index)
        if x.shape[1] > 1 and x.stride(1) != 1:
            x = x.contiguous()
        rows, k = x.shape
        codes = torch.empty((rows, row_bytes(k)), dtype=torch.uint8, device=device)
        scales = torch.empty(scale_bytes(rows, k, scale_layout), dtype=torch.uint8, device=device)
        desc = _c.QuantizeDesc(
            rows=rows, k=k, x=x.data_ptr(), x_ld=max(x.stride(0), k), x_type=Torch.type_of(x.dtype),
            codes=codes.data_ptr(), codes_ld=2 * codes.shape[1], scales=scales.data_ptr(),
            scale_layout=layout_number(scale_layout))
        workspace = None
        if tensor_scale is None:
            tensor_scale = torch.empty((), dtype=torch.float32, device=device)
            desc.tensor_scale_mode = _c.SCALE_BY_AMAX
            desc.tensor_scale_device = tensor_scale.data_ptr()
            bytes_ = _c.c_uint64()
            _c.check(_c.lib.nvfp4_quantize_workspace_bytes(desc, bytes_))
            workspace = torch.empty(bytes_.value, dtype=torch.uint8, device=device)
            desc.workspace, desc.workspace_bytes = workspace.data_ptr(), bytes_.value
        elif isinstance(tensor_scale, torch.Tensor):
            if tensor_scale.dtype != torch.float32 or tensor_scale.numel() != 1:
                raise ValueError("tensor_scale is no tensor of one float32")
            _same_device(device, tensor_scale=tensor_scale)
            desc.tensor_scale_mode = _c.SCALE_ON_DEVICE
            desc.tensor_scale_device = tensor_scale.data_ptr()
        else:
            tensor_scale = _c.c_float(float(tensor_scale)).value
            desc.tensor_scale = tensor_scale
        _c.check(_c.lib.nvfp4_quantize(desc, _stream()))
    return Packed(codes, scales, rows, k, tensor_scale, scale_layout)


def dequantize(packed, number):
    device = packed.codes.device
    with torch.cuda.device(device):
        _prepare(device.index)
        x = torch.empty(packed.shape, dtype=_TORCH[number], device=device)
        factor, tensor = constant_and_tensor(packed.tensor_scale)
        desc = _c.QuantizeDesc(
            rows=packed.rows, k=packed.k, x=x.data_ptr(), x_ld=packed.k, x_type=number,
            codes=packed.codes.data_ptr(), codes_ld=2 * packed.codes.stride(0),
            scales=packed.scales.data_ptr(), scale_layout=layout_number(packed.scale_layout),
            tensor_scale=factor)
        if tensor is not None:
            desc.tensor_scale_mode = _c.SCALE_ON_DEVICE
            desc.tensor_scale_device = tensor.data_ptr()
        _c.check(_c.lib.nvfp4_dequantize(desc, _stream()))
    return x
