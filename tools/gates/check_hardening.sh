#!/bin/sh
# SPDX-License-Identifier: MIT
# check_hardening.sh LIBRARY: how the library is laid out in memory. check_hardening.sh self-test
# LIBRARY OBJECT...: links the objects in ways that must not pass, and sees each one refused.
set -eu
cd "$(dirname "$0")/../.."
. tools/gates/gate.sh
max_bytes=10600000

has() { if readelf "$1" "$library" 2>/dev/null | grep -qE "$2"; then echo yes; else echo no; fi; }
# readelf prints "R E" for r-x, so the flags are whatever stands between the sizes and the
# alignment.
load_flags() {
  readelf -lW "$library" |
    sed -nE "s/^ *$1( +0x[0-9a-f]+){5} ([RWE ]{3}) 0x[0-9a-f]+ *\$/\2/p" |
    tr -d ' ' | sort -u | xargs
}

inspect() {
  library=$1
  equal "relocated data becomes read-only (RELRO)" yes "$(has -lW '^ *GNU_RELRO ')"
  equal "all symbols are bound when it is loaded (BIND_NOW)" yes "$(has -dW 'BIND_NOW|FLAGS.* NOW')"
  equal "the stack is not executable (NX)" RW "$(load_flags GNU_STACK)"
  equal "segments are R, RE and RW, none both writable and executable" \
    "R RE RW" "$(load_flags LOAD)"
  equal "no RPATH or RUNPATH" no "$(has -dW 'RPATH|RUNPATH')"
  equal "no text relocations" no "$(has -dW 'TEXTREL')"
  equal "a build id" yes "$(has -nW 'Build ID: [0-9a-f]{16,}')"
  equal "stack protector in the code" yes "$(has -sW ' __stack_chk_fail')"
  bytes=$(stat -c %s "$library")
  if [ "$bytes" -lt $max_bytes ]; then
    pass "$bytes bytes, less than $max_bytes"
  else
    fail "$bytes bytes, $max_bytes or more"
  fi
}

# refuses SENTENCE-PART FLAG...: a library linked with the flags fails the check of that name.
# An argument that is assembly is assembled and linked as well.
refuses() {
  part=$1
  shift
  # shellcheck disable=SC2086 # $cc may be two words, "ccache gcc"
  case $1 in
    .*) printf '%s\n' "$1" | $cc -c -x assembler - -o "$bad.o"; shift; set -- "$@" "$bad.o" ;;
  esac
  # shellcheck disable=SC2086
  $cc -shared -o "$bad" "$@" $objects -lm -ldl 2>/dev/null || { fail "links with $*"; return; }
  if (inspect "$bad") | grep -q "^FAIL.*$part"; then
    pass "refused: $*"
  else
    fail "a library linked with '$*' passes"
  fi
}

if [ "$1" = self-test ]; then
  shift
  bad=$1.bad cc=${CC:-gcc}
  shift
  objects=$*
  refuses RELRO -Wl,-z,norelro
  refuses BIND_NOW -Wl,-z,lazy
  refuses NX -Wl,-z,execstack
  refuses "both writable" '.section .both, "awx"; .byte 0' -Wl,--no-warn-rwx-segments
  refuses "text relocations" '.text; .quad memset' -Wl,-z,notext
  refuses RPATH -Wl,-rpath,/opt
  refuses "build id" -Wl,--build-id=none
  rm -f "$bad" "$bad.o"
else
  inspect "$1"
fi
finish
