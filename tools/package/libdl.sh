#!/bin/sh
# SPDX-License-Identifier: MIT
# libdl.sh OUT: a library to link in place of -ldl, for the compiler CC. With it the library asks
# for dlopen, dlsym and dlerror under the versions that every glibc has, as on systems before glibc
# 2.34, which moved them from libdl into libc and gave them a new one. Nothing of OUT is in what is
# linked: at run time the loader opens glibc's own libdl.so.2, which all of them have. With another
# C library OUT is -ldl.
set -eu
out=$1
CC=${CC:-gcc}
# The version of the first glibc for each processor.
# shellcheck disable=SC2086
case $(echo '#include <features.h>
__GLIBC__' | $CC -E -P -x c - | tail -n1) in
  2) machine=$($CC -dumpmachine) ;;
  *) machine=another ;;
esac
case $machine in
  x86_64-*) version=GLIBC_2.2.5 ;;
  aarch64-*) version=GLIBC_2.17 ;;
  *) echo 'INPUT(-ldl)' >"$out"; exit 0 ;;
esac
echo "$version { global: dlopen; dlsym; dlerror; local: *; };" >"$out.map"
echo 'void dlopen(void) {} void dlsym(void) {} void dlerror(void) {}' |
  $CC -shared -nostdlib -fno-builtin -w -x c - -o "$out" -Wl,-soname,libdl.so.2 \
    -Wl,--version-script="$out.map"
