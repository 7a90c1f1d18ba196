# SPDX-License-Identifier: MIT
"""Tensors in safetensors and GGUF files: their headers, checked before anything is believed, and
their bytes. Needs no package. A header is read once, and a tensor's bytes are read once."""
import os
from typing import NamedTuple

from nvfp4gemm import _gguf, _safetensors
from nvfp4gemm._safetensors import FormatError

_READERS = {".safetensors": _safetensors.read_header, ".gguf": _gguf.read_header}


class Tensor(NamedTuple):
    """Where a tensor is. dtype as the file calls it, shape with the fastest dimension last."""

    name: str
    file: str
    dtype: str
    shape: tuple
    begin: int
    size: int


class Checkpoint:
    """The headers of a file, or of those in a folder.

    tensors   {name: Tensor}
    metadata  {file: what its header says beside tensors}
    twice     {name: the files that have it}, of names in several
    broken    [FormatError], one for each file that is not what its name says
    """

    def __init__(self, path):
        self.tensors, self.metadata, self.twice, self.broken = {}, {}, {}, []
        for file in _files_in(path):
            try:
                self._add(file)
            except FormatError as error:
                self.broken.append(error)

    def _add(self, file):
        reader = _READERS.get(os.path.splitext(file)[1], _safetensors.read_header)
        metadata, entries = reader(file)
        self.metadata[file] = metadata
        for name, *entry in entries:
            if name in self.tensors:
                self.twice.setdefault(name, [self.tensors[name].file]).append(file)
            else:
                self.tensors[name] = Tensor(name, file, *entry)


def _files_in(path):
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

    def __init__(self):
        self._opened = {}

    def bytes_of(self, tensor):
        file = self._opened.get(tensor.file)
        if file is None:
            file = self._opened[tensor.file] = open(tensor.file, "rb")
        data = bytearray(tensor.size)
        file.seek(tensor.begin)
        if file.readinto(data) != tensor.size:
            raise FormatError(tensor.file, "became shorter while it was read")
        return data

    def close(self):
        for file in self._opened.values():
            file.close()
        self._opened = {}
