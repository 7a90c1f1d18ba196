# SPDX-License-Identifier: MIT
"""Linear: a torch.nn.Linear whose weight is stored in 4 bits; needs torch."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nvfp4gemm import _oldest_torch  # noqa: F401, first: it refuses a torch that is too old
import torch
from torch.utils._python_dispatch import _disable_current_modes

from nvfp4gemm import _calls, _optional, _packings, abi, checkpoints
from nvfp4gemm._arrays import Torch
from nvfp4gemm._door import Door, size
from nvfp4gemm._matrix import block_of, row_bytes, scale_bytes
from nvfp4gemm._packed import Packed
from nvfp4gemm._types import Device, Path, Self, Shape
from nvfp4gemm._weights import Weight

# Buffers that stay float32 when the model is cast.
_FLOAT32 = ("tensor_scale", "input_scale", "pre_quant_scale")
_OF_PACKED = ("codes", "scales", *_FLOAT32)


def _untraced(make: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Calls make(..) without recording it in torch.jit.trace. A layer makes its Packed only once,
    so a second trace would differ from the first one if this were recorded."""
    state = None if torch.compiler.is_compiling() else torch._C._get_tracing_state()
    if state is None:
        return make(*arguments, **named)
    torch._C._set_tracing_state(None)  # type: ignore[attr-defined]
    try:
        return make(*arguments, **named)
    finally:
        torch._C._set_tracing_state(state)  # type: ignore[attr-defined]


_ARITHMETIC = {begin + name + end for name in ("add", "sub", "mul", "div", "truediv")
               for begin, end in (("", ""), ("", "_"), ("__", "__"), ("__i", "__"), ("__r", "__"))}


# In-place functions that codes allow: they change no value, or write 0. Below: the position of the
# source among the arguments of functions that copy.
_KEPT = ("detach_", "requires_grad_", "share_memory_", "set_", "zero_")
_COPIES = {"copy_": 1, "__setitem__": 2}


def _written(arguments: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether an in-place function writes codes. Its target is its first argument. If that is a
    list, its elements are the targets."""
    first = next(iter((*arguments, *named.values())), None)
    targets = first if isinstance(first, (list, tuple)) else [first]
    return any(isinstance(one, Codes) for one in targets)


def _casts_to_bytes(function: Callable[..., Any], arguments: Sequence[Any],
                    named: Mapping[str, Any]) -> bool:
    """Whether the function would cast numbers to bytes and write them into codes, or would
    calculate with codes."""
    name = getattr(function, "__name__", "")
    if name in _ARITHMETIC:
        return True
    if name in _COPIES:
        source = arguments[_COPIES[name]] if len(arguments) > _COPIES[name] else None
        bytes_ = isinstance(source, torch.Tensor) and source.dtype is torch.uint8
        return not bytes_ and _written(arguments, named)
    in_place = name.endswith("_") and not name.endswith("__") and name not in _KEPT
    return in_place and _written(arguments, named) or isinstance(named.get("out"), Codes)


_of_parameters: Any = torch._C._disabled_torch_function_impl
_address = torch.Tensor.data_ptr


class Codes(torch.nn.Parameter):
    """The codes of a layer: a parameter of bytes without gradient. Arithmetic with codes raises,
    and only bytes can be written into them. Otherwise PEFT's merge with safe_merge would silently
    cast what it adds to bytes."""

    @classmethod
    def __torch_function__(cls, function: Callable[..., Any], types: Any,
                           arguments: Sequence[Any] = (),
                           named: Mapping[str, Any] | None = None) -> Any:
        if _casts_to_bytes(function, arguments, named or {}):
            # ValueError, since torch replaces the message of a TypeError that is raised here.
            raise ValueError("weight has the codes of a 4-bit layer, to which nothing can be "
                             "added: an adapter stays beside the layer, or is merged into a layer "
                             "of its packed().dequantize()")
        if getattr(function, "namespace", "") == "nvfp4gemm":  # the results are plain tensors
            return _of_parameters(function, types, arguments, named or {})
        own: Any = torch.Tensor.__torch_function__
        return own.__func__(cls, function, types, arguments, named or {})


def _plain(codes: torch.Tensor) -> torch.Tensor:
    """The codes as a plain torch.Tensor. make_fx turns a tensor of any other class into a constant,
    so the codes would not be an input of the traced graph."""
    with torch._C.DisableTorchFunctionSubclass():
        try:
            return codes.detach()
        except TypeError:
            if torch.compiler.is_compiling() or not torch._C._len_torch_dispatch_stack():
                raise
        with _disable_current_modes():
            return codes.detach()


class Linear(torch.nn.Linear):
    """y = activation(x W^T + bias) with a 4-bit W. x is [..., in_features] of bfloat16 or float16,
    and y has x's type.

        Linear(weight, bias=None)
        Linear(in_features, out_features, bias=True, device=None, dtype=None, format="nvfp4")

    The first form makes the layer of a Packed, which must not have a tensor scale for each row. The
    second one has the arguments of torch.nn.Linear; it makes a layer of zeros, into which a
    state_dict can be loaded.

    activation      as in mm()
    quantize_input  as in linear(): True quantizes x by the layer's input_scale or, if it has none,
                    each row by its own largest value
    parts           the row count of each part if checkpoints.fuse() made the weight, else None.
                    parallel.ColumnLinear uses it to divide the layer
    weight          the codes, a parameter of uint8 without gradient; packed() returns the matrix.
                    If a floating-point parameter is assigned, the layer becomes an ordinary
                    torch.nn.Linear with that weight. Models do this to tie the weight to an
                    embedding
    dtype           the type of x that the layer expects; model.half() and similar calls change it

    state_dict() has codes [out_features, in_features / 2], scales (128x4), tensor_scale and bias,
    and input_scale and pre_quant_scale if a checkpoint's layer has them. None of these is trained.

    Gradients flow to x as through the dequantized weight, so that layers before this one can be
    trained. With an activation, the layer raises if x requires a gradient. Casts of the model
    change the type of the bias only. double() raises TypeError, since no product takes float64.
    """

    codes: Any
    scales: Any
    _layout = "128x4"  # the layout of the scales, or the packing
    tensor_scale: Any
    input_scale: Any
    pre_quant_scale: Any

    def __init__(self, *given: Any, activation: str | None = None, quantize_input: bool = False,
                 **named: Any) -> None:
        torch.nn.Module.__init__(self)
        self.activation, self.quantize_input = activation, quantize_input
        self.parts: Shape | None = None
        self._packed: Weight | None = None
        self._packed_codes: Any = None  # the codes from which _packed was made
        first = given[0] if given else named.get("weight", named.get("in_features"))
        (self._make if isinstance(first, int) else self._take)(*given, **named)
        self._ready()

    def _ready(self) -> None:
        """Makes the Packed in advance. A Packed that is made while torch.compile traces would be
        made again in every call."""
        self._packed = None
        if self.codes.device.type in ("cpu", "cuda") and not (
                _optional.compiling() or torch._C._len_torch_dispatch_stack()):
            self.packed()

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles do not contain the Packed, since it refers to the arrays of this
        layer."""
        return {**self.__dict__, "_packed": None, "_packed_codes": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._ready()

    def _take(self, weight: Packed, bias: torch.Tensor | None = None) -> None:
        """Initialises the layer with a Packed."""
        if not isinstance(weight, Packed):
            raise TypeError(f"weight is {type(weight).__name__}; expected what quantize() returns")
        weight = weight.with_scales("128x4")
        if weight.has_row_scales:
            raise ValueError("weight has a tensor scale for each row; a layer's has one")
        device = weight.codes.device
        scale = torch.as_tensor(weight.tensor_scale, dtype=torch.float32, device=device)
        if bias is not None and not weight.traced:
            bias = Door(weight.codes, "weight").vector(bias, "bias", weight.rows)
        self._hold(weight.shape, weight.format, weight.codes[:, :weight.k // 2], weight.scales,
                   scale if weight.scale_rows else scale.reshape(()), bias)
        self.parts = weight.parts
        self.dtype = torch.bfloat16 if bias is None else bias.dtype
        if weight.input_scale is not None:
            self.input_scale = torch.as_tensor(weight.input_scale, dtype=torch.float32,
                                               device=device)
        self.pre_quant_scale = weight.pre_quant_scale

    def _make(self, in_features: int, out_features: int, bias: bool = True, device: Device = None,
              dtype: torch.dtype | None = None, *, format: str = "nvfp4") -> None:
        """Initialises the layer with zeros."""
        n, k = size(out_features, "out_features"), size(in_features, "in_features")
        if k % block_of(format):
            raise ValueError(f"in_features is {k}, no multiple of {block_of(format)}")
        self.dtype = torch.get_default_dtype() if dtype is None else dtype
        with torch.device(torch.get_default_device() if device is None else device):
            codes = torch.zeros(n, row_bytes(k), dtype=torch.uint8)
            scales = torch.zeros(scale_bytes(n, k, "128x4", format), dtype=torch.uint8)
            self._hold((n, k), format, codes[:, :k // 2], scales, torch.ones(()),
                       torch.zeros(n, dtype=self.dtype) if bias else None)

    def _hold(self, shape: Shape, format: str, codes: torch.Tensor, scales: torch.Tensor,
              tensor_scale: torch.Tensor, bias: torch.Tensor | None) -> None:
        self.out_features, self.in_features = shape
        self._format = format
        self.codes = Codes(codes, requires_grad=False)
        if format != "nvfp4":  # a state_dict of another format lacks this key
            self.register_buffer(format, torch.ones((), dtype=torch.uint8, device=codes.device))
        self.register_buffer("scales", scales)
        self.register_buffer("tensor_scale", tensor_scale)
        self.register_parameter("bias", None if bias is None else torch.nn.Parameter(
            bias.detach().as_subclass(torch.Tensor), requires_grad=False))
        self.register_buffer("input_scale", None)
        self.register_buffer("pre_quant_scale", None)

    @property
    def weight(self) -> Any:  # type: ignore[override]
        return self.codes

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "weight":
            super().__setattr__(name, value)
            if name in _OF_PACKED:
                self.__dict__["_packed"] = None
        elif isinstance(value, torch.nn.Parameter) and value.is_floating_point():
            self._become_plain(value)
        else:
            self.codes = value

    def _become_plain(self, weight: torch.nn.Parameter) -> None:
        if tuple(weight.shape) != (self.out_features, self.in_features):
            raise ValueError(f"weight is {tuple(weight.shape)}; expected "
                             f"{(self.out_features, self.in_features)}")
        if self.activation is not None:
            raise ValueError(f"a torch.nn.Linear has no activation, this layer has "
                             f"{self.activation!r}")
        if self.quantize_input:
            raise ValueError("a torch.nn.Linear has no quantize_input, which this layer has set")
        for name in ("codes", *self._buffers):
            delattr(self, name)
        self._packed = None
        plain: Any = self
        plain.__class__ = torch.nn.Linear
        plain.weight = weight

    def reset_parameters(self) -> None:
        """Does nothing: codes come from quantize() or a state_dict."""

    @classmethod
    def from_float(cls, linear: torch.nn.Module, **options: Any) -> Self:
        """Makes a layer of a torch.nn.Linear, on the same device. The weight is quantized by its
        largest value. options are the keyword arguments of Linear."""
        weight = getattr(linear, "weight", None)
        if not isinstance(weight, torch.Tensor) or isinstance(weight, Codes):
            raise TypeError(f"linear is {type(linear).__name__}; expected a torch.nn.Linear, or a "
                            "module with a weight and a bias as one has them")
        return cls(_calls.quantize(weight.detach()), linear.bias, **options)

    @classmethod
    def from_checkpoint(cls, path: Path, name: str, device: Device = "cpu", **options: Any) -> Self:
        """Makes the layer `name` of the checkpoint at path, which checkpoints.load() reads, with
        its bias, input_scale and pre_quant_scale. options are the keyword arguments of Linear."""
        weight = checkpoints.load(path, device, names=[name])[name]
        return cls(weight, weight.bias, **options)

    def _unchanged(self) -> Weight | None:
        """The cached Packed if a quick check shows that the layer's arrays are the same; else
        None."""
        packed, buffers, codes = self._packed, self._buffers, self._parameters.get("codes")
        if packed is None or type(codes) is not Codes or (
                packed._scales is not buffers.get("scales")) or (
                packed._scale_tensor is not None and (
                    packed._scale_tensor is not buffers.get("tensor_scale"))) or (
                packed.input_scale is not buffers.get("input_scale")) or (
                packed.pre_quant_scale is not buffers.get("pre_quant_scale")):
            return None
        if _optional.compiling():
            return packed if codes is self._packed_codes else None
        if torch._C._len_torch_dispatch_stack() or torch._C._is_tracing() or (
                torch._C._are_functorch_transforms_active()) or (
                _of_parameters(_address, (), (codes,), {}) != packed._codes.data_ptr()):
            return None
        return packed

    def pack(self, packing: str | None = None) -> Self:
        """Packs the codes and scales, as Packed.pack() does; returns the layer. The packed layer
        works on the compute capability of the packing and on the CPU. None chooses the packing of
        the GPU; on the CPU it chooses "sm100_1" for a layer with quantize_input, else "sm90_1".
        With quantize_input "sm90_1" raises ValueError, and without it "sm100_1" does.

        state_dict() still returns unpacked codes and scales, and load_state_dict() takes them.
        Moving the layer to a GPU of another compute capability unpacks it.
        """
        packing = _packings.for_layer(self.codes, packing, self.quantize_input, "the layer has")
        self._put(self.packed().with_scales(packing))
        return self

    def unpack(self) -> Self:
        """Reverses pack(); returns the layer."""
        self._put(self.packed().with_scales("128x4"))
        return self

    @property
    def is_packed(self) -> bool:
        return self._layout in abi.PACKINGS

    def _put(self, weight: Packed) -> None:
        """Stores the same weight in another layout."""
        self._layout, self._packed = weight.scale_layout, None
        self.codes = Codes(weight.codes[:, :self.in_features // 2], requires_grad=False)
        self.scales = weight.scales
        self._ready()

    def packed(self) -> Weight:
        """Returns the Packed on the layer's own memory. It is the same object as long as the
        layer's arrays are the same, because plans are cached under it."""
        unchanged = self._unchanged()
        if unchanged is not None:
            return unchanged
        codes, scales, scale = _plain(self.codes), self.scales, self.tensor_scale
        compiling = torch.compiler.is_compiling()
        # During a trace, the cached Packed has codes that are not the traced ones.
        traced = not compiling and (torch._C._is_tracing() or Torch.traced(codes))
        packed = None if traced else self._packed
        if packed is not None and packed.scales is scales and (
                packed.tensor_scale is scale or self._format != "nvfp4") and (
                packed.input_scale is self.input_scale and
                packed.pre_quant_scale is self.pre_quant_scale) and (
                self._parameters.get("codes") is self._packed_codes if compiling else
                packed.codes.data_ptr() == codes.data_ptr()):
            return packed
        made: Weight = _untraced(
            Weight, codes, scales, self.out_features, self.in_features,
            scale if self._format == "nvfp4" else 1.0, self._layout, self._format)
        made.input_scale, made.pre_quant_scale = self.input_scale, self.pre_quant_scale
        if not (made.traced or traced):
            # Stored in __dict__, since torch would register an assigned parameter a second time.
            self.__dict__.update(_packed=made, _packed_codes=self._parameters.get("codes"))
        return made

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if _optional.compiling():
            d: torch.Tensor | None = _optional.compiled.layer(self, x)
            if d is not None:
                return d
        parameters = self._parameters
        return _calls.linear(x, self.packed(),
                             parameters["bias"] if "bias" in parameters else self.bias,
                             activation=self.activation, quantize_input=self.quantize_input)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        """Implements .to() and similar calls. The scales move to the new device and stay
        float32."""
        before = {name: getattr(self, name) for name in _FLOAT32}
        cast = fn(torch.empty((), dtype=self.dtype)).dtype
        if torch.float64 in (cast, fn(self.tensor_scale).dtype):
            raise TypeError("an NVFP4 layer multiplies float16 and bfloat16 by 4-bit weights and "
                            "cannot be cast to float64; its packed().dequantize() can")
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, scale in before.items():
            if scale is not None and getattr(self, name).dtype != torch.float32:
                setattr(self, name, scale.to(self.codes.device))
        self.dtype = cast
        if self.is_packed and not _packings.reads(self.codes, self._layout):
            self.unpack()
        self._ready()
        return self

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str,
                            keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self.is_packed:
            plain = self.packed().with_scales("128x4")
            destination[prefix + "codes"] = plain.codes[:, :self.in_features // 2]
            destination[prefix + "scales"] = plain.scales
        elif not keep_vars:
            destination[prefix + "codes"] = _plain(self.codes)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any,
                              *arguments: Any) -> None:
        """A layer of zeros also takes input_scale, pre_quant_scale and several tensor scales from
        the state_dict. A packed layer is unpacked for loading and packed again."""
        packing = self._layout
        if self.is_packed:
            self.unpack()
        scale = state_dict.get(prefix + "tensor_scale")
        if scale is not None and scale.shape != self.tensor_scale.shape and scale.ndim < 2:
            self.tensor_scale = self.tensor_scale.new_ones(scale.shape)
        for name in ("input_scale", "pre_quant_scale"):
            value = state_dict.get(prefix + name)
            if value is not None and getattr(self, name) is None:
                setattr(self, name, torch.empty_like(value, device=self.scales.device))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *arguments)
        if not isinstance(self.codes, Codes):  # assign=True
            self.codes = Codes(self.codes.detach(), requires_grad=False)
        if packing in abi.PACKINGS:
            self.pack(packing)
        self._ready()

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}, activation={self.activation}, "
                f"quantize_input={self.quantize_input}")
