#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""inputs.py pack FILE... : writes each file as a file of fuzz inputs (api.inputs and so on) keeps
it: its number of bytes in a line, the bytes, the end of a line. inputs.py unpack INPUTS FOLDER: a
file for each, which is how libFuzzer reads them."""
import os
import sys


def pack(names):
    for name in names:
        with open(name, "rb") as file:
            text = file.read()
        sys.stdout.buffer.write(b"%d\n%s\n" % (len(text), text))


def unpack(inputs, folder):
    with open(inputs, "rb") as file:
        for number, size in enumerate(iter(file.readline, b""), 1):
            text = file.read(int(size) + 1)
            if len(text) != int(size) + 1 or not text.endswith(b"\n"):
                sys.exit(f"{inputs}: input {number} is not of {int(size)} bytes")
            with open(os.path.join(folder, f"input-{number}"), "wb") as out:
                out.write(text[:-1])


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "pack":
        pack(sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == "unpack":
        unpack(*sys.argv[2:])
    else:
        sys.exit(__doc__)
