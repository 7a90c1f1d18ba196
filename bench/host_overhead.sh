#!/bin/sh
# SPDX-License-Identifier: MIT
# host_overhead.sh BUILD: verifies the problems in the emulator, then times the host side of the calls
# with launches switched off. CSV with its circumstances to stdout; nothing but a verified library is
# timed.
set -eu
build=$1
cd "$(dirname "$0")/.."
CXX=${CXX:-g++}
cat <<HEAD
# Host time of a call of libnvfp4gemm, nanoseconds. Driver: bench/idle_driver.cc, every call answers
# at once, so a row is the library's own time and five empty driver calls.
# date      $(date +%F)
# machine   $(nproc) cores, $(LC_ALL=C lscpu | sed -n 's/^Model name: *//p'), load $(cut -d ' ' -f 1 /proc/loadavg)
# compiler  $($CXX --version | head -n 1), -O2
# command   make bench
HEAD
LD_LIBRARY_PATH=$(pwd)/$build/emulator "$build/nvfp4_bench" verify
LD_LIBRARY_PATH=$(pwd)/$build/bench/idle "$build/nvfp4_bench" host
