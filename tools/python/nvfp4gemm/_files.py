# SPDX-License-Identifier: MIT
"""Reads tensors from safetensors and GGUF files. Headers are validated before use. Each header, and
the bytes of each tensor, are read once. Needs no other package."""
from __future__ import annotations

import os
from collections.abc import Sequence
from io import BufferedReader
from typing import NamedTuple

from nvfp4gemm import _folder, _gguf, _safetensors
from nvfp4gemm._safetensors import FormatError
from nvfp4gemm._types import Path, Shape

_INDEXED = ".safetensors"
_READERS = {".safetensors": _safetensors.read_header, ".gguf": _gguf.read_header}


class Tensor(NamedTuple):
    """Where a tensor is. dtype is the file's word for the type; the last dimension of shape is the
    fastest."""

    name: str
    file: str
    dtype: str
    shape: Shape
    begin: int
    size: int


class Checkpoint:
    """The headers of one file, or of all files in a folder. If the folder has indexes, they decide
    which file a tensor comes from.

    tensors     {name: Tensor}. If several files have a tensor of the same name, the one in the file
                that an index names
    metadata    {file: the metadata in its header}
    twice       {name: the files that have it}, if no index decides
    lost        {name: Lost} for the tensors that an index names and that are missing
    stray       the files that no index names
    index       the paths of the indexes, as text
    transforms  what the configuration files declare about transforms of layers
    broken      a FormatError for each file whose content is not valid for its extension
    missing     a FormatError for each missing file that an index names
    """

    def __init__(self, path: Path) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.metadata: dict[str, dict[str, str]] = {}
        self.twice: dict[str, list[str]] = {}
        files, whole = _files_in(path), os.path.isdir(path)
        self._folder = os.fspath(path) if whole else os.path.dirname(os.fspath(path)) or "."
        self.transforms, self.broken = _folder.transforms(self._folder)
        index = _folder.Index(self._folder if whole else None)
        self.broken += index.broken
        self.index, self.lost = " and ".join(index.paths), dict(index.outside)
        named = index.names()
        self.stray = [file for file in files if index.paths and file.endswith(_INDEXED)
                      and os.path.basename(file) not in named]
        for file in files:
            try:
                self._add(file, index)
            except FormatError as error:
                self.broken.append(error)
        self.missing = self._lose(files, index) if index.paths else []

    def _add(self, file: str, index: _folder.Index) -> None:
        reader = _READERS.get(os.path.splitext(file)[1], _safetensors.read_header)
        metadata, entries = reader(file)
        self.metadata[file] = metadata
        for entry in entries:
            name = entry[0]
            decided = index.files.get(name)
            if decided and decided[1] != os.path.basename(file):
                continue
            other = self.tensors.get(name)
            if other and file in self.stray and other.file not in self.stray:
                continue
            if other and (other.file not in self.stray or file in self.stray):
                self.twice.setdefault(name, [other.file]).append(file)
                continue
            self.twice.pop(name, None)
            self.tensors[name] = Tensor(name, file, *entry[1:])

    def _lose(self, files: Sequence[str], index: _folder.Index) -> list[FormatError]:
        """Fills `lost` and, for tensors about which two indexes differ, `twice`. Returns a
        FormatError for each missing file."""
        known = {os.path.basename(file) for file in files}
        missing: dict[str, str] = {}
        for name, (path, file) in index.files.items():
            if file not in known:
                missing.setdefault(file, path)
                self.lost[name] = _folder.Lost(path, f"in {file}, which is missing",
                                               f"the file that {path} names")
            elif name not in self.tensors:
                self.lost[name] = _folder.Lost(path, f"not in {self._path(file)}",
                                               f"a tensor of that file, as {path} says")
        for name, files in index.twice.items():
            self.twice[name] = [self._path(file) for file in files]
        return [FormatError(self._path(file), f"is missing, and {path} names it")
                for file, path in sorted(missing.items())]

    def _path(self, file: str) -> str:
        return os.path.join(self._folder, file)


def _files_in(path: Path) -> list[str]:
    path = os.fspath(path)
    if os.path.isfile(path):
        return [path]
    names = sorted(os.listdir(path)) if os.path.isdir(path) else []
    files = [os.path.join(path, name) for name in names
             if os.path.splitext(name)[1] in _READERS and os.path.isfile(os.path.join(path, name))]
    if not files:
        raise FileNotFoundError(f"{path} is no safetensors or GGUF file and has none")
    return files


class Reader:
    """Reads the bytes of tensors. Each file is opened once and closed by close()."""

    def __init__(self) -> None:
        self._opened: dict[str, BufferedReader] = {}

    def bytes_of(self, tensor: Tensor) -> bytearray:
        file = self._opened.get(tensor.file)
        if file is None:
            file = self._opened[tensor.file] = open(tensor.file, "rb")
        data = bytearray(tensor.size)
        file.seek(tensor.begin)
        if file.readinto(data) != tensor.size:
            raise FormatError(tensor.file, "became shorter while it was read")
        return data

    def close(self) -> None:
        for file in self._opened.values():
            file.close()
        self._opened = {}
