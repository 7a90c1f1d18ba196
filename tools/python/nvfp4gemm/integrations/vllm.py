# SPDX-License-Identifier: MIT
"""Kernels for the NVFP4 and MXFP4 linear layers of vLLM 0.33. vLLM calls register() through this
package's entry point vllm.general_plugins.

    NVFP4GEMM_VLLM=first vllm serve model/

Without that variable the kernels come after vLLM's own, so vLLM uses one only if no other fits.
VLLM_DISABLED_KERNELS disables them by the names of their classes. Tokens are bfloat16 or float16.
vLLM's expert blocks (fused MoE) use kernels of another kind and are not changed.
"""
from __future__ import annotations

import functools
import os
import sys
from typing import Any

import torch
from vllm import envs
from vllm.logger import init_logger
from vllm.model_executor.kernels import linear as vllm_linear
from vllm.model_executor.kernels.linear.mxfp4.base import MxFp4LinearKernel
from vllm.model_executor.kernels.linear.nvfp4.base import NvFp4LinearKernel, NvFp4LinearLayerConfig
from vllm.model_executor.layers.quantization.utils.quant_utils import kMxfp4Dynamic
from vllm.model_executor.utils import replace_parameter
from vllm.platforms import PlatformEnum, current_platform

from nvfp4gemm import _calls, abi
from nvfp4gemm._matrix import block_of
from nvfp4gemm._weights import Weight, tensor_scale_of, weight

VARIABLE = "NVFP4GEMM_VLLM"
_SCALE_TYPES = {"nvfp4": (torch.float8_e4m3fn,), "mxfp4": (torch.uint8, torch.float8_e8m0fnu)}

logger = init_logger(__name__)


def _problem(format: str, quantize_input: bool) -> Any:
    """A typical product of a layer, for asking the library whether it has a kernel."""
    desc = abi.GemmDesc(m=1, n=128, k=128, l=1, alpha=1.0, a_ld=128, b_ld=128, d_ld=128,
                        d_type=abi.BF16, b_scale_layout=abi.LAYOUTS["128x4"],
                        operand_format=abi.FORMATS[format])
    if quantize_input:
        desc.a_scale_layout = abi.LAYOUTS["128x4"]
    else:
        desc.a_type = abi.BF16
    return desc


def _checked(layer: Any, format: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The layer's weight and block scales as vLLM loads them: linear, not swizzled. Raises
    ValueError if they have another type or shape."""
    codes, scales = layer.weight.data, layer.weight_scale.data
    if codes.dtype is not torch.uint8 or codes.ndim != 2:
        raise ValueError(f"weight is {codes.dtype} {tuple(codes.shape)}; expected torch.uint8 "
                         "[n, k / 2]")
    rows, block = len(codes), block_of(format)
    expected = (rows, 2 * codes.shape[1] // block)
    if 2 * codes.shape[1] % block or scales.dtype not in _SCALE_TYPES[format] or (
            tuple(scales.shape) != expected):
        types = " or ".join(map(str, _SCALE_TYPES[format]))
        raise ValueError(f"weight_scale is {scales.dtype} {tuple(scales.shape)}, weight "
                         f"{tuple(codes.shape)}; expected {types} [n, k / {block}]")
    return codes, scales


class _Kernel:
    """Converts a layer's weight_scale to 128x4 tiles. The weight is copied only if its rows are not
    a multiple of 16 bytes long. Products read both, and the layer's global scales if it has them,
    from the layer's own memory. So a CUDA graph sees what vLLM writes there."""

    format, quantize_input = "nvfp4", False
    config: Any

    def __init__(self, config: Any) -> None:
        super().__init__(config)  # type: ignore[call-arg]  # vLLM's class, which comes next
        self.batch_invariant = envs.VLLM_BATCH_INVARIANT

    @classmethod
    def is_supported(cls, compute_capability: int | None = None) -> tuple[bool, str | None]:
        if compute_capability is None:
            capability = current_platform.get_device_capability()
            if not current_platform.is_cuda() or capability is None:
                return False, "needs a CUDA device"
            compute_capability = capability.to_int()
        status = abi.lib.nvfp4_gemm_supported(_problem(cls.format, cls.quantize_input),
                                              compute_capability)
        return (False, str(abi.Error(status))) if status else (True, None)

    @classmethod
    def can_implement(cls, config: Any) -> tuple[bool, str | None]:
        return True, None

    def process_weights_after_loading(self, layer: Any) -> None:
        try:
            codes, scales = _checked(layer, self.format)
            self._check_global_scales(layer)
            made = weight(codes, scales, format=self.format)
        except ValueError as error:
            raise ValueError(f"{getattr(layer, 'prefix', 'a layer')}: {error}") from None
        if made.codes.data_ptr() != codes.data_ptr():
            replace_parameter(layer, "weight", made.codes[:, :codes.shape[1]])
        replace_parameter(layer, "weight_scale", made.scales)
        layer.nvfp4gemm_weight = self._of(layer)
        if not self.quantize_input and self._quantizes(layer):
            logger.warning_once("%s leaves tokens in 16 bits, which this checkpoint has in 4",
                                type(self).__name__)

    def _check_global_scales(self, layer: Any) -> None:
        """MXFP4 has no global scales."""

    def _quantizes(self, layer: Any) -> bool:
        return self.config.activation_quant_key is not None

    def _of(self, layer: Any) -> Weight:
        """The matrix, on the layer's own memory."""
        codes = layer.weight.data
        return Weight(codes, layer.weight_scale.data, len(codes), 2 * codes.shape[1],
                      format=self.format)

    def _weight(self, layer: Any) -> Weight:
        kept: Weight = layer.nvfp4gemm_weight
        if torch.compiler.is_compiling() or (
                kept.codes.data_ptr() == layer.weight.data_ptr() and
                kept.scales.data_ptr() == layer.weight_scale.data_ptr()):
            return kept
        kept = layer.nvfp4gemm_weight = self._of(layer)  # vLLM has moved the layer
        return kept

    def apply_weights(self, layer: Any, x: torch.Tensor,
                      bias: torch.Tensor | None = None) -> torch.Tensor:
        return _calls.linear(x, self._weight(layer), bias, quantize_input=self.quantize_input,
                             batch_invariant=self.batch_invariant)


class Nvfp4gemmNvFp4W4A16LinearKernel(_Kernel, NvFp4LinearKernel):
    """NVFP4 weights and 16-bit tokens: compute capability 8.0 and later."""

    def _check_global_scales(self, layer: Any) -> None:
        tensor_scale_of(_value(layer, "weight_global_scale"), what="weight_global_scale")

    def _quantizes(self, layer: Any) -> bool:
        return hasattr(layer, "input_global_scale")

    def _of(self, layer: Any) -> Weight:
        scale = layer.weight_global_scale.data.float().reshape(1)
        return super()._of(layer).replace(tensor_scale=scale)


class Nvfp4gemmNvFp4LinearKernel(Nvfp4gemmNvFp4W4A16LinearKernel):
    """NVFP4 weights, and tokens that are quantized with the checkpoint's input scale: 9.0, 10.0,
    10.3 and 12.x."""

    quantize_input = True

    def _check_global_scales(self, layer: Any) -> None:
        super()._check_global_scales(layer)
        tensor_scale_of(_value(layer, "input_global_scale"), what="input_global_scale")

    def _of(self, layer: Any) -> Weight:
        return super()._of(layer).beside(
            input_scale=layer.input_global_scale.data.float().reshape(1))


class Nvfp4gemmMxFp4W4A16LinearKernel(_Kernel, MxFp4LinearKernel):
    """MXFP4 weights and 16-bit tokens: 8.0 and later."""

    format = "mxfp4"


class Nvfp4gemmMxFp4LinearKernel(Nvfp4gemmMxFp4W4A16LinearKernel):
    """MXFP4 weights and tokens: 9.0, 10.0 and 10.3."""

    quantize_input = True

    @classmethod
    def can_implement(cls, config: Any) -> tuple[bool, str | None]:
        if config.activation_quant_key != kMxfp4Dynamic:
            return False, f"activation_quant_key is {config.activation_quant_key}; expected MXFP4"
        return True, None


# {vLLM's name of a kind: our kernels, in the order in which vLLM tries them}
KERNELS = {"nvfp4": (Nvfp4gemmNvFp4LinearKernel, Nvfp4gemmNvFp4W4A16LinearKernel),
           "mxfp4": (Nvfp4gemmMxFp4LinearKernel, Nvfp4gemmMxFp4W4A16LinearKernel)}


def _value(layer: Any, name: str) -> float:
    scale = getattr(layer, name)
    if scale.numel() != 1:
        raise ValueError(f"{name} is {tuple(scale.shape)}; expected one value")
    return float(scale)


def register() -> None:
    """Registers the kernels with vLLM. It does so once in a process, however often it is called."""
    choice = os.environ.get(VARIABLE, "")
    if choice not in ("", "first"):
        raise ValueError(f"{VARIABLE} is {choice!r}; expected 'first', or that it is not set")
    lists = {kind: _of_vllm(f"_POSSIBLE_{kind.upper()}_KERNELS") for kind in KERNELS}
    for kind, ours in KERNELS.items():
        for one in ours:
            if one not in lists[kind].get(PlatformEnum.CUDA, []):
                vllm_linear.register_linear_kernel(one, PlatformEnum.CUDA, kind)
    if choice == "first":
        for kind, ours in KERNELS.items():
            kernels = lists[kind][PlatformEnum.CUDA]
            kernels[:] = [*ours, *(one for one in kernels if one not in ours)]
        _weight_only_first()


def _of_vllm(name: str) -> Any:
    if not hasattr(vllm_linear, name):
        raise RuntimeError(f"vllm.model_executor.kernels.linear has no {name}, which vLLM 0.33 has")
    return getattr(vllm_linear, name)


def _weight_only_first() -> None:
    """Replaces vLLM's function that chooses a kernel for NVFP4 without quantized tokens, in every
    module that has imported it. That function contains the names of its kernels, so the lists do
    not suffice."""
    name = "init_nvfp4_linear_kernel"
    original, backend = _of_vllm(name), _of_vllm("_get_linear_backend")
    if hasattr(original, "nvfp4gemm"):
        return
    ours = Nvfp4gemmNvFp4W4A16LinearKernel

    @functools.wraps(original)
    def init_nvfp4_linear_kernel(use_a16: bool = False) -> Any:
        if (use_a16 and backend(quantization="nvfp4_w4a16") == "auto"
                and not envs.VLLM_BATCH_INVARIANT
                and ours.__name__ not in envs.VLLM_DISABLED_KERNELS and ours.is_supported()[0]):
            logger.info_once("Using %s for NVFP4 GEMM", ours.__name__)
            return ours(NvFp4LinearLayerConfig())
        return original(use_a16=use_a16)

    setattr(init_nvfp4_linear_kernel, "nvfp4gemm", True)
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("vllm.") and vars(module).get(name) is original:
            setattr(module, name, init_nvfp4_linear_kernel)
