#!/bin/sh
# SPDX-License-Identifier: MIT
# stage.sh BUILD: the folder BUILD/wheel/stage, all of which the wheel is made of.
set -eu
build=$1
cd "$(dirname "$0")/../.."
stage=$build/wheel/stage
rm -rf "$build/wheel"
mkdir -p "$stage"
cp -r tools/python/pyproject.toml tools/python/setup.py tools/python/README.md \
  tools/python/nvfp4gemm LICENSE "$stage/"
cp tools/nvfp4/dialects.def host/problem/fields.def "$stage/nvfp4gemm/"
cp "$build/libnvfp4gemm.so" "$stage/nvfp4gemm/libnvfp4gemm.so.0"
find "$stage" -name __pycache__ -prune -exec rm -rf {} +
tools/package/version.sh >"$stage/version.txt"
