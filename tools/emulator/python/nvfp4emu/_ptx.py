# SPDX-License-Identifier: MIT
"""What PTX text says of itself: its target, and the name, parameters and sizes of its kernels."""
import re
from dataclasses import dataclass

SIZES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
# The device on which the code of a target runs, by the longest beginning that fits.
DEVICES = {"sm_100": "B200", "sm_103": "B300", "sm_107": "RUBIN", "sm_110": "THOR",
           "sm_120": "RTX5090", "sm_121": "GB10", "sm_7": "T4", "sm_80": "A100", "sm_86": "A40",
           "sm_8": "RTX4090", "sm_9": "H200"}


@dataclass(frozen=True)
class Parameter:
    kind: str  # "f32", "u64", "b8" for bytes ..
    size: int  # bytes


@dataclass(frozen=True)
class Entry:
    name: str
    parameters: tuple
    threads: tuple  # of .reqntid, or ()
    cluster: tuple  # of .reqnctapercluster, or ()


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def parameters(text):
    found = []
    for kind, width, count in re.findall(
            r"\.param\b[^,]*?\.([bsuf])(\d+)\s+(?:\.ptr[^,]*?\s)?[\w$%]+\s*(?:\[\s*(\d+)\s*\])?\s*"
            r"(?:,|$)", text):
        found.append(Parameter(kind + width, SIZES[width] * int(count or 1)))
    return tuple(found)


def numbers(directive, text):
    found = re.search(rf"\.{directive}\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", text)
    return tuple(int(n or 1) for n in found.groups()) if found else ()


def entries(text):
    """The kernels of a text."""
    found = re.finditer(r"\.entry\s+([\w$%]+)\s*(?:\(([^)]*)\))?([^{;]*)[{;]",
                        without_comments(text))
    return [Entry(m[1], parameters(m[2] or ""), numbers("reqntid", m[3]),
                  numbers("reqnctapercluster", m[3])) for m in found]


def device(text):
    """The name of a device that runs it, or None."""
    found = re.search(r"\.target\s+(\w+)", without_comments(text))
    fits = [start for start in DEVICES if found and found[1].startswith(start)]
    return DEVICES[max(fits, key=len)] if fits else None
