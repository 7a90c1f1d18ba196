# SPDX-License-Identifier: MIT
"""The NVFP4 layers of a Checkpoint: which tensors make up each, in which dialect of
tools/nvfp4/dialects.def, and whether names, types and shapes are what the dialect says. Reads no
weights; of a declaration, its JSON."""
import bisect
from typing import NamedTuple

from nvfp4gemm import _dialects
from nvfp4gemm._dialects import BESIDE, DECLARED, DIALECTS
from nvfp4gemm._safetensors import parse_json

_FORMAT = "nvfp4"
_FP8 = ("F8_E4M3", "U8")
_OF_GGUF = {"NVFP4": "ggml", "MXFP4": "ggml_mxfp4"}  # the dialects of GGUF's types
# A tensor has codes and scales; k is counted in elements.
_BLOCKS = ("blocks", "mxfp4_blocks")
_FLOATS = ("F32", "F16", "BF16")
# Keys of a declaration that leave the values as they are.
_HARMLESS = {"format", "full_precision_matrix_mult"}


class Refusal(Exception):
    """Why a layer is not loaded: the tensor, what it is, what was expected."""

    def __init__(self, tensor, what, expected):
        super().__init__(tensor, what, expected)
        self.tensor, self.what, self.expected = tensor, what, expected


class Layer(NamedTuple):
    """name, its Dialect, {"codes", "scales", "tensor_scale": Tensor}, {use: Tensor} beside."""

    name: str
    dialect: _dialects.Dialect
    parts: dict
    beside: dict


def _is_codes(tensor):
    return tensor is not None and tensor.dtype == "U8"


def _is_block_scales(tensor):
    return tensor.dtype == "F8_E4M3" and len(tensor.shape) >= 2


def _first_with_scales(dialect):
    """Names of scales that several dialects share speak for the first; other tensors decide."""
    return next(other for other in DIALECTS.values() if other.scales == dialect.scales) is dialect


def _declared_by_files(checkpoint):
    """({layer: its declaration}, {file: layers that its metadata name, of any format}), or a
    Refusal in place of the first."""
    layers, files = {}, {}
    for dialect, by, key in DECLARED:
        for file, metadata in checkpoint.metadata.items() if by == "metadata" else ():
            if key not in metadata:
                continue
            try:
                said = parse_json(metadata[key])
            except ValueError as error:
                raise Refusal(file, f"its {key} is {error}", "JSON") from None
            named = said.get("layers") if isinstance(said, dict) else None
            if isinstance(named, dict):
                layers.update((layer, (dialect, value, file)) for layer, value in named.items())
                files[file] = set(named)
    return layers, files


class Finder:
    """Looks for layers in one Checkpoint. layers() is {name: Layer or Refusal}."""

    def __init__(self, checkpoint):
        self.tensors, self.twice = checkpoint.tensors, checkpoint.twice
        self.names = sorted(checkpoint.tensors)
        self.declarations, self.listed, self.unreadable = {}, {}, None
        try:
            self.declarations, self.listed = _declared_by_files(checkpoint)
        except Refusal as refusal:
            self.unreadable = refusal
        self.candidates = self._candidates()  # {layer: name of its first dialect, or a Refusal}
        self.by_name = self._by_name()
        self.claimed = {layer + suffix for layer, dialect in self.candidates.items()
                        if isinstance(dialect, str) for suffix in _suffixes(dialect)}

    def file_of(self, layer, tensor):
        """The file that a sentence about a tensor of a layer names: its own, that of another tensor
        of the layer, or the one that declares it."""
        if tensor in self.tensors:
            return self.tensors[tensor].file
        near = next(self._between(layer), None)
        if near is not None:
            return self.tensors[near].file
        return self.declarations[layer][2] if layer in self.declarations else tensor

    def layers(self):
        found = {}
        for layer, dialect in sorted(self.candidates.items()):
            try:
                if isinstance(dialect, Refusal):
                    raise dialect
                found[layer] = self._layer(layer, self._dialect_of(layer, dialect))
            except Refusal as refusal:
                found[layer] = refusal
        return found

    def _candidates(self):
        found = {}
        for name in self.names:
            for layer, dialect in self._hints(self.tensors[name]):
                known = found.get(layer)
                # modelopt's ".weight_scale" is compressed-tensors' too, and comes after it.
                if known is None or known == "modelopt":
                    found[layer] = dialect
        for layer, (_, said, _) in self.declarations.items():
            if isinstance(said, dict) and said.get("format") == _FORMAT:
                found.setdefault(layer, "modelopt")
        return found

    def _hints(self, tensor):
        """(layer, dialect) that a tensor's name and type speak for."""
        name = tensor.name
        if tensor.dtype in _OF_GGUF:
            yield name.removesuffix(".weight"), _OF_GGUF[tensor.dtype]
            return
        for dialect in DIALECTS.values():
            if dialect.file != "safetensors" or dialect.name in ("comfyui", "flux2"):
                continue
            layer = self._hinted(tensor, dialect)
            if layer:
                yield layer, dialect.name

    def _hinted(self, tensor, dialect):
        """The layer of which the tensor is a part in that dialect; None if it need not be one."""
        name = tensor.name
        if dialect.layout == "mxfp4":
            mine = name.endswith(dialect.codes) and _is_codes(tensor) and len(tensor.shape) > 2
            return name.removesuffix(dialect.codes) if mine and tensor.shape[-1] == 16 else None
        if name.endswith(dialect.tensor_scale):
            return name.removesuffix(dialect.tensor_scale)
        if dialect.codes and name.endswith(dialect.codes) and _is_codes(tensor):
            return name.removesuffix(dialect.codes)
        if name.endswith(dialect.scales) and _first_with_scales(dialect) and (
                _is_block_scales(tensor)):
            layer = name.removesuffix(dialect.scales)
            codes = self.tensors.get(layer + dialect.codes)
            # fp8 weights have fp8 scales in some checkpoints; they are no NVFP4.
            if codes is None or not codes.dtype.startswith(("F8", "I8")):
                return layer
        return None

    def _by_name(self):
        """The dialect that names of layers in the checkpoint speak for, or None."""
        codes = DIALECTS["modelopt"].codes
        layers = [layer for layer, dialect in self.candidates.items()
                  if dialect == "modelopt" and _is_codes(self.tensors.get(layer + codes))]
        for dialect, by, name in DECLARED:
            if by == "name":
                pattern = _dialects.layer_pattern(name)
                if any(pattern.fullmatch(layer) for layer in layers):
                    return dialect
        return None

    def _dialect_of(self, layer, dialect):
        """Of those with modelopt's names, the one that is declared."""
        if dialect != "modelopt":
            return dialect
        for other, by, suffix in DECLARED:
            if by == "tensor" and layer + suffix in self.tensors:
                return other
        if layer in self.declarations:
            other, said, _ = self.declarations[layer]
            _check_declaration(layer, said)
            return other
        codes = self.tensors.get(layer + DIALECTS[dialect].codes)
        if self.unreadable:
            raise self.unreadable
        if codes is not None and self.listed.get(codes.file):
            raise Refusal(codes.name, "a layer that the metadata of its file do not name",
                          'an entry with "format": "nvfp4" beside those of the other layers')
        return self.by_name or dialect

    def _between(self, start):
        """Names that begin with start."""
        for i in range(bisect.bisect_left(self.names, start), len(self.names)):
            if not self.names[i].startswith(start):
                return
            yield self.names[i]

    def _layer(self, name, dialect):
        dialect = DIALECTS[dialect]
        parts = {}
        for part in ("codes", "scales", "tensor_scale"):
            full = name + getattr(dialect, part)
            if part == "tensor_scale" and not dialect.tensor_scale:
                continue
            if full in self.twice:
                files = " and ".join(self.twice[full])
                raise Refusal(full, f"in {files}", "one file that has it")
            if full in self.tensors:
                parts[part] = self.tensors[full]
            elif not (part == "tensor_scale" and dialect.file == "gguf"):
                why = "declared as nvfp4" if name in self.declarations else (
                    f"a layer of {dialect.title} by its other tensors")
                raise Refusal(full, "missing", f"a tensor of that name, since {name} is {why}")
        layer = Layer(name, dialect, parts, self._beside(name, dialect, parts))
        _check_types(layer)
        _check_shapes(layer)
        return layer

    def _beside(self, name, dialect, parts):
        own = {tensor.name for tensor in parts.values()}
        found, table = {}, BESIDE[dialect.name]
        sign = dialect.codes[:1] or "_"
        for full in self._between(name + sign):
            if full in own:
                continue
            use = table.get(full[len(name):])
            if use is None and (sign == "." or full not in self.claimed):
                raise Refusal(full, f"what {dialect.title} does not have beside a weight",
                              "none but " + ", ".join(name + suffix for suffix in table))
            if use and full in self.twice:
                raise Refusal(full, f"in {' and '.join(self.twice[full])}", "one file that has it")
            if use:
                found[use] = self.tensors[full]
        return found


def wholes_of(layers, fused):
    """{layer: its parts} that `fused` makes of the layers of a checkpoint, which are all there."""
    wholes = {}
    for last, (first, *others) in fused.items():
        for name in layers:
            stem = name.removesuffix(first)
            if name.endswith(first) and (stem == "" or stem.endswith(".")):
                parts = [name, *(stem + other for other in others)]
                if stem + last not in layers and all(part in layers for part in parts):
                    wholes[stem + last] = parts
    return wholes


def _suffixes(dialect):
    dialect = DIALECTS[dialect]
    return [dialect.codes, dialect.scales, dialect.tensor_scale, *BESIDE[dialect.name]]


def _check_declaration(tensor, said):
    if not isinstance(said, dict) or said.get("format") != _FORMAT:
        said = said.get("format") if isinstance(said, dict) else said
        raise Refusal(tensor, f"declared as {said!r}", f"{_FORMAT!r}, since it has its tensors")
    odd = {key for key in set(said) - _HARMLESS
           if not (key in ("group_size", "block_size") and said[key] == 16)}
    if odd:
        raise Refusal(tensor, f"declared with {', '.join(sorted(odd))}",
                      "a declaration with none but " + ", ".join(sorted(_HARMLESS)))


def read_declaration(tensor, data):
    """Checks the JSON of a declaration tensor."""
    try:
        said = parse_json(bytes(data))
    except ValueError as error:
        raise Refusal(tensor.name, str(error), 'JSON with "format"') from None
    _check_declaration(tensor.name, said)


def _expect(tensor, dtypes):
    if tensor.dtype not in dtypes:
        raise Refusal(tensor.name, f"of {tensor.dtype}", " or ".join(dtypes))


def _check_types(layer):
    codes, scales = layer.parts["codes"], layer.parts["scales"]
    if layer.dialect.layout not in _BLOCKS:
        _expect(codes, ("U8",))
        _expect(scales, ("U8", "F8_E8M0") if layer.dialect.layout == "mxfp4" else _FP8)
    if "tensor_scale" in layer.parts:
        _expect(layer.parts["tensor_scale"], ("F32",))
    for use in ("input_scale", "input_divisor"):
        if use in layer.beside:
            _expect(layer.beside[use], ("F32",))
    for use in ("bias", "pre_quant"):
        if use in layer.beside:
            _expect(layer.beside[use], _FLOATS)


def size_of(layer):
    """(experts or None, n, k)."""
    shape = layer.parts["codes"].shape
    if layer.dialect.layout == "mxfp4":
        shape = (*shape[:-2], shape[-2] * 16)
    k = shape[-1] * (1 if layer.dialect.layout in _BLOCKS else 2)
    return (shape[0] if len(shape) == 3 else None), shape[-2], k


def scale_shapes(layout, n, k):
    """The shapes that the scales of one matrix may have."""
    if layout == "linear":
        return [(n, k // 16)]
    tiles = (-(-n // 128) * 128, -(-k // 64) * 4)
    return [tiles, (tiles[0] * tiles[1],)]


def _words(shapes):
    return " or ".join(str(list(shape)) for shape in shapes)


def _check_scales(layer, experts, n, k):
    scales, layout = layer.parts["scales"], layer.dialect.layout
    shapes = [(experts, *shape) if experts is not None else shape
              for shape in scale_shapes(layout, n, k)]
    if scales.shape in shapes:
        return
    expected = f"{_words(shapes)}, since codes are {list(layer.parts['codes'].shape)}"
    if layout == "linear" and scales.shape and scales.shape[-1] * 32 == k:
        expected += "; one scale for 32 elements is MXFP4"
    if experts is not None and layout == "linear" and scales.shape == (
            experts, n // 8, layer.parts["codes"].shape[-1]):
        expected += "; k is the second dimension here, which is not read"
    raise Refusal(scales.name, f"of shape {list(scales.shape)}", expected)


def _check_scales_of_32(layer):
    codes, scales = layer.parts["codes"], layer.parts["scales"]
    if scales.shape != codes.shape[:-1]:
        raise Refusal(scales.name, f"of shape {list(scales.shape)}",
                      f"{list(codes.shape[:-1])}, since blocks are {list(codes.shape)}")


def _check_shapes(layer):
    codes, layout = layer.parts["codes"], layer.dialect.layout
    mxfp4 = layout == "mxfp4"
    if len(codes.shape) - mxfp4 not in (2, 3) or 0 in codes.shape:
        raise Refusal(codes.name, f"of shape {list(codes.shape)}",
                      "[n, k / 32, 16], or [experts, n, k / 32, 16]" if mxfp4 else
                      "[n, k / 2], or [experts, n, k / 2]")
    experts, n, k = size_of(layer)
    if experts is not None and layout not in ("linear", "mxfp4", *_BLOCKS):
        raise Refusal(codes.name, f"of shape {list(codes.shape)}", "[n, k / 2]")
    if layer.dialect.name == "stacked" and experts is None:
        raise Refusal(codes.name, f"of shape {list(codes.shape)}", "[experts, n, k / 2]")
    if k % 16:
        raise Refusal(codes.name, f"of shape {list(codes.shape)}", "k, a multiple of 16")
    if mxfp4:
        _check_scales_of_32(layer)
    elif layout not in _BLOCKS:
        _check_scales(layer, experts, n, k)
    for part in ("tensor_scale", "input_scale", "input_divisor", "e4m3_max", "swizzled"):
        _check_count(layer.parts.get(part) or layer.beside.get(part), experts)
    for use, count in (("bias", n), ("pre_quant", k)):
        tensor = layer.beside.get(use)
        shapes = [(count,)] if experts is None else [(experts, count)]
        if tensor is not None and tensor.shape not in shapes:
            raise Refusal(tensor.name, f"of shape {list(tensor.shape)}", _words(shapes))


def _check_count(tensor, experts):
    if tensor is None:
        return
    count = 1
    for size in tensor.shape:
        count *= size
    if count != 1 and count != experts:
        raise Refusal(tensor.name, f"{count} values, shape {list(tensor.shape)}",
                      "one value" if experts is None else f"one value, or {experts}")
