#!/bin/sh
# SPDX-License-Identifier: MIT
# check_package.sh BUILD: the tarball of BUILD/dist as others use it: make with a C++ compiler
# alone, CMake by folder, by tarball and by installation, dpkg-buildpackage with lintian, Conan.
# What is not here is skipped by name.
set -eu
build=$1
cd "$(dirname "$0")/../.."
. tools/gates/gate.sh
tarball=$(realpath "$(ls "$build"/dist/*.tar.gz)")
work=$(pwd)/$build/package
consumer=$(pwd)/test/api/consumer
CONAN=${CONAN:-conan}
rm -rf "$work"
mkdir -p "$work"
tar -x -C "$work" -f "$tarball"
source=$(ls -d "$work"/nvfp4gemm-*)
version=${source##*-}
here() { command -v "$1" >/dev/null 2>&1; }
quiet() { env -u MAKEFLAGS -u MAKELEVEL "$@"; }
# No CUDA: no nvcc on the path, none by name, no set-up.
bare() { quiet make -C "$source" NVCC= CPATH= SETUP=/nonexistent "$@"; }

check "library, archive and command line build by g++ alone" \
  bare CUDA_INCLUDE= library static build/nvfp4
check "the host tests pass there, without an emulator" bare CUDA_INCLUDE= CUDA_H= test-host
check "the command line explains a shape" "$source/build/nvfp4" explain --m 1 --n 128 --k 64

if here cmake; then
  for how in subdirectory fetch; do
    what=$source
    if [ $how = fetch ]; then what=$tarball; fi
    check "CMake, $how: configured" quiet cmake -S "$consumer/source" -B "$work/$how" \
      -DHOW=$how -DNVFP4GEMM="$what"
    check "CMake, $how: built" quiet cmake --build "$work/$how" -j2
    check "CMake, $how: the shared library's product is right" "$work/$how/consumer_shared"
    check "CMake, $how: the archive's product is right" "$work/$how/consumer_static"
  done
  check "CMake builds the project itself" quiet sh -c \
    "cmake -S '$source' -B '$work/own' -DCMAKE_INSTALL_PREFIX='$work/installed' &&
     cmake --build '$work/own' -j2 && cmake --install '$work/own'"
  library=$(find "$work" -path '*/installed/*' -name libnvfp4gemm.so)
  check "its library exports and imports what make's does" \
    env -u NVFP4_TALLY tools/gates/check_symbols.sh "$library"
  check "and is hardened in the same way" env -u NVFP4_TALLY \
    tools/gates/check_hardening.sh "$library"
  check "CMake, find_package with components: configured" \
    quiet cmake -S "$consumer" -B "$work/find" \
    -DCMAKE_PREFIX_PATH="$work/installed" -DINSTALLED_CONFIG="${library%/*}/cmake/nvfp4gemm"
  check "CMake, find_package: built" quiet cmake --build "$work/find"
  check "CMake, find_package: both products are right" \
    sh -c "'$work/find/consumer_shared' && '$work/find/consumer_static'"
else
  skip "add_subdirectory, FetchContent and find_package" "there is no cmake here"
fi

# The environment that builds it has what `make setup-wheel` pins; nothing is downloaded.
PYTHON=$(realpath -s "$(command -v "${PYTHON:-.venv/bin/python}")")
if "$PYTHON" -c 'from setuptools.command import bdist_wheel' 2>/dev/null; then
  check "pip builds the Python package from it" quiet env NVCC= "$PYTHON" -m pip wheel --quiet \
    --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$work/pip" "$tarball"
  check "its wheel has the version and the library" "$PYTHON" -c "
import glob, sys, zipfile
wheel, = glob.glob('$work/pip/nvfp4gemm-$version-py3-none-linux_*.whl')
sys.exit('nvfp4gemm/libnvfp4gemm.so.0' not in zipfile.ZipFile(wheel).namelist())"
else
  skip "pip of the tarball" "$PYTHON has no setuptools from 70.1 on (make setup-wheel)"
fi

if here dpkg-buildpackage && here dh; then
  mkdir "$work/debian"
  cp "$tarball" "$work/debian/nvfp4gemm_$version.orig.tar.gz"
  tar -x -C "$work/debian" -f "$tarball"
  cp -r "$source/tools/package/debian" "$work/debian/nvfp4gemm-$version/debian"
  check "dpkg-buildpackage builds three packages" sh -c \
    "cd '$work/debian/nvfp4gemm-$version' &&
     env -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage -us -uc -d"
  if here lintian; then
    equal "lintian has no error and no warning" "" \
      "$(lintian --allow-root --fail-on none "$work"/debian/*.changes 2>&1 |
        grep -E '^[EW]:' || true)"
  else
    skip "lintian" "it is not here (package lintian)"
  fi
else
  skip "dpkg-buildpackage" "it is not here (packages dpkg-dev, debhelper)"
fi

if here "$CONAN"; then
  export CONAN_HOME="$work/conan"
  check "Conan has a profile" quiet "$CONAN" profile detect
  check "conan create, static" quiet "$CONAN" create "$source/tools/package/conan"
  check "conan create, shared" quiet \
    "$CONAN" create "$source/tools/package/conan" -o '&:shared=True'
else
  skip "conan create" "there is no conan here (CONAN=path names one)"
fi
finish
