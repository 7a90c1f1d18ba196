# SPDX-License-Identifier: MIT
"""The command nvfp4emu of the wheel: the script that lies beside the library."""
import os
import sys

from ._driver import folder
from ._errors import Error


def main():
    try:
        where = folder()
    except Error as missing:
        sys.exit(f"nvfp4emu: {missing}")
    script = os.path.join(where, "nvfp4emu")
    os.environ.setdefault("NVFP4EMU_LIBRARY", where)
    os.execv("/bin/sh", ["sh", script, *sys.argv[1:]])
