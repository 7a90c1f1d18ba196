#!/bin/sh
# SPDX-License-Identifier: MIT
# check_repro.sh BUILD: builds what is shipped once more, from a copy of the sources under another
# path, umask, locale, time zone, time and order of work, and compares the bytes with BUILD's.
set -eu
build=$1
cd "$(dirname "$0")/.."
. tools/gate.sh
MAKE=${MAKE:-make} NVCC=${NVCC:-$(command -v nvcc)} CC=${CC:-gcc} CXX=${CXX:-g++}
work=$(pwd)/$build/repro
rm -rf "$work"
second="$work/a longer path/than the other"
mkdir -p "$second"

# make's own variables would carry the options of the make that runs this.
build_again() {
  for entry in *; do
    if [ "$entry" != "${build%%/*}" ]; then cp -R "$entry" "$second"; fi
  done
  (
    umask 077
    cd "$second"
    find . -type f -exec touch -d "2001-01-01 00:00:01" {} +
    env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS LC_ALL=C.UTF-8 TZ=Asia/Kathmandu SOURCE_DATE_EPOCH=1 \
      HOME="$second" "$MAKE" -s -j1 B=build NVCC="$NVCC" CC="$CC" CXX="$CXX" library static kernels
  )
}
check "a copy builds" build_again
if [ $failed -gt 0 ]; then finish; fi

for file in libnvfp4gemm.so libnvfp4gemm.a kernel/gemm_sm100.ptx $(cd "$build" &&
  ls kernel/*.cubin kernel/*.fatbin); do
  check "$file is the same to the byte" cmp "$build/$file" "$second/build/$file"
done
equal "no path of the build is in the library" "" \
  "$(grep -lF "$work" "$second/build/libnvfp4gemm.so" "$second/build/libnvfp4gemm.a" || true)"
finish
