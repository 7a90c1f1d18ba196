# SPDX-License-Identifier: MIT
"""Finds the NVFP4 layers of a Checkpoint: which tensors make up a layer, in which dialect of
tools/nvfp4/dialects.def, and whether names, types and shapes match the dialect. It reads no tensor
data, except the JSON of declarations."""
from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from nvfp4gemm import _dialects
from nvfp4gemm._dialects import (BESIDE, DECLARED, DIALECTS, NOT_READ, PACKED, TOGETHER, Dialect)
from nvfp4gemm._files import Checkpoint, Tensor
from nvfp4gemm._safetensors import parse_json
from nvfp4gemm._shapes import Layer, Refusal, check_types_and_shapes, elements

_FORMAT = "nvfp4"
_OF_GGUF = {"NVFP4": "ggml", "MXFP4": "ggml_mxfp4"}  # the dialects of GGUF's types
_SCALES_OF_32 = ("U8", "F8_E8M0")
# Dialects that no single tensor name identifies. A row of DECLARED selects them in place of another
# dialect, or codes and scales together identify them.
_DECLARED = {row[0] for row in DECLARED}.union(TOGETHER)
# Keys of a declaration that do not change the values.
_HARMLESS = {"format", "full_precision_matrix_mult"}


def _is_codes(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype == "U8"


def _is_block_scales(tensor: Tensor) -> bool:
    return tensor.dtype == "F8_E4M3" and len(tensor.shape) >= 2


def _first_with_scales(dialect: Dialect) -> bool:
    """Whether no earlier row of dialects.def has the same name for its scales. If several dialects
    share the name, it suggests the first one, and other tensors then decide."""
    return next(other for other in DIALECTS.values() if other.scales == dialect.scales) is dialect


def _declared_by_files(
        checkpoint: Checkpoint) -> tuple[dict[str, tuple[str, Any, str]], dict[str, set[str]]]:
    """Returns ({layer: its declaration}, {file: layers that its metadata names, also in other
    formats}). Raises Refusal if the metadata is not valid JSON."""
    layers: dict[str, tuple[str, Any, str]] = {}
    files = {}
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
    """Finds the layers of one Checkpoint. layers() returns {name: Layer or Refusal}."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.tensors, self.twice = checkpoint.tensors, checkpoint.twice
        self.names, self.lost = sorted(checkpoint.tensors), sorted(checkpoint.lost)
        self.folder = checkpoint
        self.declarations: dict[str, tuple[str, Any, str]] = {}
        self.listed: dict[str, set[str]] = {}
        self.unreadable: Refusal | None = None
        try:
            self.declarations, self.listed = _declared_by_files(checkpoint)
        except Refusal as refusal:
            self.unreadable = refusal
        self.candidates = self._candidates()  # {layer: name of its first dialect, or a Refusal}
        self.by_name = self._by_name()
        self.claimed = {layer + suffix for layer, dialect in self.candidates.items()
                        if isinstance(dialect, str) for suffix in _suffixes(dialect)}
        self.candidates.update(self._unknown())

    def file_of(self, layer: str, tensor: str) -> str:
        """The file to name in an error message about a tensor of a layer. It is the file of the
        tensor; or the index that names the missing tensor; or the file of another tensor of the
        layer; or the file that declares the layer."""
        if tensor in self.tensors:
            return self.tensors[tensor].file
        if tensor in self.folder.lost:
            return self.folder.lost[tensor].index
        near = next(_between(self.names, layer), None)
        if near is not None:
            return self.tensors[near].file
        return self.declarations[layer][2] if layer in self.declarations else tensor

    def layers(self) -> dict[str, Layer | Refusal]:
        found: dict[str, Layer | Refusal] = {}
        for layer, dialect in sorted(self.candidates.items()):
            try:
                if isinstance(dialect, Refusal):
                    raise dialect
                self._check_folder(layer, dialect)
                found[layer] = self._layer(layer, *self._dialect_of(layer, dialect))
            except Refusal as refusal:
                found[layer] = refusal
        return found

    def _candidates(self) -> dict[str, str | Refusal]:
        found: dict[str, str | Refusal] = {}
        hints = [hint for name in self.names for hint in self._hints(self.tensors[name])]
        for layer, dialect in hints + [hint for name in self.lost for hint in _hints_of_name(name)]:
            if layer.endswith(".") or not layer:
                continue  # torchao's "X._weight_scale" does not belong to a layer "X."
            known = found.get(layer)
            # compressed-tensors also uses modelopt's ".weight_scale", and takes precedence.
            if known is None or known == "modelopt":
                found[layer] = dialect
        for layer, (_, said, _) in self.declarations.items():
            if isinstance(said, dict) and said.get("format") == _FORMAT:
                found.setdefault(layer, "modelopt")
        found.update(self._together())
        found.update(self._not_read())
        return found

    def _together(self) -> dict[str, str]:
        """{layer: dialect} for the dialects of TOGETHER, which types and shapes of codes and scales
        identify."""
        found: dict[str, str] = {}
        for name in self.names:
            for dialect in map(DIALECTS.__getitem__, TOGETHER):
                layer = name.removesuffix(dialect.scales)
                if layer and layer != name and self._fit(layer, dialect):
                    found.setdefault(layer, dialect.name)
        return found

    def _fit(self, layer: str, dialect: Dialect) -> bool:
        parts = {part: self.tensors[layer + suffix] for part, suffix in (
            ("codes", dialect.codes), ("scales", dialect.scales)) if layer + suffix in self.tensors}
        if len(parts) < 2:
            return False
        try:
            check_types_and_shapes(Layer(layer, dialect, parts, {}, False))
        except Refusal:
            return False
        return True

    def _not_read(self) -> dict[str, Refusal]:
        """{layer: Refusal} for layers of programs whose weights are not supported."""
        found = {}
        for name in self.names:
            for title, codes, beside in NOT_READ:
                layer = name.removesuffix(codes)
                if layer != name and layer + beside in self.tensors:
                    tensor = self.tensors[name]
                    found[layer] = Refusal(
                        name, f"{tensor.dtype} {list(tensor.shape)} of {title}, which is not read",
                        "one of dialects.def")
        return found

    def _hints(self, tensor: Tensor) -> Iterator[tuple[str, str]]:
        """(layer, dialect) that a tensor's name and type suggest."""
        name = tensor.name
        if tensor.dtype in _OF_GGUF:
            yield name.removesuffix(".weight"), _OF_GGUF[tensor.dtype]
            return
        for dialect in DIALECTS.values():
            if dialect.file != "safetensors" or dialect.name in _DECLARED:
                continue
            layer = self._hinted(tensor, dialect)
            if layer:
                yield layer, dialect.name

    def _hinted(self, tensor: Tensor, dialect: Dialect) -> str | None:
        """The layer to which the tensor would belong in that dialect; None if its name or type does
        not suggest the dialect."""
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
            # Some checkpoints have FP8 weights with FP8 scales. They are not NVFP4.
            if codes is None or not codes.dtype.startswith(("F8", "I8")):
                return layer
        return None

    def _unknown(self) -> dict[str, Refusal]:
        """{layer: Refusal} for packed tensors of no known dialect that have scales beside them."""
        free = [self.tensors[name] for name in self.names if name not in self.claimed]
        # {(the name up to its last dot, number of elements): [Tensor]}
        scales: dict[tuple[str, int], list[Tensor]] = {}
        found: dict[str, Refusal] = {}
        for tensor in free:
            start, last = _parted(tensor.name)
            if "scale" in last and len(tensor.shape) > 1:
                scales.setdefault((start, elements(tensor.shape)), []).append(tensor)
        for tensor in free:
            start, last = _parted(tensor.name)
            layer = start.removesuffix(".") or last
            for count in _scale_counts(tensor) if layer not in self.candidates else ():
                near = [other for other in scales.get((start, count), ())[:2] if other != tensor]
                if near:
                    found.setdefault(layer, _of_no_dialect(tensor, near[0]))
        return found

    def _by_name(self) -> str | None:
        """The dialect that the names of the checkpoint's layers suggest, or None."""
        codes = DIALECTS["modelopt"].codes
        layers = [layer for layer, dialect in self.candidates.items()
                  if dialect == "modelopt" and _is_codes(self.tensors.get(layer + codes))]
        for dialect, by, name in DECLARED:
            if by == "name":
                pattern = _dialects.layer_pattern(name)
                if any(pattern.fullmatch(layer) for layer in layers):
                    return str(dialect)
        return None

    def _dialect_of(self, layer: str, dialect: str) -> tuple[str, bool]:
        """(the dialect, chosen by a declaration among those with the same tensor names; whether
        only the names of layers suggest it)."""
        named = DIALECTS[dialect]
        for other, by, suffix in DECLARED:
            if by == "tensor" and DIALECTS[other][3:5] == named[3:5] and (
                    layer + suffix in self.tensors):
                return other, False
        for other, by, what in DECLARED:
            if by == "mxfp4" and what == dialect and self._has_scales_of_32(layer, dialect):
                return other, False
        if dialect != "modelopt":
            return dialect, False
        if layer in self.declarations:
            other, said, _ = self.declarations[layer]
            _check_declaration(layer, said)
            return other, False
        codes = self.tensors.get(layer + DIALECTS[dialect].codes)
        if self.unreadable:
            raise self.unreadable
        if codes is not None and self.listed.get(codes.file):
            raise Refusal(codes.name, "a layer that the metadata of its file do not name",
                          'an entry with "format": "nvfp4" beside those of the other layers')
        return self.by_name or dialect, self.by_name is not None

    def _has_scales_of_32(self, layer: str, name: str) -> bool:
        """Whether the layer has the codes of that dialect, but scales like MXFP4's in place of the
        dialect's own."""
        dialect = DIALECTS[name]
        codes, scales, other = (self.tensors.get(layer + suffix) for suffix in (
            dialect.codes, dialect.scales, dialect.tensor_scale))
        return bool(other is None and codes and _is_codes(codes) and scales and codes.shape
                    and scales.dtype in _SCALES_OF_32
                    and (*scales.shape[:-1], scales.shape[-1] * 16) == codes.shape)

    def _check_folder(self, layer: str, of: str) -> None:
        """Raises Refusal if the folder's index or a configuration excludes the layer."""
        dialect = DIALECTS[of]
        codes = layer + dialect.codes
        for full in (codes, *_between(self.lost, layer + (dialect.codes[:1] or "_"))):
            lost = self.folder.lost.get(full)
            if lost and (full in self.claimed or dialect.codes[:1] == "."):
                raise Refusal(full, lost.what, lost.expected)
        for full in (codes, *_between(self.names, layer + (dialect.codes[:1] or "_"))):
            tensor = self.tensors.get(full)
            if tensor and tensor.file in self.folder.stray and (
                    full in self.claimed or dialect.codes[:1] == "."):
                raise Refusal(full, f"in {tensor.file}, which {self.folder.index} does not name",
                              "a file that the index names")
        for transform in self.folder.transforms:
            if transform.concerns(layer):
                raise Refusal(codes, f"of a layer with a transform, by {transform.key} of "
                              f"{transform.file}", "a layer that multiplies x as it is")

    def _layer(self, name: str, of: str, by_name: bool) -> Layer:
        dialect = DIALECTS[of]
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
                self._check_alone(name, dialect)
                why = "declared as nvfp4" if name in self.declarations else (
                    f"a layer of {dialect.title} by its other tensors")
                raise Refusal(full, "missing", f"a tensor of that name, since {name} is {why}")
        layer = Layer(name, dialect, parts, self._beside(name, dialect, parts), by_name)
        check_types_and_shapes(layer)
        return layer

    def _check_alone(self, name: str, dialect: Dialect) -> None:
        """Raises Refusal if a layer has codes but neither scales nor a declaration, since codes
        alone do not identify a dialect."""
        codes = self.tensors.get(name + dialect.codes)
        others = dialect.scales, dialect.tensor_scale or dialect.codes
        if codes and name not in self.declarations and not any(
                name + other in self.tensors for other in others):
            raise Refusal(codes.name, f"{codes.dtype} {list(codes.shape)} without scales, of a "
                          "dialect that is not known here", "one of dialects.def")

    def _beside(self, name: str, dialect: Dialect,
                parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
        own = {tensor.name for tensor in parts.values()}
        found, table = {}, BESIDE[dialect.name]
        sign = dialect.codes[:1] or "_"
        for full in _between(self.names, name + sign):
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


def _between(names: Sequence[str], start: str) -> Iterator[str]:
    """The names that begin with `start`. `names` must be sorted."""
    for i in range(bisect.bisect_left(names, start), len(names)):
        if not names[i].startswith(start):
            return
        yield names[i]


def _hints_of_name(name: str) -> Iterator[tuple[str, str]]:
    """(layer, dialect) that a name alone suggests."""
    for dialect in DIALECTS.values():
        suffix = dialect.codes if dialect.layout == "mxfp4" else dialect.tensor_scale
        if dialect.file == "safetensors" and dialect.name not in _DECLARED and (
                name.endswith(suffix)):
            yield name.removesuffix(suffix), dialect.name


def _parted(name: str) -> tuple[str, str]:
    """Splits a name into (all up to its last dot, the rest)."""
    start, dot, last = name.rpartition(".")
    return start + dot, last


def _scale_counts(tensor: Tensor) -> list[int]:
    """How many scales a tensor of 4-bit elements may have: one for 16 or for 32 elements, perhaps
    padded to 128x4 tiles. [] if its type cannot hold such elements."""
    if tensor.dtype not in PACKED or len(tensor.shape) < 2:
        return []
    *stack, n, width = tensor.shape
    k, experts = width * 2 * PACKED[tensor.dtype], elements(stack)
    return [experts * count for block in (16, 32) if k % block == 0 for count in (
        n * (k // block), -(-n // 128) * 128 * (-(-k // (4 * block)) * 4))]


def _of_no_dialect(tensor: Tensor, scales: Tensor) -> Refusal:
    return Refusal(tensor.name, f"{tensor.dtype} {list(tensor.shape)} beside {scales.name} "
                   f"{list(scales.shape)}, 4-bit elements of a dialect that is not known here",
                   "one of dialects.def")


def wholes_of(layers: Collection[str], fused: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Returns {fused layer: its parts} for each layer of `fused` whose parts are all in
    `layers`."""
    wholes = {}
    for last, (first, *others) in fused.items():
        for name in layers:
            stem = name.removesuffix(first)
            if name.endswith(first) and (stem == "" or stem.endswith(".")):
                parts = [name, *(stem + other for other in others)]
                if stem + last not in layers and all(part in layers for part in parts):
                    wholes[stem + last] = parts
    return wholes


def _suffixes(name: str) -> list[str]:
    dialect = DIALECTS[name]
    return [dialect.codes, dialect.scales, dialect.tensor_scale, *BESIDE[dialect.name]]


def _check_declaration(tensor: str, said: Any) -> None:
    if not isinstance(said, dict) or said.get("format") != _FORMAT:
        said = said.get("format") if isinstance(said, dict) else said
        raise Refusal(tensor, f"declared as {said!r}", f"{_FORMAT!r}, since it has its tensors")
    odd = {key for key in set(said) - _HARMLESS
           if not (key in ("group_size", "block_size") and said[key] == 16)}
    if odd:
        raise Refusal(tensor, f"declared with {', '.join(sorted(odd))}",
                      "a declaration with none but " + ", ".join(sorted(_HARMLESS)))


def read_declaration(tensor: Tensor, data: bytes | bytearray) -> None:
    """Checks the JSON of a declaration tensor."""
    try:
        said = parse_json(bytes(data))
    except ValueError as error:
        raise Refusal(tensor.name, str(error), 'JSON with "format"') from None
    _check_declaration(tensor.name, said)
