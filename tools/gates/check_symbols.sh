#!/bin/sh
# SPDX-License-Identifier: MIT
# check_symbols.sh LIBRARY [update]: what the library offers and what it asks for. test/golden holds
# the reviewed lists; `update` writes the first one anew, for a reviewer to read in the difference.
set -eu
library=$1
cd "$(dirname "$0")/../.."
. tools/gates/gate.sh
export LC_ALL=C

exported() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort; }
versions() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/.*@/, "", $3); print $3 }' |
  sort -u; }
imported() { nm -D --undefined-only "$1" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort; }
glibc() { readelf -VW "$1" | grep -oE 'Name: GLIBC_[0-9.]+' | sed 's/.*_//' | sort -u; }
declared() { # each declaration begins a line and may go on in the next
  tr '\n' ' ' <include/nvfp4_gemm.h | grep -o 'NVFP4_API [a-z][^;]*;' |
    sed -E 's/.*[ *](nvfp4_[a-z0-9_]+)\(.*/\1/' | sort
}
needed() { readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

if [ "${2:-}" = update ]; then exported "$library" >test/golden/symbols.txt; fi

equal "the library exports the reviewed list" \
  "$(cat test/golden/symbols.txt)" "$(exported "$library")"
equal "the header declares the same functions" "$(cat test/golden/symbols.txt)" "$(declared)"
equal "the version script names the same functions" "$(cat test/golden/symbols.txt)" \
  "$(sed -n 's/^ *\(nvfp4_[a-z0-9_]*\);/\1/p' host/api/libnvfp4gemm.map | sort)"
equal "each carries one symbol version" NVFP4GEMM_0 "$(versions "$library")"
equal "the library needs the C library alone" "" \
  "$(needed "$library" | grep -vE '^(libc|libm|libdl)\.so\.[0-9]+$|^ld-linux.*\.so\.[0-9]+$' ||
    true)"

equal "it needs no glibc newer than 2.28, that of torch's wheels" "" \
  "$(glibc "$library" | awk -F. '$1 > 2 || $2 > 28')"

# Every import is on the list with its reason: no file is opened, no program started.
equal "the library imports nothing beyond test/golden/imports.txt" "" \
  "$(imported "$library" | while read -r name; do
    grep -qE "^$name( |\$)" test/golden/imports.txt || echo "$name"
  done)"
finish
