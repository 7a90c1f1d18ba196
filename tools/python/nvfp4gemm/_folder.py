# SPDX-License-Identifier: MIT
"""Reads what a checkpoint's folder says about its files: which file has a tensor (an index), and
which layers have a transform before or after their product (a configuration)."""
from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from nvfp4gemm._dialects import FOLDER, TRANSFORM
from nvfp4gemm._safetensors import FormatError, parse_json

_MAP = "weight_map"
_KEYS = {word for what, word in TRANSFORM if what == "key"}
_FOLDED = {word for what, word in TRANSFORM if what == "folded"}
# Patterns that mean the same in every dialect of regular expressions.
_CERTAIN = re.compile(r"\^?(?:[\w-]|\\\.|\.\*?)*\$?", re.ASCII)


class Lost(NamedTuple):
    """A missing tensor that an index names: the path of the index, what was found, what was
    expected."""

    index: str  # type: ignore[assignment]  # a tuple has a method of that name
    what: str
    expected: str


class Index:
    """The indexes of a folder, merged; empty if the folder is None.

    paths    the paths of the indexes
    files    {tensor: (path of its index, name of its file)}
    twice    {tensor: the files that two indexes name for it}
    outside  {tensor: Lost} if the name of the tensor's file leads out of the folder
    broken   a FormatError for each index that is invalid
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
        """The names of all files that the indexes name."""
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
    """Parses the JSON in a file. Infinity and NaN are accepted, since Python writes them."""
    with open(path, "rb") as file:
        text = file.read()
    try:
        return parse_json(text.decode("utf-8-sig"), parse_constant=lambda _: None)
    except ValueError as error:
        raise FormatError(path, f"is no JSON: {error}") from None


class Transform(NamedTuple):
    """A transform. It applies to the layers that match `targets` and do not match `ignore`. Without
    targets it applies to all layers."""

    file: str
    key: str
    targets: tuple[str, ...]
    ignore: tuple[str, ...]

    def concerns(self, layer: str) -> bool:
        named = not self.targets or any(_matches(layer, target) is not False
                                        for target in self.targets)
        return named and not any(_matches(layer, name) for name in self.ignore)


def transforms(folder: str) -> tuple[list[Transform], list[FormatError]]:
    """Reads the configuration files of a folder. Returns ([Transform], [FormatError])."""
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
    """The entries of the lists under the key "apply" in all groups of a transform. None if the
    value has another form."""
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
    """Whether a target matches the layer. None if the names cannot tell: the target may be a class,
    or the model's names may have another prefix than the files'."""
    if not target.startswith("re:"):
        last = layer.rpartition(".")[2] == target.rpartition(".")[2] or "." not in target
        return True if target == layer else None if last else False
    pattern = target[3:]
    if not _CERTAIN.fullmatch(pattern):
        return None
    return True if _fits(pattern, layer) else False if pattern.startswith(".*") else None


def _fits(pattern: str, layer: str) -> bool:
    """Like re.match(), but part by part, since re.match() takes very long for a pattern with many
    '.*'."""
    first, *parts = (part.replace("$", r"\Z") for part in pattern.split(".*"))
    found = re.compile(first, re.DOTALL).match(layer)
    for part in parts:
        found = found and re.compile(part, re.DOTALL).search(layer, found.end())
    return found is not None
