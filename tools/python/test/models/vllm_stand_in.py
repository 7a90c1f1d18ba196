# SPDX-License-Identifier: MIT
"""What nvfp4gemm.integrations.vllm uses of vLLM, for where that package is not installed: its wheel
has 336 MB and names 80 others. SIGNATURES has the names and the arguments of vLLM 0.33.0;
test_vllm.py compares them with these classes, or with vLLM itself where it is installed."""
import abc
import dataclasses
import enum
import sys
import types
from typing import NamedTuple

import torch

LINEAR = "vllm.model_executor.kernels.linear"
NVFP4, MXFP4 = LINEAR + ".nvfp4.base", LINEAR + ".mxfp4.base"
METHODS = {"__init__": "self, config", "can_implement": "config",
            "is_supported": "compute_capability=None",
            "process_weights_after_loading": "self, layer",
            "apply_weights": "self, layer, x, bias=None"}
SIGNATURES = {
    LINEAR: {"register_linear_kernel": "kernel_class, platform, kernel_type='mp'",
             "init_nvfp4_linear_kernel": "use_a16=False",
             "init_mxfp4_linear_kernel": "activation_quant_key=None",
             "_get_linear_backend": "*, quantization"},
    NVFP4: {"NvFp4LinearLayerConfig": "",
            **{f"NvFp4LinearKernel.{name}": text for name, text in METHODS.items()},
            "NvFp4LinearKernel.input_quant_key": "self"},
    MXFP4: {"MxFp4LinearLayerConfig": "activation_quant_key=None",
            **{f"MxFp4LinearKernel.{name}": text for name, text in METHODS.items()},
            "MxFp4LinearKernel._supports_quant_scheme": "weight_key, activation_key"},
    "vllm.model_executor.utils": {"replace_parameter": "layer, param_name, new_tensor"},
    "vllm.platforms.interface": {"DeviceCapability": "major, minor",
                                 "DeviceCapability.to_int": "self",
                                 "Platform.is_cuda": "self",
                                 "Platform.get_device_capability": "device_id=0"},
}
# Names that are no functions.
ATTRIBUTES = {LINEAR: ("_POSSIBLE_NVFP4_KERNELS", "_POSSIBLE_MXFP4_KERNELS"),
              "vllm.envs": ("VLLM_BATCH_INVARIANT", "VLLM_DISABLED_KERNELS"),
              "vllm.platforms": ("PlatformEnum", "current_platform"),
              "vllm.model_executor.layers.quantization.utils.quant_utils": (
                  "kMxfp4Dynamic", "kMxfp4Static")}


class PlatformEnum(enum.Enum):
    CUDA = "cuda"
    UNSPECIFIED = "unspecified"


class DeviceCapability(NamedTuple):
    major: int
    minor: int

    def to_int(self):
        return 10 * self.major + self.minor


class Platform:
    _enum = PlatformEnum.UNSPECIFIED

    def is_cuda(self):
        return self._enum is PlatformEnum.CUDA

    @classmethod
    def get_device_capability(cls, device_id=0):
        return None


@dataclasses.dataclass
class NvFp4LinearLayerConfig:
    pass


@dataclasses.dataclass
class MxFp4LinearLayerConfig:
    activation_quant_key: str | None = None


class _Base(abc.ABC):
    def __init__(self, config):
        assert self.can_implement(config)[0] and self.is_supported()[0]
        self.config = config

    @classmethod
    @abc.abstractmethod
    def is_supported(cls, compute_capability=None):
        """(bool, why not)"""

    @classmethod
    @abc.abstractmethod
    def can_implement(cls, config):
        """(bool, why not)"""

    @abc.abstractmethod
    def process_weights_after_loading(self, layer):
        """Once, in place."""

    @abc.abstractmethod
    def apply_weights(self, layer, x, bias=None):
        """The product."""


class NvFp4LinearKernel(_Base):
    def input_quant_key(self):
        return None


class MxFp4LinearKernel(_Base):
    @classmethod
    def _supports_quant_scheme(cls, weight_key, activation_key):
        return weight_key == "mxfp4 static" and activation_key in (None, "mxfp4 dynamic")


class _Theirs:
    """A kernel of vLLM's own, which it always finds."""

    @classmethod
    def is_supported(cls, compute_capability=None):
        return True, None

    @classmethod
    def can_implement(cls, config):
        return True, None

    def process_weights_after_loading(self, layer):
        pass

    def apply_weights(self, layer, x, bias=None):
        return x


class EmulationNvFp4LinearKernel(_Theirs, NvFp4LinearKernel):
    pass


class MarlinNvFp4LinearKernel(_Theirs, NvFp4LinearKernel):
    pass


class EmulationMxfp4LinearKernel(_Theirs, MxFp4LinearKernel):
    pass


_POSSIBLE_NVFP4_KERNELS = {PlatformEnum.CUDA: [MarlinNvFp4LinearKernel,
                                               EmulationNvFp4LinearKernel]}
_POSSIBLE_MXFP4_KERNELS = {PlatformEnum.CUDA: [EmulationMxfp4LinearKernel]}


def register_linear_kernel(kernel_class, platform, kernel_type="mp"):
    {"nvfp4": _POSSIBLE_NVFP4_KERNELS, "mxfp4": _POSSIBLE_MXFP4_KERNELS}[kernel_type].setdefault(
        platform, []).append(kernel_class)


def _get_linear_backend(*, quantization):
    return "auto"


def _first(kernels, config):
    for kernel in kernels:
        if (kernel.__name__ not in MODULES["vllm.envs"].VLLM_DISABLED_KERNELS
                and kernel.is_supported()[0] and kernel.can_implement(config)[0]):
            return kernel(config)
    raise ValueError("no kernel")


def init_nvfp4_linear_kernel(use_a16=False):
    if use_a16:  # by name: vLLM does not look at the list
        return MarlinNvFp4LinearKernel(NvFp4LinearLayerConfig())
    return _first(_POSSIBLE_NVFP4_KERNELS[PlatformEnum.CUDA], NvFp4LinearLayerConfig())


def init_mxfp4_linear_kernel(activation_quant_key=None):
    return _first(_POSSIBLE_MXFP4_KERNELS[PlatformEnum.CUDA],
                  MxFp4LinearLayerConfig(activation_quant_key))


def replace_parameter(layer, param_name, new_tensor):
    old = getattr(layer, param_name)
    if (old.shape, old.stride(), old.dtype) == (
            new_tensor.shape, new_tensor.stride(), new_tensor.dtype):
        old.data.copy_(new_tensor)
    else:
        old.data = new_tensor


class _Logger:
    def __init__(self, name):
        self.name = name

    def info_once(self, message, *arguments, scope="process"):
        pass

    warning_once = info_once


MODULES = {}


def _module(name, **contents):
    module = MODULES[name] = types.ModuleType(name)
    vars(module).update(contents)
    parent, _, last = name.rpartition(".")
    if parent:
        if parent not in MODULES:
            _module(parent)
        setattr(MODULES[parent], last, module)


def _make():
    """These names in modules named as vLLM's."""
    own = globals()
    _module("vllm.envs", VLLM_BATCH_INVARIANT=False, VLLM_DISABLED_KERNELS=[])
    _module("vllm.logger", init_logger=_Logger)
    _module("vllm.platforms", PlatformEnum=PlatformEnum, current_platform=Platform())
    _module("vllm.platforms.interface", DeviceCapability=DeviceCapability, Platform=Platform)
    _module("vllm.model_executor.utils", replace_parameter=replace_parameter)
    _module("vllm.model_executor.layers.quantization.utils.quant_utils",
            kMxfp4Dynamic="mxfp4 dynamic", kMxfp4Static="mxfp4 static")
    for name in (LINEAR, NVFP4, MXFP4):
        known = {one.partition(".")[0] for one in SIGNATURES[name]} | set(ATTRIBUTES.get(name, ()))
        _module(name, **{one: own[one] for one in known})


def install():
    """Until remove(): other packages look whether there is a vLLM."""
    if not MODULES:
        _make()
    sys.modules.update(MODULES)


def remove():
    for name in MODULES:
        sys.modules.pop(name, None)


def named(text):
    """An object of sys.modules by module and name: "module:Class.method"."""
    module, _, names = text.partition(":")
    found = sys.modules[module]
    for name in names.split("."):
        found = getattr(found, name)
    return found


def packed_layer(**parameters):
    """A layer with what vLLM's linear methods leave there before a kernel sees it."""
    layer = torch.nn.Module()
    layer.prefix = "model.layers.0.mlp.up_proj"
    for name, tensor in parameters.items():
        setattr(layer, name, torch.nn.Parameter(tensor, requires_grad=False))
    return layer
