#!/bin/sh
# SPDX-License-Identifier: MIT
# emulator.sh BUILD: the speed of the emulator, as CSV with its circumstances. BEFORE=libcuda.so.1
# names another build of it, whose rates stand beside this one's, from runs in turn.
set -eu
build=$1
cd "$(dirname "$0")/.."
CXX=${CXX:-g++}
read -r load _ </proc/loadavg
cat <<HEAD
# Speed of the emulator, every check on, EMU_ORDER and EMU_SEED as by default.
# date      $(date +%F)
# machine   $(nproc) cores, $(LC_ALL=C lscpu | sed -n 's/^Model name: *//p'), load $load
# compiler  $($CXX --version | head -n 1), -O2
# command   make bench-emulator
HEAD
families() { LD_LIBRARY_PATH=$(dirname "$1") "$build/emulator_bench"; }
now=$(pwd)/$build/emulator/libcuda.so.1
before=${BEFORE:-}
if [ -n "$before" ]; then
  [ "${before##*/}" = libcuda.so.1 ] && [ -e "$before" ] || {
    echo "emulator.sh: BEFORE=$before is no libcuda.so.1" >&2
    exit 2
  }
  # adds: the time of an instruction in integer adds.
  { families "$before"; families "$now"; } | awk -F, '
    FNR > 1 && $1 == "family" { second = 1 }
    !second { old[$1] = $2; next }
    $1 == "family" { print $0 ",before,adds"; next }
    $1 == "launch" || NF == 3 && $1 ~ /^one / { print; next }
    { if (!add) add = $2; printf "%s,%s,%.1f\n", $0, old[$1], add / $2 }'
else
  families "$now"
fi
LD_LIBRARY_PATH=$(pwd)/$build/emulator "$build/nvfp4_bench" emulator
