#!/bin/sh
# SPDX-License-Identifier: MIT
# wheel.sh BUILD: BUILD/emulator-wheel/nvfp4emu-VERSION-py3-none-PLATFORM.whl, the Python module
# with the command and the library.
set -eu
build=$1
cd "$(dirname "$0")/../../.."
out=$build/emulator-wheel
inside=$out/stage/nvfp4emu/emulator
rm -rf "$out"
mkdir -p "$out/stage"
cp -r tools/emulator/python/pyproject.toml tools/emulator/python/setup.py \
  tools/emulator/python/README.md tools/emulator/python/nvfp4emu LICENSE "$out/stage/"
find "$out/stage" -name __pycache__ -prune -exec rm -rf {} +
tools/package/version.sh >"$out/stage/version.txt"
mkdir -p "$inside"
cp -r tools/emulator/nvfp4emu tools/emulator/run "$inside/"
"${STRIP:-strip}" --strip-unneeded -o "$inside/libcuda.so.1" "$build/emulator/libcuda.so.1"
# A wheel has no links, and a second copy would be a second device: this one only needs the first.
echo | "${CC:-cc}" -shared -nostdlib -x c - -x none -o "$inside/libcuda.so" -Wl,--no-as-needed \
  -L"$inside" -l:libcuda.so.1 -Wl,-rpath,'$ORIGIN' -Wl,-soname,libcuda.so
exec tools/package/pack_wheel.sh "$out"
