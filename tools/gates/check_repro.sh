#!/bin/sh
# SPDX-License-Identifier: MIT
# check_repro.sh BUILD KERNELS: builds what is shipped once more, from a copy of the sources under
# another path, umask, locale, time zone, time and order of work, and compares the bytes with
# BUILD's. KERNELS says as to make whose images they are. Without NVFP4_LONG the copy takes BUILD's
# images, which say more of nvcc and ptxas than of this source and take most of the time.
set -eu
build=$1 kernels=$2
cd "$(dirname "$0")/../.."
. tools/gates/gate.sh
case $kernels in
  nvcc) images=kernel ;;
  12.9) images=kernel-12.9 ;;
  *) skip "built again, the same bytes" "the images are prebuilt"; finish; exit ;;
esac
here=$(pwd)
python=$(command -v "${PYTHON:-python3}")  # for NVRTC
case $python in /*) ;; *) python=$here/$python ;; esac
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
    if [ -z "${NVFP4_LONG:-}" ]; then
      mkdir build
      cp -Rp "$here/$build/$images" "build/$images"
    fi
    if [ -d "$here/.tools/cuda-12.9" ]; then
      mkdir .tools
      ln -s "$here/.tools/cuda-12.9" .tools/cuda-12.9
    fi
    env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS LC_ALL=C.UTF-8 TZ=Asia/Kathmandu SOURCE_DATE_EPOCH=1 \
      HOME="$second" "$MAKE" -s -j1 B=build KERNELS="$kernels" \
      PACK="$(cat "$here/$build/$images/pack.txt")" PYTHON="$python" NVCC="$NVCC" \
      CC="$CC" CXX="$CXX" library static kernels
  )
}
check "a copy builds" build_again
if [ $failed -gt 0 ]; then finish; fi

made="libnvfp4gemm.so libnvfp4gemm.a"
if [ -n "${NVFP4_LONG:-}" ]; then
  made="$made $images/gemm_sm100.ptx $(cd "$build" && ls "$images"/*.cubin "$images"/*.fatbin)"
fi
for file in $made; do
  check "$file is the same to the byte" cmp "$build/$file" "$second/build/$file"
done
equal "no path of the build is in the library" "" \
  "$(grep -lF "$work" "$second/build/libnvfp4gemm.so" "$second/build/libnvfp4gemm.a" || true)"
finish
