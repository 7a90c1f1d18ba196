#!/bin/sh
# SPDX-License-Identifier: MIT
# check_abi.sh BUILD [update]: the header in four dialects by each compiler that is here, and the
# binary interface twice. test/golden/abi.txt is what the header says, constants included; every
# machine compares it, and `update` writes it anew, for a reviewer to read in the difference: an
# offset or a value that changes breaks programs that are already built. Where abidiff is installed,
# it says whether the compiled library has the header's interface.
set -eu
build=$1
action=${2:-compare}
cd "$(dirname "$0")/../.."
. tools/gates/gate.sh
CC=${CC:-gcc} PYTHON=${PYTHON:-.venv/bin/python}
work=$build/abi
mkdir -p "$work"
strict="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -Iinclude -fsyntax-only"

# Alone, twice, and used: the initialiser is a macro, which only a use compiles.
cat >"$work/header.c" <<'C'
#include <nvfp4_gemm.h>
#include <nvfp4_gemm.h>
nvfp4_status use(void);
nvfp4_status use(void) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  return nvfp4_gemm_supported(&g, 100);
}
C

# -Wmissing-field-initializers is in -Wextra, and {.struct_size = n} must pass it.
dialects() { # COMPILER LANGUAGE STANDARD...
  compiler=$1 language=$2
  shift 2
  if ! command -v "$compiler" >/dev/null; then
    skip "the header by $compiler" "it is not here"
    return
  fi
  for standard; do
    # shellcheck disable=SC2086
    check "the header as $standard by $compiler" \
      "$compiler" -x "$language" -std="$standard" $strict "$work/header.c"
  done
}
dialects gcc c c99 c11
dialects clang c c99 c11
dialects g++ c++ c++11 c++20
dialects clang++ c++ c++11 c++20

"$PYTHON" tools/gates/abi.py include/nvfp4_gemm.h >"$work/abi.c"
# shellcheck disable=SC2086 # CC may be two words, "ccache gcc"
check "the program that prints the interface builds" \
  $CC -std=c11 -Iinclude -o "$work/abi" "$work/abi.c"
check "the fields it knows fill the struct without a hole" "$work/abi"
"$work/abi" >"$work/abi.txt" || true
if [ "$action" = update ]; then cp "$work/abi.txt" test/golden/abi.txt; fi
check "the interface is the reviewed one" diff -u test/golden/abi.txt "$work/abi.txt"

# A field in the middle moves the others: the comparison must see it.
sed 's/^  int64_t m, n, k, l;/  int64_t m, n, k, l, planted;/' include/nvfp4_gemm.h \
  >"$work/nvfp4_gemm.h"
"$PYTHON" tools/gates/abi.py "$work/nvfp4_gemm.h" >"$work/planted.c"
# shellcheck disable=SC2086
check "a planted field compiles" $CC -std=c11 -I"$work" -o "$work/planted" "$work/planted.c"
if "$work/planted" | diff -q test/golden/abi.txt - >/dev/null; then
  fail "a planted field is not seen"
else
  pass "a planted field is seen"
fi

# Types that are not in include/ do not count: what a plan holds may change.
library=$build/abi/libnvfp4gemm.so
says() { # NAME INCLUDE: a library of that header's interface
  # shellcheck disable=SC2086
  $CC -std=c11 -g -fPIC -shared "-I$2" -o "$work/$1.so" "$work/library.c" \
    -Wl,--version-script=host/api/libnvfp4gemm.map -Wl,-soname,libnvfp4gemm.so.0
}
compare() {
  abidiff --harmless --headers-dir1 "$2" --headers-dir2 include --drop-private-types \
    "$work/$1.so" "$library"
}
if ! command -v abidiff >/dev/null; then
  skip "the compiled library against the header" "there is no abidiff here (package abigail-tools)"
else
  "$PYTHON" tools/gates/abi.py --library include/nvfp4_gemm.h >"$work/library.c"
  says header include
  check "abidiff finds the compiled library to be the header's" compare header include
  # The library must seem to have changed where the header did.
  sed 's/\bbeta\b/planted/' include/nvfp4_gemm.h >"$work/nvfp4_gemm.h"
  says planted "$work"
  if compare planted "$work" >"$work/planted.txt"; then
    fail "abidiff does not see a renamed field"
  else
    check "abidiff sees a renamed field" grep -q "planted" "$work/planted.txt"
  fi
fi
finish
