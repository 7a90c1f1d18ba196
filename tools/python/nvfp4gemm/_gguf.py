# SPDX-License-Identifier: MIT
"""Reads the header of a GGUF file: names, types, shapes and places of its tensors. Its settings are
skipped, except the alignment of tensors."""
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import BinaryIO

from nvfp4gemm import _dialects
from nvfp4gemm._safetensors import FormatError
from nvfp4gemm._types import Entry, Shape

_STRING, _ARRAY = 8, 9
_VALUE_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_MOST_DIMENSIONS = 4
_ALIGNMENT = "general.alignment"


class _Cursor:
    """Reads forward, never beyond the end of the file."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.left = os.fstat(file.fileno()).st_size

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise ValueError(f"{count} bytes are expected where {self.left} are left")
        self.left -= count
        return self.file.read(count)

    def skip(self, count: int) -> None:
        if count > self.left:
            raise ValueError(f"{count} bytes are expected where {self.left} are left")
        self.left -= count
        self.file.seek(count, os.SEEK_CUR)

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def text(self) -> str:
        try:
            return self.take(self.number(8)).decode()
        except UnicodeDecodeError:
            raise ValueError("a name that is no UTF-8") from None


def _skip_value(cursor: _Cursor, kind: int) -> None:
    if kind == _STRING:
        cursor.skip(cursor.number(8))
    elif kind in _VALUE_BYTES:
        cursor.skip(_VALUE_BYTES[kind])
    else:
        raise ValueError(f"a setting of type {kind}")


def _skip_setting(cursor: _Cursor, kind: int) -> None:
    if kind != _ARRAY:
        return _skip_value(cursor, kind)
    kind, count = cursor.number(4), cursor.number(8)
    if kind in _VALUE_BYTES:
        return cursor.skip(count * _VALUE_BYTES[kind])
    for _ in range(count):
        _skip_value(cursor, kind)


def _alignment(cursor: _Cursor, settings: int) -> int:
    """Skips the settings. Returns the alignment of tensors in bytes."""
    alignment = 32
    for _ in range(settings):
        name, kind = cursor.text(), cursor.number(4)
        if name != _ALIGNMENT:
            _skip_setting(cursor, kind)
            continue
        alignment = cursor.number(4) if kind == 4 else 0
        if alignment == 0 or alignment & (alignment - 1):
            raise ValueError(f"{_ALIGNMENT} is no power of two")
    return alignment


def _entry(cursor: _Cursor) -> tuple[str, int, Shape, int]:
    """(name, type, shape, offset) of a tensor. GGUF stores the fastest dimension first; shape has
    it last."""
    name, dimensions = cursor.text(), cursor.number(4)
    if dimensions > _MOST_DIMENSIONS:
        raise ValueError(f"{name!r} has {dimensions} dimensions")
    shape = tuple(cursor.number(8) for _ in range(dimensions))[::-1]
    return name, cursor.number(4), shape, cursor.number(8)


def _size(name: str, kind: int, shape: Shape) -> tuple[str, int | None]:
    """(name of the type, bytes of the tensor). bytes is None for a type that this package does not
    read."""
    if kind not in _dialects.GGUF_TYPES:
        return f"type {kind}", None
    title, elements, size = _dialects.GGUF_TYPES[kind]
    count = size
    for dimension in shape:
        count *= dimension
    if shape and shape[-1] % elements:
        raise ValueError(f"{name!r} is {title} with rows of {shape[-1]}, no multiple of {elements}")
    return title, count // elements


def _placed(entries: Iterable[tuple[str, int, Shape, int]], start: int, end: int,
            alignment: int) -> list[Entry]:
    """The entries with their places in the file, in file order. Raises ValueError if tensors
    overlap."""
    found = []
    for name, kind, shape, offset in sorted(entries, key=lambda entry: entry[3], reverse=True):
        title, size = _size(name, kind, shape)
        begin = start + offset
        if offset % alignment or begin + (size or 0) > end:
            raise ValueError(f"{name!r} lies at byte {offset} of the data, which is no multiple of "
                             f"{alignment}, or does not end before the next tensor")
        found.append((name, title, shape, begin, end - begin if size is None else size))
        end = begin
    return found[::-1]


def read_header(file: str) -> tuple[dict[str, str], list[Entry]]:
    """(metadata, [(name, dtype, shape, first byte in the file, number of bytes)])."""
    with open(file, "rb") as opened:
        cursor = _Cursor(opened)
        whole = cursor.left
        try:
            if cursor.take(4) != b"GGUF":
                raise ValueError("it does not begin with GGUF")
            version = cursor.number(4)
            if version not in (2, 3):
                raise ValueError(f"version {version}; 2 and 3 are read")
            tensors, settings = cursor.number(8), cursor.number(8)
            alignment = _alignment(cursor, settings)
            entries = []
            for _ in range(tensors):
                entries.append(_entry(cursor))
            names = {entry[0] for entry in entries}
            if len(names) != len(entries):
                raise ValueError("two tensors of one name")
            start = -(-(whole - cursor.left) // alignment) * alignment
            return {}, _placed(entries, start, whole, alignment)
        except ValueError as error:
            raise FormatError(file, f"is no GGUF file: {error}") from None
