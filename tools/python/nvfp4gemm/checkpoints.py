# SPDX-License-Identifier: MIT
"""Linear layers of NVFP4 checkpoints. load() reads safetensors and GGUF files in the dialects of
tools/nvfp4/dialects.def; weight() takes arrays that are in memory already. docs/integration.md has
the conventions and their sources.

    layers = nvfp4gemm.checkpoints.load("model/", device="cuda")
    y = nvfp4gemm.linear(x, layers["model.layers.0.mlp.up_proj"])
"""
from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, overload

from nvfp4gemm import _layers, _optional, layouts
from nvfp4gemm._dialects import FUSED
from nvfp4gemm._files import Checkpoint, Reader, Tensor
from nvfp4gemm._fused import Unfusable, fuse
from nvfp4gemm._safetensors import FormatError, shown
from nvfp4gemm._shapes import Layer, Refusal, elements, size_of
from nvfp4gemm._types import Array, Device, Path, Self
from nvfp4gemm._values import Layouts, check_values
from nvfp4gemm._weights import Weight, tensor_scale_of, weight

__all__ = ["FUSED", "CheckpointError", "Problem", "Weight", "fuse", "load", "weight"]

_SHOWN = 10
# {layout of dialects.def: format}, for the layouts with UE8M0 scales.
_FORMATS = {"mxfp4": "mxfp4", "mxfp4_linear": "mxfp4", "mxfp4_blocks": "mxfp4",
            "tiles_mxfp4": "mxfp4", "words_mxfp4": "mxfp4", "tiles_ue8m0": "e2m1_ue8m0"}


class Problem(NamedTuple):
    """Why a layer was not loaded, or why a file was not read. layer is None for a problem of a
    whole file; tensor is None if no single tensor is wrong."""

    file: str
    layer: str | None
    tensor: str | None
    text: str

    def __str__(self) -> str:
        return self.text


class CheckpointError(ValueError):
    """load() refused layers or files. problems has a Problem for each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = problems
        lines = [str(problem) for problem in problems[:_SHOWN]]
        if len(problems) > _SHOWN:
            lines.append(f"and {len(problems) - _SHOWN} more")
        super().__init__("\n".join(lines))


@overload
def load(path: Path, device: Device = None, *, names: Iterable[str] | None = None,
         strict: Literal[True] = True, fused: Mapping[str, Sequence[str]] | None = None
         ) -> dict[str, Weight]: ...
@overload
def load(path: Path, device: Device = None, *, names: Iterable[str] | None = None,
         strict: Literal[False], fused: Mapping[str, Sequence[str]] | None = None
         ) -> tuple[dict[str, Weight], list[Problem]]: ...
def load(path: Path, device: Device = None, *, names: Iterable[str] | None = None,
         strict: bool = True, fused: Mapping[str, Sequence[str]] | None = None
         ) -> dict[str, Weight] | tuple[dict[str, Weight], list[Problem]]:
    """Loads the 4-bit linear layers of a safetensors or GGUF file, or of a folder with such files.
    Returns {layer: weight}. All other tensors are ignored.

    A weight is a Packed with the attributes dialect, bias, input_scale and pre_quant_scale. If a
    checkpoint stacks the experts of layer X in one tensor, each expert is a layer of its own: X[0],
    X[1], ..

    device  None: returns NumPy arrays. Otherwise: returns torch tensors on that device. If the
            package safetensors is installed, it reads them
    names   the layers to load; None: all. The name X of stacked experts loads all of them
    strict  True: raises CheckpointError with all problems if a layer breaks the rules of its
            dialect. False: returns ({layer: weight}, [Problem]) with all layers that have no
            problem
    fused   {"qkv_proj": ["q_proj", "k_proj", "v_proj"], ..}: if the checkpoint has X.q_proj,
            X.k_proj and X.v_proj, they are replaced by one layer X.qkv_proj, as by fuse(). FUSED
            has the usual names. Parts that cannot be fused are a Problem

    Raises KeyError for a name that the checkpoint does not have in 4 bits, and FileNotFoundError if
    path has no such file.
    """
    checkpoint = Checkpoint(path)
    finder = _layers.Finder(checkpoint)
    found = finder.layers()
    every = list(found.values())
    wholes = _layers.wholes_of(found, fused or {})
    wanted = None
    if names is not None:
        wanted, wholes = _with_parts(names, wholes)
    if wanted is not None:
        whole = {name.partition("[")[0] if name not in found else name for name in wanted}
        found = {name: layer for name, layer in found.items() if name in whole}
    problems = [Problem(error.file, None, None, str(error)) for error in checkpoint.broken]
    loaded = {}
    with _Arrays(device) as arrays:
        judge = Layouts(arrays, every)
        for name, layer in found.items():
            try:
                loaded.update(_load(layer, arrays, judge, wanted))
            except Refusal as refusal:
                problems.append(_problem(finder, name, refusal))
            except FormatError as error:
                problems.append(Problem(error.file, name, None, str(error)))
    problems += _fuse_all(loaded, found, wholes, finder, set(names or ()))
    refused = {problem.layer for problem in problems}
    missing = [name for name in names or () if name not in loaded and name not in refused
               and name.partition("[")[0] not in refused and f"{name}[0]" not in loaded
               and not refused.intersection(wholes.get(name.partition("[")[0], ()))]
    if names is None or missing:
        problems += [Problem(error.file, None, None, str(error)) for error in checkpoint.missing]
    if missing and not checkpoint.broken and not checkpoint.missing:
        raise KeyError(f"{path} has {_instead(checkpoint, missing[0])}; it has {len(loaded)}")
    if strict and problems:
        raise CheckpointError(problems)
    return loaded if strict else (loaded, problems)


def _instead(checkpoint: Checkpoint, name: str) -> str:
    """For an error message: what the checkpoint has under that name in place of a 4-bit layer."""
    tensor = checkpoint.tensors.get(f"{name}.weight")
    if tensor is None:
        return f"no NVFP4 layer {name!r}"
    kind = "FP8" if tensor.dtype.startswith("F8") else tensor.dtype
    return f"the layer {name!r} in {kind}, not in 4 bits"


def _with_parts(names: Iterable[str],
                wholes: dict[str, list[str]]) -> tuple[set[str], dict[str, list[str]]]:
    """Returns (`names`, to which the parts of fused layers are added; {fused layer in `names`: its
    parts}). The name X[e] stands for expert e of each part."""
    wanted, asked = set(names), {}
    for name in names:
        layer, bracket, expert = name.partition("[")
        if layer in wholes:
            asked[layer] = wholes[layer]
            wanted.update(part + bracket + expert for part in wholes[layer])
    return wanted, asked


def _fuse_all(loaded: dict[str, Weight], layers: Mapping[str, Any], wholes: dict[str, list[str]],
              finder: _layers.Finder, kept: set[str]) -> list[Problem]:
    """Replaces the parts in `loaded` by fused layers. Parts in `kept` also stay. Returns a Problem
    for each layer that cannot be fused."""
    problems: list[Problem] = []
    experts: dict[str, list[str]] = {}
    for name in loaded:
        layer, bracket, expert = name.partition("[")
        experts.setdefault(layer, []).append(bracket + expert)
    for whole, parts in wholes.items():
        for expert in experts.get(parts[0], ()):
            weights = [loaded[part + expert] for part in parts if part + expert in loaded]
            try:
                if len(weights) == len(parts):
                    loaded[whole + expert] = fuse(weights)
            except Unfusable as error:
                problems.append(_problem(finder, whole + expert, _refusal(
                    layers[parts[error.index]], error)))
        for part in parts:
            for expert in experts.get(part, ()):
                if not kept.intersection((part, part + expert)):
                    loaded.pop(part + expert, None)
    return problems


def _refusal(layer: Layer, error: Unfusable) -> Refusal:
    """Converts an error of fuse() to a Refusal, which names the tensor."""
    other = "input_divisor" if error.use == "input_scale" else error.use
    tensor = (layer.parts.get(error.use) or layer.beside.get(error.use) or
              layer.beside.get(other) or layer.parts["codes"])
    return Refusal(tensor.name, error.what, error.expected)


def _problem(finder: _layers.Finder, name: str, refusal: Refusal) -> Problem:
    file = finder.file_of(name, refusal.tensor)
    return Problem(file, name, refusal.tensor,
                   shown(f"{file}: layer {name}: {refusal.tensor} is {refusal.what}; expected "
                         f"{refusal.expected}"))


class _Arrays:
    """Reads tensors of files as NumPy arrays, or as torch tensors on a device."""

    def __init__(self, device: Device) -> None:
        self.device, self._reader = device, Reader()
        self._opened: dict[str, Any] = {}
        self._safe: Any = None
        if device is not None:
            try:
                self._safe = _optional.safetensors.safe_open
            except ImportError:
                pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._opened = {}

    def bytes_of(self, tensor: Tensor, expert: int | None = None) -> Array:
        """The bytes of the tensor, or of one expert of it, as uint8. The shape is the tensor's if
        an element has one byte; otherwise there is one dimension."""
        whole, tensor = expert is None, _expert(tensor, expert)
        shape = tensor.shape if elements(tensor.shape) == tensor.size else (tensor.size,)
        if self.device is None:
            return _optional.numpy.frombuffer(self._reader.bytes_of(tensor), "uint8").reshape(shape)
        torch = _optional.torch
        if self._safe and whole and tensor.file.endswith(".safetensors") and tensor.dtype in (
                "U8", "F8_E4M3"):
            if tensor.file not in self._opened:
                self._opened[tensor.file] = self._safe(tensor.file, framework="pt",
                                                       device=str(self.device))
            return self._opened[tensor.file].get_tensor(tensor.name).view(torch.uint8)
        read = torch.frombuffer(self._reader.bytes_of(tensor), dtype=torch.uint8)
        return read.reshape(shape).to(self.device)

    def floats(self, tensor: Tensor) -> list[Any]:
        """The tensor's values as Python numbers, read on the CPU."""
        data: bytes | bytearray = self._reader.bytes_of(tensor)
        kind: str | None = "f"
        if tensor.dtype == "BF16":
            data = b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))
        else:
            kind = {"F32": "f", "F16": "e", "F64": "d", "I64": "q", "I32": "i", "U8": "B",
                    "BOOL": "B"}.get(tensor.dtype)
        if kind is None:
            raise Refusal(tensor.name, f"of {tensor.dtype}", "F32")
        return list(struct.unpack(f"<{len(data) // struct.calcsize(kind)}{kind}", data))

    def float32(self, tensor: Tensor, part: int | None = None) -> Array:
        """The values as a float32 array: of row `part` of a tensor with two dimensions, or of all
        of it."""
        values = self.floats(tensor)
        if part is not None:
            values = values[part * tensor.shape[-1]:(part + 1) * tensor.shape[-1]]
        if self.device is None:
            return _optional.numpy.array(values, "float32")
        return _optional.torch.tensor(values, dtype=_optional.torch.float32, device=self.device)

    def bias(self, tensor: Tensor, part: int | None = None) -> Array:
        """Like float32(), but a torch tensor keeps the type float16 or bfloat16 of the file."""
        values = self.float32(tensor, part)
        if self.device is None:
            return values
        return values.to({"F16": _optional.torch.float16, "BF16": _optional.torch.bfloat16}.get(
            tensor.dtype, values.dtype))



def _one_of(values: Sequence[Any], expert: int) -> Any:
    """The value for that expert. If there is only one value, it is the value for all experts."""
    return values[0] if len(values) == 1 else values[expert]


def _load(layer: Layer | Refusal, arrays: _Arrays, judge: Layouts,
          wanted: set[str] | None) -> dict[str, Weight]:
    """Loads a layer as {name: weight}. If it has stacked experts, loads those in `wanted`; None:
    all."""
    if isinstance(layer, Refusal):
        raise layer
    experts = size_of(layer)[0]
    if "declaration" in layer.beside:
        declared = layer.beside["declaration"]
        _layers.read_declaration(declared, arrays._reader.bytes_of(declared))
    if experts is None:
        return {layer.name: _matrix(layer, arrays, judge, None)}
    whole = wanted is not None and layer.name in wanted
    names = {expert: f"{layer.name}[{expert}]" for expert in range(experts)}
    return {name: _matrix(layer, arrays, judge, expert) for expert, name in names.items()
            if wanted is None or whole or name in wanted}


def _matrix(layer: Layer, arrays: _Arrays, judge: Layouts, expert: int | None) -> Weight:
    row = expert or 0
    made = _packed(layer, arrays, judge, _tensor_scale(layer, arrays, row), expert)
    check_values(layer, made, expert)
    beside = layer.beside
    return made.beside(
        dialect=layer.dialect.name,
        bias=arrays.bias(beside["bias"], expert) if "bias" in beside else None,
        input_scale=_input_scale(layer, arrays, row),
        pre_quant_scale=_pre_quant_scale(layer, arrays))


def _expert(tensor: Tensor, expert: int | None) -> Tensor:
    """The part of a stacked tensor that belongs to one expert."""
    if expert is None:
        return tensor
    size = tensor.size // tensor.shape[0]
    return tensor._replace(shape=tensor.shape[1:], size=size, begin=tensor.begin + expert * size,
                           name=f"{tensor.name}[{expert}]")


def _tensor_scale(layer: Layer, arrays: _Arrays, row: int) -> float:
    tensor = layer.parts.get("tensor_scale")
    if tensor is None:
        return 1.0
    value = _one_of(arrays.floats(tensor), row)
    try:
        return tensor_scale_of(value, divides=layer.dialect.direction == "divides")
    except ValueError as error:
        raise Refusal(tensor.name, f"{value:g}", str(error).partition("expected ")[2]) from None


def _input_scale(layer: Layer, arrays: _Arrays, row: int) -> float | None:
    for use in ("input_scale", "input_divisor"):
        tensor = layer.beside.get(use)
        if tensor is not None:
            value = _one_of(arrays.floats(tensor), row)
            if not 0 < value < float("inf"):
                raise Refusal(tensor.name, f"{value:g}", "a finite positive number")
            return float(1 / value if use == "input_divisor" else value)
    return None


def _pre_quant_scale(layer: Layer, arrays: _Arrays) -> Array | None:
    tensor = layer.beside.get("pre_quant")
    if tensor is None:
        return None
    values = arrays.floats(tensor)
    if not all(abs(value) < float("inf") for value in values):
        raise Refusal(tensor.name, "not finite everywhere", "finite numbers")
    return arrays.float32(tensor)


def _packed(layer: Layer, arrays: _Arrays, judge: Layouts, value: float,
            expert: int | None) -> Weight:
    """Converts the layer's codes and scales from its dialect's layout."""
    dialect, parts = layer.dialect, layer.parts
    _, n, k = size_of(layer)
    data = arrays.bytes_of(parts["codes"], expert)
    try:
        if dialect.layout == "blocks":
            return layouts.from_ggml(data, n, k, value)
        if dialect.layout == "mxfp4_blocks":
            return layouts.from_ggml_mxfp4(data, n, k)
        scales = arrays.bytes_of(parts["scales"], expert)
        format_ = _FORMATS.get(dialect.layout)
        if format_ is not None:
            return weight(data.reshape(n, k // 2), scales, format=format_, scale_layout=(
                "128x4" if dialect.layout.startswith("tiles") else "linear"))
        if dialect.layout == "padded":
            made, tiles = _padded(layer, arrays, data, scales, value)
        else:
            tiles = dialect.layout == "tiles_128x4"
            made = weight(data.reshape(n, k // 2), scales, value, nibbles=dialect.nibbles,
                          scale_layout="128x4" if tiles else "linear")
    except (ValueError, TypeError) as error:
        name = parts["scales"].name + ("" if expert is None else f"[{expert}]")
        kind = "UE4M3" if _FORMATS.get(dialect.layout) is None else "UE8M0"
        raise Refusal(name, str(error).removeprefix("the scale of "), f"{kind}, finite") from None
    judge.check(layer, scales, tiles, expert)
    return made


def _padded(layer: Layer, arrays: _Arrays, codes: Array, scales: Array,
            amax: float) -> tuple[Weight, bool]:
    """Returns (the weight, whether its scales are in tiles in the file)."""
    flags = {use: _one_of(arrays.floats(layer.beside[use]), 0)
             for use in ("e4m3_max", "swizzled") if use in layer.beside}
    largest, tiles = flags.get("e4m3_max", 448), bool(flags.get("swizzled"))
    if largest not in (448, 256):
        raise Refusal(layer.beside["e4m3_max"].name, f"{largest:g}", "448 or 256")
    return layouts.from_transformer_engine(codes, scales, amax, e4m3_max=largest,
                                           swizzled=tiles), tiles
