#!/bin/sh
# SPDX-License-Identifier: MIT
# wheel.sh BUILD: BUILD/wheel/nvfp4gemm-VERSION-py3-none-PLATFORM.whl, the Python package with the
# library of BUILD, for every system from the glibc on that torch's wheels need.
set -eu
cd "$(dirname "$0")/../.."
tools/python/stage.sh "$1"
exec tools/package/pack_wheel.sh "$1/wheel" manylinux_2_28
