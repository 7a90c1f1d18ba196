#!/bin/sh
# SPDX-License-Identifier: MIT
# missing.sh build|all [CXX] [NVCC]: the packages, by Debian's names, of what is not here, on one
# line: for `make`, which wants an nvcc as well, or for all that set-up installs. A program or
# header stands for its package: what another channel installed counts as well.
what=$1 CXX=${2:-g++}
# shellcheck disable=SC2086
header() { printf '#include <%s>\n' "$1" | $CXX -std=c++17 -E -x c++ - >/dev/null 2>&1; }
missing=
need() { missing="${missing:+$missing }$1"; }
# shellcheck disable=SC2086
$CXX --version >/dev/null 2>&1 || need g++
command -v gcc >/dev/null 2>&1 || need gcc
header CLI/CLI.hpp || need libcli11-dev
header nlohmann/json.hpp || need nlohmann-json3-dev
if [ "$what" = build ]; then
  command -v "${3:-/no/nvcc}" >/dev/null 2>&1 || need nvcc
else
  header catch2/catch_all.hpp || header catch2/catch.hpp || need catch2
  # The emulator opens it by name; gcc itself needs it, so that it is rarely missing.
  # shellcheck disable=SC2086
  echo 'int main() {}' | $CXX -x c++ - -l:libzstd.so.1 -o /dev/null 2>/dev/null || need libzstd1
  command -v pkg-config >/dev/null 2>&1 || need pkg-config # as users' builds have it
fi
printf '%s\n' "$missing"
