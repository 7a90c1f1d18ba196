# SPDX-License-Identifier: MIT
"""Linear layers of NVFP4 checkpoints: load() for the safetensors files of ModelOpt and
compressed-tensors, weight() for arrays that are at hand already. docs/integration.md has the
conventions and their sources.

    layers = nvfp4gemm.checkpoints.load("model/", device="cuda")      #
    {"model.layers.0.mlp.up_proj": Packed, ..} y = nvfp4gemm.linear(x,
    layers["model.layers.0.mlp.up_proj"])
"""
import glob
import json
import os

from nvfp4gemm import _calls
from nvfp4gemm._door import Door
from nvfp4gemm._packed import Packed

# The names of a layer's tensors, and whether the tensor-wide scale multiplies or divides.
_MODELOPT = ("weight", "weight_scale", "weight_scale_2", False)
_COMPRESSED_TENSORS = ("weight_packed", "weight_scale", "weight_global_scale", True)


def weight(codes, scales, tensor_scale=1.0, *, divides=False, scale_layout="linear"):
    """A Packed [n, k] of a checkpoint's arrays, NumPy or torch.

    codes         uint8 [n, k / 2], the element with the lower k in the low nibble
    scales        UE4M3 as uint8 or float8_e4m3fn, [n, k / 16], or 128x4 tiles where scale_layout
                  says so
    tensor_scale  a float, or an array of one float32: a multiplier (ModelOpt's weight_scale_2), or
                  with `divides` its reciprocal (compressed-tensors' weight_global_scale)

    The result has 128x4 scales, which every device reads as they are. Rows of codes that do not
    start at multiples of 16 bytes are copied; others are not.
    """
    door = Door(codes, "codes")
    arrays, codes = door.arrays, door.array(codes, "codes")
    if codes.ndim != 2 or str(codes.dtype).removeprefix("torch.") != "uint8":
        raise ValueError(f"codes are {codes.dtype} {tuple(codes.shape)}, expected uint8 [n, k / 2]")
    n, k = codes.shape[0], 2 * codes.shape[1]
    scales = door.scale_bytes(scales, "scales")
    expected = _calls.scale_bytes(n, k, scale_layout)
    if arrays.size(scales) != expected:
        raise ValueError(f"scales {tuple(scales.shape)} are no {scale_layout} ones of [{n}, {k}]: "
                         f"{arrays.size(scales)} bytes, expected {expected}")
    value = door.value(tensor_scale, "tensor_scale")
    if divides:
        value = 1 / value
    packed = Packed(arrays.padded(codes, _calls.row_bytes(k)), scales.reshape(-1), n, k, value,
                    scale_layout)
    return packed if scale_layout == "128x4" else packed.with_scales("128x4")


def layers_of(names):
    """{layer: the names of its tensors} of those that a checkpoint's names make up."""
    known = set(names)
    found = {}
    for convention in (_MODELOPT, _COMPRESSED_TENSORS):
        codes, scales, tensor_scale, divides = convention
        for name in sorted(known):
            layer = name.removesuffix("." + tensor_scale)
            parts = tuple(f"{layer}.{part}" for part in (codes, scales, tensor_scale))
            if layer != name and known.issuperset(parts):
                found[layer] = (*parts, divides)
    return found


def files_of(path):
    """{tensor: file} of a safetensors file, or of a folder with one or several."""
    if os.path.isfile(path):
        files = [path]
    else:
        files = sorted(glob.glob(os.path.join(path, "*.safetensors")))
    if not files:
        raise FileNotFoundError(f"{path} is no safetensors file and has none")
    return {name: file for file in files for name in header(file)}


def header(file):
    """What a safetensors file holds: {tensor: {"dtype", "shape", "data_offsets"}}."""
    with open(file, "rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        if size > os.path.getsize(file) - 8:
            raise ValueError(f"{file} is no safetensors file: a header of {size} bytes")
        head = json.loads(opened.read(size))
    head.pop("__metadata__", None)
    return head


def load(path, device=None, *, names=None):
    """{layer: Packed} of the NVFP4 linear layers in a safetensors file or a folder of them; what
    else the checkpoint has is left alone. `names` picks some. With a device the tensors are torch's
    and lie there; without, NumPy arrays. A device needs the packages torch and safetensors.
    """
    if device is not None:
        import safetensors
        import torch  # noqa: F401
    files = files_of(path)
    layers = layers_of(files)
    if names is not None:
        missing = [name for name in names if name not in layers]
        if missing:
            raise KeyError(f"{path} has no NVFP4 layer {missing[0]!r}; it has {len(layers)}")
        layers = {name: layers[name] for name in names}
    opened, result = {}, {}
    for layer, (*parts, divides) in layers.items():
        arrays = []
        for part in parts:
            file = files[part]
            if device is None:
                arrays.append(_read(file, part))
                continue
            if file not in opened:
                opened[file] = safetensors.safe_open(file, framework="pt", device=str(device))
            arrays.append(opened[file].get_tensor(part))
        result[layer] = weight(*arrays, divides=divides)
    return result


def _read(file, name):
    """A tensor as NumPy has it; fp8, which NumPy lacks, as bytes."""
    import numpy
    entry = header(file)[name]
    types = {"U8": "uint8", "F8_E4M3": "uint8", "F32": "float32"}
    if entry["dtype"] not in types:
        raise ValueError(f"{name} is of {entry['dtype']}; expected U8, F8_E4M3 or F32")
    begin, end = entry["data_offsets"]
    with open(file, "rb") as opened:
        start = 8 + int.from_bytes(opened.read(8), "little")
        opened.seek(start + begin)
        data = opened.read(end - begin)
    return numpy.frombuffer(data, types[entry["dtype"]]).reshape(entry["shape"])
