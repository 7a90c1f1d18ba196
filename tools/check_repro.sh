#!/bin/sh
# SPDX-License-Identifier: MIT
# check_repro.sh BUILD: builds what is shipped twice from copies of the sources, under different
# paths, umask, locale, time zone and order of work, and compares the bytes.
set -eu
build=$1
cd "$(dirname "$0")/.."
. tools/gate.sh
MAKE=${MAKE:-make} NVCC=${NVCC:-$(command -v nvcc)} CC=${CC:-gcc} CXX=${CXX:-g++}
work=$(pwd)/$build/repro
rm -rf "$work"
mkdir -p "$work/a" "$work/b/a longer path/than the other"
first=$work/a second="$work/b/a longer path/than the other"

# make's own variables would carry the options of the make that runs this.
build_in() { # DIRECTORY UMASK LANGUAGE ZONE JOBS
  for entry in *; do
    if [ "$entry" != "${build%%/*}" ]; then cp -R "$entry" "$1"; fi
  done
  (
    umask "$2"
    cd "$1"
    find . -type f -exec touch -d "2001-01-0$5 00:00:0$5" {} +
    env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS LC_ALL="$3" TZ="$4" SOURCE_DATE_EPOCH="$5" HOME="$1" \
      "$MAKE" -s -j"$5" B=build NVCC="$NVCC" CC="$CC" CXX="$CXX" library static kernels
  )
}
check "the first copy builds" build_in "$first" 022 C UTC 2
check "the second copy builds" build_in "$second" 077 C.UTF-8 Asia/Kathmandu 1
if [ $failed -gt 0 ]; then finish; fi

for file in libnvfp4gemm.so libnvfp4gemm.a kernel/gemm_sm100.ptx $(cd "$first/build" &&
  ls kernel/*.cubin kernel/*.fatbin); do
  check "$file is the same to the byte" cmp "$first/build/$file" "$second/build/$file"
done
equal "no path of the build is in the library" "" \
  "$(grep -lF "$work" "$first/build/libnvfp4gemm.so" "$first/build/libnvfp4gemm.a" || true)"
finish
