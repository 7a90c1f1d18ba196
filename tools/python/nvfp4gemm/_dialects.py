# SPDX-License-Identifier: MIT
"""Reads tools/nvfp4/dialects.def, the table of the ways in which other programs store NVFP4
weights. The command line reads it, too."""
from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from nvfp4gemm._tables import text_of

_ROW = re.compile(r"NVFP4_(\w+)\((.*)\)$")
_FIELD = re.compile(r'"[^"]*"|[^",\s]+')


class Dialect(NamedTuple):
    name: str
    title: str
    file: str
    codes: str
    scales: str
    tensor_scale: str
    direction: str
    nibbles: str
    layout: str


def _rows() -> dict[str, list[list[Any]]]:
    rows: dict[str, list[list[Any]]] = {}
    for line in text_of("tools/nvfp4/dialects.def").splitlines():
        row = _ROW.match(line)
        if row:
            fields = [ast.literal_eval(field) if field[0] in '"0123456789' else field
                      for field in _FIELD.findall(row[2])]
            rows.setdefault(row[1], []).append(fields)
    return rows


def _beside(rows: list[list[Any]]) -> dict[str, dict[str, str]]:
    table: dict[str, dict[str, str]] = {}
    for dialect, suffix, use in rows:
        table.setdefault(dialect, {})[suffix] = use
    return table


_TABLE = _rows()
DIALECTS = {row[0]: Dialect(*row) for row in _TABLE["DIALECT"]}
BESIDE = _beside(_TABLE["BESIDE"])  # {dialect: {suffix: use}}
FUSED = {row[0]: tuple(row[1:]) for row in _TABLE["FUSED"]}  # {layer: its parts}
SHAPES = _TABLE["SHAPE"]
STACKED = {row[0] for row in _TABLE["STACKED"]}
DECLARED = _TABLE["DECLARED"]
FOLDER = _TABLE["FOLDER"]
TRANSFORM = _TABLE["TRANSFORM"]
PACKED = dict(_TABLE["PACKED"])  # {type: bytes}
TOGETHER = [row[0] for row in _TABLE["TOGETHER"]]
NOT_READ = _TABLE["NOT_READ"]
LIMIT = dict(_TABLE["LIMIT"])
GGUF_TYPES = {number: (name, elements, size)
              for number, name, elements, size in _TABLE["GGUF_TYPE"]}


def layer_pattern(name: str) -> re.Pattern[str]:
    """A regular expression for the name of a layer, in which # stands for a number. The name may
    have a prefix."""
    return re.compile(r"(?:.*\.)?" + re.escape(name).replace(r"\#", r"\d+"))
