# SPDX-License-Identifier: MIT
"""Reads the header of a safetensors file. The file has 8 bytes with the length of a JSON object,
that object, then the bytes of the tensors without gaps. Headers that the package safetensors
refuses are refused here, too: otherwise wrong bytes might be read as weights."""
from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Any

from nvfp4gemm._types import Entry, Shape

# The limit of the package safetensors. The header of 100,000 tensors has a tenth of it.
_MOST_HEADER = 100_000_000
_MOST_BITS = 67  # 2^67 bits are 2^64 bytes
_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8,
         "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16,
         "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64,
         "C64": 64}


# Control characters, line separators, bidirectional controls, and surrogates, which are not valid
# in UTF-8.
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    """Text with \\xNN or \\uNNNN for control characters. Names in files are not trusted."""
    return _CONTROL.sub(lambda found: "\\x{:02x}".format(ord(found[0])) if found[0] < "\u0100" else
                        f"\\u{ord(found[0]):04x}", text)


class FormatError(ValueError):
    """A file whose content is not valid for its extension."""

    def __init__(self, file: str, text: str) -> None:
        super().__init__(shown(f"{file} {text}"))
        self.file = file


_DEEPEST = 64  # most containers around a value, the same as in `nvfp4 check`


def _check_depth(said: Any) -> None:
    """Checks the nesting depth level by level, since Python's own limit depends on its version and
    on the caller."""
    level = [said]
    for _ in range(_DEEPEST):
        level = [inner for outer in level
                 for inner in (outer.values() if isinstance(outer, dict) else outer)
                 if isinstance(inner, (dict, list))]
    if any(level):
        raise ValueError("JSON nested too deeply")


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Raises ValueError if it has equal keys."""
    found = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name!r} twice")
        found[name] = value
    return found


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Parses JSON. Raises ValueError with a message for anything invalid, including equal keys and
    deep nesting."""
    try:
        said = json.loads(text, object_pairs_hook=_object, **options)
        if isinstance(said, (dict, list)):
            _check_depth(said)
        if (b"\\u" in text if isinstance(text, bytes) else "\\u" in text):
            json.dumps(said, ensure_ascii=False).encode()
        return said
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("JSON that is none: a surrogate alone") from None
    except UnicodeDecodeError:
        raise ValueError("JSON that is none: text that is no UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"JSON that is none: {error}") from None


def _natural(value: Any) -> bool:
    return type(value) is int and value >= 0


def _entry(name: str, entry: Any) -> tuple[str, Shape, int, int]:
    """(dtype, shape, begin, end) of a tensor in the header."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{name!r} is not described by dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise ValueError(f"{name!r} is of {dtype!r}, which is no type of safetensors")
    if not isinstance(shape, list) or not all(map(_natural, shape)):
        raise ValueError(f"{name!r} has the shape {shape!r}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_natural, offsets)):
        raise ValueError(f"{name!r} has the data_offsets {offsets!r}")
    begin, end = offsets
    bits = _BITS[dtype]
    for size in shape:
        bits *= size
        if bits >> _MOST_BITS:
            raise ValueError(f"{name!r} has the shape {shape}, more than any file holds")
    if bits % 8 or end - begin != bits // 8:
        raise ValueError(f"{name!r} is {dtype} {shape}, {bits / 8:g} bytes, and its data_offsets "
                         f"{offsets} hold {end - begin}")
    return dtype, tuple(shape), begin, end


def _entries(head: dict[str, Any], size: int) -> list[tuple[str, str, Shape, int, int]]:
    """The tensors in the order of their bytes. Raises ValueError unless these cover 0 to size
    without gaps."""
    found = [(name, *_entry(name, entry)) for name, entry in head.items()]
    found.sort(key=lambda entry: entry[3:])
    last = 0
    for name, _, _, begin, end in found:
        if begin != last:
            raise ValueError(f"{name!r} begins at byte {begin}, where {last} is expected")
        last = end
    if last != size:
        raise ValueError(f"{size} bytes follow the header, and its tensors are {last}")
    return found


def _metadata(head: dict[str, Any]) -> dict[str, str]:
    metadata = head.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError("__metadata__ is no object of strings")
    return metadata


def read_header(file: str) -> tuple[dict[str, str], list[Entry]]:
    """(metadata, [(name, dtype, shape, first byte in the file, number of bytes)])."""
    with open(file, "rb") as opened:
        whole = os.fstat(opened.fileno()).st_size
        size = int.from_bytes(opened.read(8), "little")
        if whole < 8 or size > min(whole - 8, _MOST_HEADER):
            raise FormatError(file, f"is no safetensors file: a header of {size} bytes")
        text = opened.read(size)
    try:
        if not text.startswith(b"{"):
            raise ValueError("its header is no JSON object")
        head = parse_json(text)
        metadata = _metadata(head)
        entries = _entries(head, whole - 8 - size)
    except ValueError as error:
        raise FormatError(file, f"is no safetensors file: {error}") from None
    return metadata, [(name, dtype, shape, 8 + size + begin, end - begin)
                      for name, dtype, shape, begin, end in entries]
