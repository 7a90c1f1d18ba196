#!/bin/sh
# SPDX-License-Identifier: MIT
# check_wheel.sh BUILD: the wheel nvfp4emu, installed with pytest alone into a fresh environment of
# each CPython 3.10 to 3.14 that is here, runs a test file as a user writes it.
set -eu
build=$1
cd "$(dirname "$0")/../../.."
. tools/gates/gate.sh
wheel=$(realpath "$(ls "$build"/emulator-wheel/*.whl)")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp tools/emulator/test/wheel_tests.py "$work/test_wheel.py"
found=
for version in 3.10 3.11 3.12 3.13 3.14; do
  python=
  for candidate in "python$version" "$HOME"/.pyenv/versions/$version.*/bin/python; do
    if "$candidate" -c '' 2>/dev/null; then python=$candidate; break; fi
  done
  [ -n "$python" ] || continue
  found="$found $version"
  check "Python $version: the wheel and pytest install" sh -ec "
    '$python' -m venv '$work/$version'
    '$work/$version/bin/pip' install --quiet --disable-pip-version-check '$wheel' pytest"
  check "Python $version: a test file passes" env -u NVFP4EMU_LIBRARY -u PYTHONPATH -u EMU_DEVICE \
    PATH="$work/$version/bin:$PATH" "$work/$version/bin/python" -m pytest -q "$work/test_wheel.py"
done
check "there is a Python to try:${found:- none}" [ -n "$found" ]
finish
