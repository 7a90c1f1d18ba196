#!/bin/sh
# SPDX-License-Identifier: MIT
# check_aarch64.sh BUILD: library, emulator and host tests built for aarch64 (Grace hosts) under
# BUILD/aarch64 by a cross compiler, and run by qemu. The kernels are the images of BUILD: PTX and
# cubins do not know the host.
set -eu
build=$1
cd "$(dirname "$0")/../.."
. tools/gates/gate.sh
target=aarch64-linux-gnu
cross=$build/aarch64
qemu="qemu-aarch64 -L /usr/$target"
MAKE=${MAKE:-make}

for tool in $target-gcc $target-g++ $target-objcopy qemu-aarch64; do
  command -v "$tool" >/dev/null && continue
  skip "the aarch64 build" "there is no $tool here (packages g++-$target, qemu-user)"
  finish
  exit 0
done

programs="test_c99 example_gemm"
# Catch2 3 is a library, and the one here is of this machine's processor.
if [ -e /usr/include/catch2/catch.hpp ]; then programs="$programs test_host"; fi
# shellcheck disable=SC2046
check "library, archive, emulator and host tests build for aarch64" \
  env -u MAKEFLAGS "$MAKE" -s ${JOBS:+-j"$JOBS"} B="$cross" KERNEL_OUT="$build/kernel" \
    NVCC="$NVCC" \
  CC=$target-gcc CXX=$target-g++ AR=$target-ar OBJCOPY=$target-objcopy \
  "$cross/libnvfp4gemm.so" "$cross/libnvfp4gemm.a" "$cross/emulator/libcuda.so.1" \
  $(for program in $programs; do echo "$cross/$program"; done)

machine() { readelf -hW "$1" | sed -n 's/ *Machine: *//p'; }
equal "the library is for aarch64" AArch64 "$(machine "$cross/libnvfp4gemm.so")"
equal "with the same soname" "$(readelf -dW "$build/libnvfp4gemm.so" | grep SONAME)" \
  "$(readelf -dW "$cross/libnvfp4gemm.so" | grep SONAME)"
check "exports, imports and needed libraries are the reviewed ones" \
  env -u NVFP4_TALLY tools/gates/check_symbols.sh "$cross/libnvfp4gemm.so"
check "it is hardened in the same way" \
  env -u NVFP4_TALLY tools/gates/check_hardening.sh "$cross/libnvfp4gemm.so"

# qemu hands the environment on.
export NVFP4_TEST_BUILD="$cross" NVFP4_TEST_LAUNCHER="$qemu" LD_LIBRARY_PATH="$cross/emulator"
check "a C99 program sees the header's library" env -u NVFP4_TALLY $qemu "$cross/test_c99"
check "the example's product runs in the emulator and equals the reference" \
  $qemu "$cross/example_gemm"
if [ -e "$cross/test_host" ]; then
  check "the host tests pass" env -u NVFP4_TALLY $qemu "$cross/test_host"
else
  skip "the host tests" "this machine has Catch2 as a library, for its own processor only"
fi
finish
