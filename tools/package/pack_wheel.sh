#!/bin/sh
# SPDX-License-Identifier: MIT
# pack_wheel.sh OUT [PLATFORM]: OUT/NAME-VERSION-py3-none-PLATFORM_MACHINE.whl of the package that
# lies in OUT/stage, which is removed; both wheels are made by it. name_wheel.py says what PLATFORM
# is.
set -eu
out=$1
cd "$(dirname "$0")/../.."
python=$(command -v "${PYTHON:-.venv/bin/python}")
"$python" -c 'import auditwheel, setuptools, wheel' 2>/dev/null ||
  { echo "$0: $python has no auditwheel, setuptools, wheel; make setup-wheel" >&2; exit 1; }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$out" "$out/stage"
plain=$(ls "$out"/*.whl)
"$python" tools/package/name_wheel.py "$plain" "${2:-}"
rm -rf "$out/stage"
