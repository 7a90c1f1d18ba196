#!/bin/sh
# SPDX-License-Identifier: MIT
# emulator.sh BUILD: the speed of the emulator, as CSV with its circumstances.
set -eu
build=$1
cd "$(dirname "$0")/.."
CXX=${CXX:-g++}
cat <<HEAD
# Speed of the emulator, every check on, EMU_ORDER and EMU_SEED as by default.
# date      $(date +%F)
# machine   $(nproc) cores, $(LC_ALL=C lscpu | sed -n 's/^Model name: *//p'), load $(cut -d ' ' -f 1
#           /proc/loadavg)
# compiler  $($CXX --version | head -n 1), -O2
# command   make bench-emulator
HEAD
"$build/emulator_bench"
LD_LIBRARY_PATH=$(pwd)/$build/emulator "$build/nvfp4_bench" emulator
