#!/bin/sh
# SPDX-License-Identifier: MIT
# host_overhead.sh BUILD: verifies the problems in the emulator, then times the host side of the
# calls with launches switched off. CSV with its circumstances to stdout; nothing but a verified
# library is timed.
set -eu
build=$1
cd "$(dirname "$0")/.."
CXX=${CXX:-g++}
read -r load _ </proc/loadavg
cat <<HEAD
# Host time of a call of libnvfp4gemm, nanoseconds. Driver: bench/idle_driver.cc, every call answers
# at once, so a row is the library's own time and five empty driver calls.
# date      $(date +%F)
# machine   $(nproc) cores, $(LC_ALL=C lscpu | sed -n 's/^Model name: *//p'), load $load
# compiler  $($CXX --version | head -n 1), -O2
# command   make bench
HEAD
LD_LIBRARY_PATH=$(pwd)/$build/emulator "$build/nvfp4_bench" verify
# The budget: 1.5 us for a run, 1 us above the driver calls alone for a plan's run.
LD_LIBRARY_PATH=$(pwd)/$build/bench/idle "$build/nvfp4_bench" host | awk -F, '
  { print }
  $1 == "driver calls alone" { bare = $6 }
  $1 == "nvfp4_gemm_run" && $6 > run { run = $6 }
  $1 == "nvfp4_gemm_plan_run" && $6 - bare > plan { plan = $6 - bare }
  END {
    kept = run > 0 && run <= 1500 && plan > 0 && plan <= 1000
    printf "# budget    run %d of 1500 ns, plan_run %d of 1000 above the driver: %s\n", run, plan,
           kept ? "kept" : "exceeded"
    exit !kept
  }'
