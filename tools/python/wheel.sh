#!/bin/sh
# SPDX-License-Identifier: MIT
# wheel.sh BUILD: BUILD/wheel/nvfp4gemm-VERSION-py3-none-PLATFORM.whl, the Python package with the
# library.
set -eu
build=$1
cd "$(dirname "$0")/../.."
out=$build/wheel
rm -rf "$out"
mkdir -p "$out/stage"
cp -r tools/python/pyproject.toml tools/python/setup.py tools/python/README.md \
  tools/python/nvfp4gemm "$out/stage/"
cp tools/nvfp4/dialects.def "$out/stage/nvfp4gemm/"
cp "$build/libnvfp4gemm.so" "$out/stage/nvfp4gemm/libnvfp4gemm.so.0"
exec tools/package/pack_wheel.sh "$out"
