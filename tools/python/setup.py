# SPDX-License-Identifier: MIT
"""pyproject.toml describes the package. This file looks whether all of it is here: the library and
the tables are in the wheel's folder alone, which tools/python/wheel.sh puts together."""
import os
import sys

from setuptools import setup

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = ("version.txt", "LICENSE", "nvfp4gemm/libnvfp4gemm.so.0", "nvfp4gemm/dialects.def",
         "nvfp4gemm/fields.def")

missing = [part for part in PARTS if not os.path.exists(os.path.join(HERE, part))]
if missing:
    sys.exit("tools/python is no package by itself: the library is not in it. At the root of the "
             "sources run `make setup-wheel wheel && pip install build/wheel/*.whl`")
setup()
