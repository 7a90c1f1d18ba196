# SPDX-License-Identifier: MIT
"""Reads the tables that the library's C++ reads, too. A wheel has them beside this file."""
import os

_HERE = os.path.dirname(os.path.abspath(__file__))


def text_of(path: str) -> str:
    """The text of a table, whose path in the sources is given."""
    beside = os.path.join(_HERE, os.path.basename(path))
    if not os.path.exists(beside):
        beside = os.path.join(_HERE, "../../..", path)
    with open(beside, encoding="utf-8") as table:
        return table.read()
