# SPDX-License-Identifier: MIT
"""Reads host/problem/fields.def, which has a row for each field of the library's descriptors."""
from __future__ import annotations

import re
from ctypes import c_char_p, c_float, c_int32, c_int64, c_uint64, c_void_p
from typing import Any, NamedTuple

from nvfp4gemm._tables import text_of

_ROW = re.compile(r"^(\w+)_FIELD\((.*?)\)$", re.MULTILINE | re.DOTALL)
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("struct_size", "bytes"), c_uint64),
    **dict.fromkeys(("size", "batches", "ld", "stride", "scales_stride", "count"), c_int64),
    **dict.fromkeys(("input", "output", "vector", "factor", "maximum", "words", "workspace",
                     "desc"), c_void_p),
    **dict.fromkeys(("enumeration", "choice", "flag", "whole"), c_int32),
    **{f"reserved_{count}": c_int32 * count for count in range(1, 5)},
    "text": c_char_p, "number": c_float}


class Field(NamedTuple):
    kind: str
    name: str
    when: set[str]  # the conditions under which the field counts
    python: str  # the Python argument that sets the field; "_" if there is none


def _rows() -> dict[str, list[Field]]:
    rows: dict[str, list[Field]] = {}
    for struct, body in _ROW.findall(text_of("host/problem/fields.def")):
        kind, name, _, when, *more = re.split(r",\s*", body, maxsplit=7)
        python = more[2] if len(more) > 2 else "_"
        rows.setdefault(struct, []).append(Field(kind, name, set(when.split(" | ")), python))
    return rows


_ALL = _rows()


def types_of(struct: str) -> list[tuple[str, Any]]:
    """[(field, its type)] for ctypes. struct is GEMM, ADDRESS, GROUPED, QUANTIZE, FUSED or PACK."""
    return [(row.name, _TYPES[row.kind]) for row in _ALL[struct]]


def numbers(gated: bool) -> dict[str, str]:
    """{argument of a Python function: field of the GemmDesc} for fields that hold a number or a
    choice, in the struct's order. gated: only the fields of gated products; otherwise only the
    fields of all products."""
    kinds = "number", "enumeration", "choice", "flag"
    return {row.python: row.name for row in _ALL["GEMM"]
            if row.kind in kinds and row.python != "_" and ("gated" in row.when) == gated}
