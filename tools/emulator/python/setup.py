# SPDX-License-Identifier: MIT
"""pyproject.toml describes the package. This file looks whether all of it is here: the emulator is
in the wheel's folder alone, which wheel.sh puts together."""
import os
import sys

from setuptools import setup

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = ("version.txt", "LICENSE", "nvfp4emu/emulator/libcuda.so.1")

missing = [part for part in PARTS if not os.path.exists(os.path.join(HERE, part))]
if missing:
    sys.exit("tools/emulator/python is no package by itself: the emulator is not in it. At the "
             "root of the sources run `make setup-wheel emulator-wheel && pip install "
             "build/emulator-wheel/*.whl`")
setup()
