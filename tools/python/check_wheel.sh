#!/bin/sh
# SPDX-License-Identifier: MIT
# check_wheel.sh WHEEL: it is named manylinux_2_28, and auditwheel agrees. Installed into a
# fresh environment of each CPython 3.10 to 3.14 that is here, it passes the package's tests on
# NumPy arrays with the library that it carries.
set -eu
wheel=$(realpath "$1")
cd "$(dirname "$0")/../.."
. tools/gates/gate.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHON=${PYTHON:-.venv/bin/python}
equal "its name says that it is for glibc 2.28 and later" "manylinux_2_28_$(uname -m).whl" \
  "${wheel##*-}"
check "auditwheel finds that it needs no newer system" \
  "$PYTHON" tools/package/name_wheel.py --check "$wheel"
found=
for version in 3.10 3.11 3.12 3.13 3.14; do
  python=
  for candidate in "python$version" "$HOME"/.pyenv/versions/$version.*/bin/python; do
    if "$candidate" -c '' 2>/dev/null; then python=$candidate; break; fi
  done
  [ -n "$python" ] || continue
  found="$found $version"
  check "Python $version: the wheel installs" sh -ec "
    '$python' -m venv '$work/$version'
    '$work/$version/bin/pip' install --quiet --disable-pip-version-check --require-hashes \
      --only-binary=:all: -r tools/setup/requirements.txt
    '$work/$version/bin/pip' install --quiet --disable-pip-version-check --no-deps '$wheel'"
  for test in numpy dialects version; do
    check "Python $version: test_python_$test.py passes" \
      env -u NVFP4GEMM_LIBRARY -u PYTHONPATH NVFP4_INSTALLED=1 \
      "$work/$version/bin/python" "tools/python/test/test_python_$test.py"
  done
done
check "there is a Python to try:${found:- none}" [ -n "$found" ]
finish
