# SPDX-License-Identifier: MIT
"""What a checkpoint's folder says of its files: which of them has a tensor (an index), and which
layers have a transform before or after their product (a configuration)."""
from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from nvfp4gemm._dialects import FOLDER, TRANSFORM
from nvfp4gemm._safetensors import FormatError, parse_json

_MAP = "weight_map"
_KEYS = {word for what, word in TRANSFORM if what == "key"}
_FOLDED = {word for what, word in TRANSFORM if what == "folded"}
# A pattern of which it is certain what it matches, however it is read.
_CERTAIN = re.compile(r"\^?(?:[\w-]|\\\.|\.\*?)*\$?", re.ASCII)


class Lost(NamedTuple):
    """A tensor that an index names and that is not there: the index, what it is, what it is not."""

    index: str  # type: ignore[assignment]  # a tuple has a method of that name
    what: str
    expected: str


class Index:
    """The indexes of a folder together; none of None.

    paths    those that are indexes
    files    {tensor: (index, name of its file)}
    twice    {tensor: the files that two indexes name for it}
    outside  {tensor: Lost}, where the file's name is none of this folder
    broken   [FormatError]
    """

    def __init__(self, folder: str | None) -> None:
        self.files: dict[str, tuple[str, str]] = {}
        self.twice: dict[str, list[str]] = {}
        self.outside: dict[str, Lost] = {}
        self.broken: list[FormatError] = []
        self.paths: list[str] = []
        for path in _named(folder, "index"):
            try:
                self._add(path, _read(path))
            except FormatError as error:
                self.broken.append(error)

    def _add(self, path: str, said: Any) -> None:
        files = said.get(_MAP) if isinstance(said, dict) else None
        if not isinstance(files, dict) or not all(isinstance(f, str) for f in files.values()):
            raise FormatError(path, f"is no index: it has no {_MAP} of names")
        self.paths.append(path)
        for tensor, file in files.items():
            if not _plain(file):
                self.outside[tensor] = Lost(path, f"in {file!r}", "a file of this folder")
            elif self.files.setdefault(tensor, (path, file))[1] != file:
                self.twice[tensor] = [self.files[tensor][1], file]
        for tensor, lost in self.outside.items():
            if lost.index == path:
                raise FormatError(path, f"names {files[tensor]!r} for {tensor}; expected a file of "
                                        "its folder")

    def names(self) -> set[str]:
        """The names of the files."""
        return {file for _, file in self.files.values()}


def _plain(file: str) -> bool:
    return file not in ("", ".", "..") and not set(file) & set("/\\\0")


def _named(folder: str | None, what: str) -> list[str]:
    ends = tuple(name for kind, name in FOLDER if kind == what)
    fits = str.endswith if what == "index" else lambda name, known: name in known
    if folder is None or not os.path.isdir(folder):
        return []
    names = sorted(os.listdir(folder))
    return [os.path.join(folder, name) for name in names
            if fits(name, ends) and os.path.isfile(os.path.join(folder, name))]


def _read(path: str) -> Any:
    """JSON, in which Python's words for infinity may stand."""
    with open(path, "rb") as file:
        text = file.read()
    try:
        return parse_json(text.decode("utf-8-sig"), parse_constant=lambda _: None)
    except ValueError as error:
        raise FormatError(path, f"is no JSON: {error}") from None


class Transform(NamedTuple):
    """It concerns the layers that targets name and ignore does not; without targets, all."""

    file: str
    key: str
    targets: tuple[str, ...]
    ignore: tuple[str, ...]

    def concerns(self, layer: str) -> bool:
        named = not self.targets or any(_matches(layer, target) is not False
                                        for target in self.targets)
        return named and not any(_matches(layer, name) for name in self.ignore)


def transforms(folder: str) -> tuple[list[Transform], list[FormatError]]:
    """([Transform], [FormatError]) of the configurations of a folder."""
    found: list[Transform] = []
    broken = []
    for path in _named(folder, "config"):
        try:
            _find(path, _read(path), found)
        except FormatError as error:
            broken.append(error)
    return found, broken


def _find(path: str, said: Any, found: list[Transform]) -> None:
    for key, value in said.items() if isinstance(said, dict) else ():
        if key in _KEYS:
            found += _of_key(path, key, value)
        else:
            _find(path, value, found)
    for value in said if isinstance(said, list) else ():
        _find(path, value, found)


def _of_key(path: str, key: str, value: Any) -> list[Transform]:
    if not value:
        return []
    applied = _applied(value)
    if applied is None:
        return [Transform(path, key, (), ())]
    return [Transform(path, key, tuple(_strings(one.get("targets"))),
                      tuple(_strings(one.get("ignore"))))
            for one in applied if one.get("location") not in _FOLDED]


def _applied(value: Any) -> list[dict[str, Any]] | None:
    """The entries of all lists "apply" of its groups; None where it has another form."""
    entries = []
    for groups in value.values() if isinstance(value, dict) else (None,):
        for group in groups.values() if isinstance(groups, dict) else (None,):
            apply = group.get("apply") if isinstance(group, dict) else None
            if not isinstance(apply, list) or not all(isinstance(one, dict) for one in apply):
                return None
            entries += apply
    return entries


def _strings(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [
        one for one in value or () if isinstance(one, str)] if isinstance(value, list) else []


def _matches(layer: str, target: str) -> bool | None:
    """Whether a target is that layer: None where the name alone does not say, as of a class, or of
    a name that may begin otherwise in the model than in its files."""
    if not target.startswith("re:"):
        last = layer.rpartition(".")[2] == target.rpartition(".")[2] or "." not in target
        return True if target == layer else None if last else False
    pattern = target[3:]
    if not _CERTAIN.fullmatch(pattern):
        return None
    return True if _fits(pattern, layer) else False if pattern.startswith(".*") else None


def _fits(pattern: str, layer: str) -> bool:
    """re.match(), part by part, since that of many stars takes for ever."""
    first, *parts = (part.replace("$", r"\Z") for part in pattern.split(".*"))
    found = re.compile(first, re.DOTALL).match(layer)
    for part in parts:
        found = found and re.compile(part, re.DOTALL).search(layer, found.end())
    return found is not None
