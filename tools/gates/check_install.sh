#!/bin/sh
# SPDX-License-Identifier: MIT
# check_install.sh BUILD: installs to a DESTDIR, builds and runs the programs of test/api/consumer
# against it as their authors would, uninstalls, and looks for what is left.
set -eu
build=$1
cd "$(dirname "$0")/../.."
. tools/gates/gate.sh
CC=${CC:-gcc} CXX=${CXX:-g++}
work=$build/consumer
rm -rf "$work"
mkdir -p "$work"
root=$(pwd)/$work/root
export PREFIX=/opt/nvfp4gemm LIBDIR=/opt/nvfp4gemm/lib64 INCLUDEDIR=/opt/nvfp4gemm/include
export BINDIR=/opt/nvfp4gemm/bin MANDIR=/opt/nvfp4gemm/share/man DESTDIR="$root"
export BASHDIR=/opt/nvfp4gemm/share/bash-completion/completions
lib=$root$LIBDIR
version=$(tools/package/version.sh)
major=${version%%.*}
installed() { (cd "$root" && find . ! -type d | LC_ALL=C sort); }
needed() { readelf -dW "$1" 2>&1 | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

check "make install's script runs" tools/package/install.sh install "$build"
equal "the installation holds these files" "./opt/nvfp4gemm/include/nvfp4_gemm.h
./opt/nvfp4gemm/lib64/cmake/nvfp4gemm/nvfp4gemmConfig.cmake
./opt/nvfp4gemm/lib64/cmake/nvfp4gemm/nvfp4gemmConfigVersion.cmake
./opt/nvfp4gemm/lib64/libnvfp4gemm.a
./opt/nvfp4gemm/lib64/libnvfp4gemm.so
./opt/nvfp4gemm/lib64/libnvfp4gemm.so.$major
./opt/nvfp4gemm/lib64/libnvfp4gemm.so.$version
./opt/nvfp4gemm/lib64/pkgconfig/nvfp4gemm.pc" "$(installed)"
equal "the soname is the link beside the library" "libnvfp4gemm.so.$major" \
  "$(readelf -dW "$lib/libnvfp4gemm.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')"
equal "no installed text names the build, the DESTDIR or the prefix" "" \
  "$(grep -rlIF -e "$(pwd)" -e "$PREFIX" "$root" || true)"

# Hidden symbols are local in the archive: it offers what the shared library offers.
equal "the archive defines the functions of the library and nothing else" \
  "$(cat test/golden/symbols.txt)" \
  "$(nm -g --defined-only "$lib/libnvfp4gemm.a" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort)"

if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_LIBDIR="$lib/pkgconfig"
  equal "pkg-config knows the header's version" "$version" "$(pkg-config --modversion nvfp4gemm)"
  # shellcheck disable=SC2046,SC2086
  check "a C program builds with pkg-config's flags" $CC -std=c99 -Wall -Wextra -Wpedantic -Werror \
    $(pkg-config --cflags nvfp4gemm) -o "$work/c" test/api/consumer/consumer.c \
    $(pkg-config --libs nvfp4gemm)
  check "it finds the library by soname and gets the right product" \
    env LD_LIBRARY_PATH="$lib" "$work/c"
  # shellcheck disable=SC2046,SC2086
  check "a C++ program builds with pkg-config's flags" $CXX -std=c++17 -Wall -Wextra -Werror \
    $(pkg-config --cflags nvfp4gemm) -o "$work/cc" test/api/consumer/consumer.cc \
    $(pkg-config --libs nvfp4gemm)
  check "it gets the right product" env LD_LIBRARY_PATH="$lib" "$work/cc"
  # shellcheck disable=SC2046,SC2086
  check "a C program links the archive with the private libraries" $CC -std=c99 \
    $(pkg-config --cflags nvfp4gemm) -o "$work/static" test/api/consumer/consumer.c \
    $(pkg-config --static --libs nvfp4gemm | sed 's/-lnvfp4gemm/-l:libnvfp4gemm.a/')
  check "it runs without the shared library" "$work/static"
  equal "it does not name the shared library" "" "$(needed "$work/static" | grep nvfp4 || true)"
else
  skip "the programs that use pkg-config" "there is no pkg-config here"
fi

if command -v cmake >/dev/null; then
  check "a CMake project finds the package, and no version that is not there" \
    env CC="$CC" CXX="$CXX" cmake -S test/api/consumer -B "$work/cmake" \
    -Dnvfp4gemm_DIR="$lib/cmake/nvfp4gemm" -DINSTALLED_CONFIG="$lib/cmake/nvfp4gemm"
  check "it builds" env -u MAKEFLAGS cmake --build "$work/cmake"
  check "its program with nvfp4gemm::nvfp4gemm gets the right product" "$work/cmake/consumer_shared"
  check "its program with nvfp4gemm::static gets the right product" "$work/cmake/consumer_static"
  equal "the second does not name the shared library" "" \
    "$(needed "$work/cmake/consumer_static" | grep nvfp4 || true)"
else
  skip "the CMake project" "there is no cmake here"
fi

check "make uninstall's script runs" tools/package/install.sh uninstall "$build"
equal "nothing is left, and no folder" "" "$(find "$root$PREFIX" 2>/dev/null)"

# The emulator, beside the library and where no loader looks, and the program that finds it there.
emulated_installation() {
  export EMULATOR=1
  check "make install EMULATOR=1's script runs" tools/package/install.sh install "$build"
  equal "it adds the emulator, its command and its header" "./opt/nvfp4gemm/bin/nvfp4emu
./opt/nvfp4gemm/include/nvfp4emu.h
./opt/nvfp4gemm/lib64/nvfp4gemm/emulator/libcuda.so
./opt/nvfp4gemm/lib64/nvfp4gemm/emulator/libcuda.so.1
./opt/nvfp4gemm/lib64/nvfp4gemm/emulator/run/ptxas
./opt/nvfp4gemm/lib64/nvfp4gemm/emulator/run/site/sitecustomize.py" "$(installed | grep -i emu)"
  program=$root$BINDIR/nvfp4
  install -D "$build/nvfp4" "$program"
  emulated() { env LD_LIBRARY_PATH="$lib" "$program" --emulate info 2>&1; }
  equal "nvfp4 --emulate finds it beside the library" "(emulated)" \
    "$(emulated | grep -o '(emulated)' | head -n 1)"
  rm "$lib/nvfp4gemm/emulator/libcuda.so.1"
  equal "without it nvfp4 --emulate says where it looked" "$lib/nvfp4gemm/emulator" \
    "$(emulated | grep -o " $lib/nvfp4gemm/emulator" | cut -c 2-)"
  rm "$program"
  check "make uninstall EMULATOR=1's script runs" tools/package/install.sh uninstall "$build"
  equal "nothing is left of it, and no folder" "" "$(find "$root$PREFIX" 2>/dev/null)"
}
if [ -e "$build/emulator/libcuda.so.1" ]; then
  emulated_installation
else
  skip "the installation of the emulator" "it was not built: there is no cuda.h here"
fi

# With make, to two prefixes: the program of each installation finds the library of that one.
unset DESTDIR EMULATOR
export PROGRAM=1
again() { # FOLDER LIBDIR
  PREFIX=$root/$1 LIBDIR=$root/$1/$2
  BINDIR=$PREFIX/bin MANDIR=$PREFIX/share/man BASHDIR=$PREFIX/share/bash-completion/completions
  INCLUDEDIR=$PREFIX/include
  check "make install PREFIX=$1 LIBDIR=$1/$2 PROGRAM=1" \
    env -u MAKEFLAGS "${MAKE:-make}" -s install \
    B="$build" CC="$CC" CXX="$CXX"
  equal "its program looks in $1/$2" "\$ORIGIN/../$2" \
    "$(readelf -dW "$BINDIR/nvfp4" | sed -n 's/.*(RUNPATH).*\[\(.*\)\]/\1/p')"
  check "and starts" env -u LD_LIBRARY_PATH "$BINDIR/nvfp4" explain --m 1 --n 128 --k 64
}
remove_again() {
  # Without PROGRAM=1, which the installation had.
  check "make uninstall" env -u MAKEFLAGS -u PROGRAM "${MAKE:-make}" -s uninstall B="$build"
  equal "nothing is left of it, and no folder" "" "$(find "$PREFIX" 2>/dev/null)"
}
again first lib
again second lib64
remove_again
check "the other installation is as it was" env -u LD_LIBRARY_PATH "$root/first/bin/nvfp4" \
  explain --m 1 --n 128 --k 64
PREFIX=$root/first LIBDIR=$root/first/lib INCLUDEDIR=$root/first/include BINDIR=$root/first/bin
MANDIR=$root/first/share/man BASHDIR=$root/first/share/bash-completion/completions
remove_again
finish
