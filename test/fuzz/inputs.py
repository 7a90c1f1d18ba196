#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""inputs.py pack FILE... : prints each file as a line of hexadecimal digits, which is how a file of
fuzz inputs (api.inputs and so on) keeps it. inputs.py unpack INPUTS FOLDER: a file for each line,
which is how libFuzzer reads them."""
import os
import sys


def pack(names):
    for name in names:
        with open(name, "rb") as file:
            print(file.read().hex())


def unpack(inputs, folder):
    with open(inputs, encoding="ascii") as file:
        for number, line in enumerate(file, 1):
            with open(os.path.join(folder, f"line-{number}"), "wb") as out:
                out.write(bytes.fromhex(line))


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "pack":
        pack(sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == "unpack":
        unpack(*sys.argv[2:])
    else:
        sys.exit(__doc__)
