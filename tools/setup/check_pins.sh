#!/bin/sh
# SPDX-License-Identifier: MIT
# check_pins.sh: the pinned wheels as pip would choose and check them for every Python and processor
# that set-up promises. It downloads them, 1 GB in all; nothing is installed.
set -eu
cd "$(dirname "$0")/../.."
. tools/gates/gate.sh
PYTHON=${PYTHON:-.venv/bin/python}
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT

# pip reads the markers of a requirements file as those of the Python that runs it, not of the one
# it is asked about, so the lines for that one are picked here.
lines_for() { # PYTHON-VERSION FILE
  case $1 in
    3.10) drop="python_version >= '3.11'" ;;
    *) drop="python_version < '3.11'" ;;
  esac
  awk -v drop="$drop" '
    /^[^ #]/ { kept = index($0, drop) == 0 }
    kept { sub(/ ;.*python_version[^\\]*/, " "); print }' "$2"
}

for machine in x86_64 aarch64; do
  platforms="--platform manylinux_2_28_$machine --platform manylinux_2_27_$machine
    --platform manylinux_2_17_$machine --platform manylinux2014_$machine"
  for version in 3.10 3.11 3.12 3.13 3.14; do
    for list in requirements plot wheel; do
      lines_for $version tools/setup/$list.txt >"$wheels/$list.txt"
    done
    # shellcheck disable=SC2086
    check "Python $version on $machine: every pin has its wheel, by hash" \
      "$PYTHON" -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps \
      --only-binary=:all: --implementation cp --python-version $version $platforms \
      --dest "$wheels/$version-$machine" -r "$wheels/requirements.txt" -r "$wheels/plot.txt" \
      -r "$wheels/wheel.txt"
    rm -rf "$wheels/$version-$machine"
  done
done
finish
