# SPDX-License-Identifier: MIT
"""Tensors in safetensors and GGUF files: their headers, checked before anything is believed, and
their bytes. Needs no package. A header is read once, and a tensor's bytes are read once."""
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
    """Where a tensor is. dtype as the file calls it, shape with the fastest dimension last."""

    name: str
    file: str
    dtype: str
    shape: Shape
    begin: int
    size: int


class Checkpoint:
    """The headers of a file, or of those in a folder, by the folder's indexes where it has some.

    tensors     {name: Tensor}; of several with a name, the one in the file that an index names
    metadata    {file: what its header says beside tensors}
    twice       {name: the files that have it}, where no index decides
    lost        {name: Lost}, which an index names and that are not there
    stray       files that no index names
    index       the indexes' paths, in a sentence
    transforms  what the configurations say of layers
    broken      [FormatError], one for each file that is not what its name says
    missing     [FormatError], one for each file that an index names and that is not there
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
        """Fills lost, and twice where two indexes differ; a FormatError for each missing file."""
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
    """The bytes of tensors. A file is opened once, and closed by close()."""

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
