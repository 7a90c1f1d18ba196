#!/bin/sh
# SPDX-License-Identifier: MIT
# pack_wheel.sh OUT: OUT/NAME-VERSION-py3-none-PLATFORM.whl of the package that lies in OUT/stage,
# which is removed; both wheels are made by it. The platform is the oldest that auditwheel finds the
# library inside to run on.
set -eu
out=$1
cd "$(dirname "$0")/../.."
python=$(command -v "${PYTHON:-.venv/bin/python}")
"$python" -c 'import auditwheel, setuptools, wheel' 2>/dev/null ||
  { echo "$0: $python has no auditwheel, setuptools, wheel; make setup-wheel" >&2; exit 1; }
number() { sed -n "s/^#define NVFP4_VERSION_$1 //p" include/nvfp4_gemm.h; }
cp LICENSE "$out/stage/"
find "$out/stage" -name __pycache__ -prune -exec rm -rf {} +
echo "$(number MAJOR).$(number MINOR).$(number PATCH)" >"$out/stage/version.txt"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$out" "$out/stage"
plain=$(ls "$out"/*.whl)
# A library inside makes it one for this machine; of Python it needs none in particular.
machine=$("$python" -m wheel tags --remove --platform-tag "linux_$(uname -m)" "$plain")
said=$("$python" -m auditwheel show "$out/$machine")
platform=$(printf '%s\n' "$said" | tr '\n' ' ' |
  sed -n 's/.*following platform tag: *"\([^"]*\)".*/\1/p')
[ -n "$platform" ] || { printf '%s\n' "$said" >&2; exit 1; }
wheel=$("$python" -m wheel tags --remove --platform-tag "$platform" "$out/$machine")
rm -rf "$out/stage"
echo "$out/$wheel, $(stat -c %s "$out/$wheel") bytes"
