# SPDX-License-Identifier: MIT
"""torch.nn.Linear with an NVFP4 weight, which stays as it is; needs torch.

    from nvfp4gemm.nn import Linear, load_linear, replace_linear
    replace_linear(model, skip=["lm_head"])                  # every torch.nn.Linear but lm_head
    load_linear(model, "model/", "cuda")                     # what an NVFP4 checkpoint has
"""
import torch

from nvfp4gemm import _calls, _optional, checkpoints
from nvfp4gemm._door import Door
from nvfp4gemm._packed import Packed


class Linear(torch.nn.Module):
    """y = activation(x W^T + bias), x [..., in_features] of bfloat16 or float16, y of x's type.

    quantize_input  False: x stays as it is (compute capability 9.0, and the CPU). True: x is
                    quantized by its own largest value, which every device has.

    state_dict() has codes, scales (128x4), tensor_scale and bias, which are not trained. Gradients
    pass to x, so that what comes before can be, as the dequantized weight would pass them; not
    through an activation, which raises where x requires one. Casts of a model, as .half(), change
    the type of the bias alone; .double() raises, since no product is of float64.
    """

    def __init__(self, weight, bias=None, *, activation=None, quantize_input=False):
        super().__init__()
        if not isinstance(weight, Packed):
            raise TypeError(f"weight is {type(weight).__name__}; expected what quantize() returns")
        weight = weight.with_scales("128x4")
        self.out_features, self.in_features = weight.shape
        self.activation, self.quantize_input = activation, quantize_input
        scale = torch.as_tensor(weight.tensor_scale, dtype=torch.float32,
                                device=weight.codes.device)
        self.register_buffer("codes", weight.codes)
        self.register_buffer("scales", weight.scales)
        self.register_buffer("tensor_scale", scale.reshape(()))
        if bias is not None:
            bias = Door(weight.codes, "weight").vector(bias, "bias", self.out_features).detach()
        self.register_buffer("bias", bias)
        self._packed = None

    @classmethod
    def from_float(cls, linear, **options):
        """Of a torch.nn.Linear, on its device; the weight is quantized by its largest value."""
        return cls(_calls.quantize(linear.weight.detach()), linear.bias, **options)

    @classmethod
    def from_checkpoint(cls, path, name, device="cpu", **options):
        """Of a layer in a checkpoint of ModelOpt or compressed-tensors, with the bias it has."""
        weight = checkpoints.load(path, device, names=[name])[name]
        return cls(weight, _bias(checkpoints.files_of(path), name, device), **options)

    def weight(self):
        """The Packed, on the module's own memory; calls keep plans by it."""
        codes, scales, scale = self.codes, self.scales, self.tensor_scale
        packed = self._packed
        if packed is not None and packed.codes is codes and packed.scales is scales and (
                packed.tensor_scale is scale):
            return packed
        packed = Packed(codes, scales, self.out_features, self.in_features, scale)
        if not torch.compiler.is_compiling():
            self._packed = packed
        return packed

    def forward(self, x):
        return _calls.linear(x, self.weight(), self.bias, activation=self.activation,
                             quantize_input=self.quantize_input)

    def _apply(self, fn, recurse=True):
        """.to() and its like; the tensor scale moves along and stays float32."""
        scale = self.tensor_scale
        if fn(scale).dtype == torch.float64:
            raise TypeError("an NVFP4 layer multiplies float16 and bfloat16 by 4-bit weights and "
                            "cannot be cast to float64; dequantize its weight() instead")
        super()._apply(fn, recurse)
        if self.tensor_scale.dtype != torch.float32:
            self.tensor_scale = scale.to(self.codes.device)
        return self

    def extra_repr(self):
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}, activation={self.activation}, "
                f"quantize_input={self.quantize_input}")


def _bias(files, name, device):
    """NAME.bias of a checkpoint, or None."""
    file = files.get(name + ".bias")
    if file is None:
        return None
    with _optional.safetensors.safe_open(file, framework="pt", device=str(device)) as opened:
        return opened.get_tensor(name + ".bias")


def _put(model, name, layer):
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, layer)


def _skipped(name, skip):
    return any(name == part or name.endswith("." + part) for part in skip)


def replace_linear(model, skip=(), **options):
    """Replaces each torch.nn.Linear inside model by a Linear of this module, in place; returns
    their names.

    skip     names of layers that stay, whole ("model.layers.0.mlp.up_proj") or their ends
             ("lm_head"). A name that no layer has raises
    options  of Linear
    """
    layers = {name: layer for name, layer in model.named_modules()
              if type(layer) is torch.nn.Linear}
    for part in skip:
        if not any(_skipped(name, [part]) for name in layers):
            raise ValueError(f"skip names {part!r}, which is no torch.nn.Linear of the model")
    layers = {name: layer for name, layer in layers.items() if not _skipped(name, skip)}
    for name, layer in layers.items():
        if layer.in_features % 16:
            raise ValueError(f"{name} has {layer.in_features} input features, no multiple of 16; "
                             "skip can name it")
    for name, layer in layers.items():
        _put(model, name, Linear.from_float(layer, **options))
    return list(layers)


def load_linear(model, path, device, **options):
    """Replaces those torch.nn.Linear of model that a checkpoint of ModelOpt or compressed-tensors
    has in NVFP4, in place; returns their names. Biases are the checkpoint's. model may lie on the
    meta device; what else the checkpoint has is left to you.

    options  of Linear
    """
    files = checkpoints.files_of(path)
    names = list(checkpoints.layers_of(files))
    layers = dict(model.named_modules())
    for name in names:
        if type(layers.get(name)) is not torch.nn.Linear:
            raise ValueError(f"the checkpoint has {name}, which is no torch.nn.Linear of the model")
    for name, weight in checkpoints.load(path, device, names=names).items():
        old = layers[name]
        if weight.shape != (old.out_features, old.in_features):
            raise ValueError(f"{name} is {weight.shape} in the checkpoint, "
                             f"{(old.out_features, old.in_features)} in the model")
        _put(model, name, Linear(weight, _bias(files, name, device), **options))
    return names
