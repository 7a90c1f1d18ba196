#!/bin/sh
# SPDX-License-Identifier: MIT
# check_hw.sh BUILD PART: what only a GPU can show, on the machine's own driver. BUILD was built here
# or anywhere else; nothing is compiled. Each part takes less than 8 minutes on an H200.
#   gemm      the end-to-end suite, 200 runs under load, graphs, streams and contexts among it
#   sanitize  the four tools of compute-sanitizer on small shapes
#   ptx       instructions against the emulator's expectations: TMA loads, wgmma, mma.sync
#   hazard    compute-sanitizer on the racy and repaired programs of test/hazard: a line per run
#   bench     device time beside cuBLASLt, CSV to stdout
set -u
build=$1
part=${2:-}
cd "$(dirname "$0")/.." || exit 1
test=$build/nvfp4_test
die() { echo "check_hw: $*" >&2; exit 1; }
[ -x "$test" ] || die "no $test: make test-programs first, here or elsewhere"
device=$("$build/nvfp4" info 2>&1) || die "$device"
case $device in *emulated*) die "the driver is the emulator; take it out of LD_LIBRARY_PATH" ;; esac
echo "# $(date +%F), driver $(cat /sys/module/nvidia/version 2>/dev/null || nvidia-smi \
  --query-gpu=driver_version --format=csv,noheader 2>/dev/null || echo unknown)" >&2

sanitize() {
  tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) ||
    die "no compute-sanitizer"
  bad=0
  for check in memcheck racecheck initcheck synccheck; do
    for shape in '1 128 256' '16 256 512' '64 384 1024' '100 136 640' '300 264 576'; do
      # shellcheck disable=SC2086
      set -- $shape
      log=$("$tool" --tool $check --error-exitcode 9 --print-limit 3 "$build/nvfp4" run \
        --m "$1" --n "$2" --k "$3" --data exact 2>&1)
      status=$?
      if [ $status -eq 0 ]; then
        echo "ok    $check $1 x $2 x $3"
      else
        bad=$((bad + 1))
        printf 'not   %s %s x %s x %s: status %d\n%s\n' $check "$1" "$2" "$3" $status "$log"
      fi
    done
  done
  echo "$bad findings"
  [ $bad -eq 0 ]
}

case $part in
  gemm) "$test" '~[kernel]' ;;
  ptx) "$test" '[kernel]' ;;
  sanitize) sanitize ;;
  hazard)
    [ -x "$build/hazard_run" ] || die "no $build/hazard_run: make build/hazard_run first"
    PATH=$PATH:/usr/local/cuda/bin
    command -v compute-sanitizer >/dev/null || die "no compute-sanitizer"
    test/hazard/sanitize.sh "$build/hazard_run"
    ;;
  bench) "$build/nvfp4_bench" gpu ;;
  *) die "PART is gemm, sanitize, ptx, hazard or bench" ;;
esac
