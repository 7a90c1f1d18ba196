#!/bin/sh
# SPDX-License-Identifier: MIT
# wheel.sh BUILD: BUILD/wheel/nvfp4gemm-VERSION-py3-none-PLATFORM.whl, the Python package with the
# library. The platform is the oldest that auditwheel finds the library to run on.
set -eu
build=$1
cd "$(dirname "$0")/../.."
python=$(command -v "${PYTHON:-.venv/bin/python}")
"$python" -c 'import auditwheel, setuptools, wheel' 2>/dev/null ||
  { echo "wheel.sh: $python has no auditwheel, setuptools, wheel; make setup-wheel" >&2; exit 1; }
number() { sed -n "s/^#define NVFP4_VERSION_$1 //p" include/nvfp4_gemm.h; }
out=$build/wheel
stage=$out/stage
rm -rf "$out"
mkdir -p "$stage"
cp -r tools/python/pyproject.toml tools/python/README.md tools/python/nvfp4gemm LICENSE "$stage/"
rm -rf "$stage/nvfp4gemm/__pycache__"
cp tools/nvfp4/dialects.def "$stage/nvfp4gemm/"
cp "$build/libnvfp4gemm.so" "$stage/nvfp4gemm/libnvfp4gemm.so.0"
echo "$(number MAJOR).$(number MINOR).$(number PATCH)" >"$stage/version.txt"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$out" "$stage"
plain=$(ls "$out"/*.whl)
# A library inside makes it one for this machine; of Python it needs none in particular.
machine=$("$python" -m wheel tags --remove --platform-tag "linux_$(uname -m)" "$plain")
said=$("$python" -m auditwheel show "$out/$machine")
platform=$(printf '%s\n' "$said" | tr '\n' ' ' |
  sed -n 's/.*following platform tag: *"\([^"]*\)".*/\1/p')
[ -n "$platform" ] || { printf '%s\n' "$said" >&2; exit 1; }
wheel=$("$python" -m wheel tags --remove --platform-tag "$platform" "$out/$machine")
rm -rf "$stage"
echo "$out/$wheel, $(stat -c %s "$out/$wheel") bytes"
