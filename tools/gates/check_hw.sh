#!/bin/sh
# SPDX-License-Identifier: MIT
# check_hw.sh BUILD PART [TOOL...]: what only a GPU can show, on the machine's own driver. BUILD was
# built here or anywhere else; nothing is compiled. Each part is meant for at most 8 minutes on an
# H200.
#   gemm      the end-to-end suite, 200 runs under load, graphs, streams and contexts among it
#   sanitize  every variant and split under compute-sanitizer: memcheck racecheck initcheck
#             synccheck, or the tools named after it
#   ptx       instructions against the emulator's expectations: calls, carries, TMA loads, wgmma,
#             mma.sync, mma.sp and wmma
#   random    20,000 random programs (RANDOM_PROGRAMS), and 6,000 (RANDOM_SINGLES) of one step each,
#             on the GPU and in the emulator; differences are shrunk, the words are kept in
#             RANDOM_RECORDS, a folder
#   random-gemm  100,000 random problems (RANDOM_PROBLEMS, RANDOM_SEED) against the reference
#   hazard    compute-sanitizer on the racy and repaired programs of tools/emulator/test/pairs: a
#             line per run, and the programs that it reports otherwise than their README says
#   python    the Python package on torch tensors, on two GPUs where there are two, and small models
#             in a CUDA graph, by python3 or the TORCH_PYTHON that has torch and transformers 5
#   bench     device time beside cuBLASLt, CSV to stdout
#   first-hour  the first of all on a GPU that these kernels have not seen:
#             tools/gates/first_hour.py
set -u
build=$1
part=${2:-}
cd "$(dirname "$0")/../.." || exit 1
test=$build/nvfp4_test emulator_test=$build/emulator_hw_test
# The status of a test program that was asked for tests of other GPUs alone (kExecutedNone in
# tools/testing/session.h).
executed_none=77
die() { echo "check_hw: $*" >&2; exit 1; }
[ -x "$test" ] || die "no $test: make test-programs first, here or elsewhere"
device=$("$build/nvfp4" info 2>&1) || die "$device"
case $device in *emulated*) die "the driver is the emulator; take it out of LD_LIBRARY_PATH" ;; esac
echo "# $(date +%F), driver $(cat /sys/module/nvidia/version 2>/dev/null || nvidia-smi \
  --query-gpu=driver_version --format=csv,noheader 2>/dev/null || echo unknown)" >&2

# One process per tool: every variant and split of the library, and every entry for groups and
# gates. What it printed last is the evidence.
sanitize() {
  PATH=$PATH:/usr/local/cuda/bin
  command -v compute-sanitizer >/dev/null || die "no compute-sanitizer"
  log=$(mktemp)
  bad=0
  for check in ${*:-memcheck racecheck initcheck synccheck}; do
    start=$(date +%s)
    NVFP4_SANITIZED=1 timeout 240 compute-sanitizer --tool "$check" --error-exitcode 9 \
      --print-limit 20 "$test" '[sanitize]' >"$log" 2>&1
    status=$?
    seconds=$(($(date +%s) - start))
    products=$(grep '^{"products": ' "$log" | paste -sd ' ')
    if [ $status -eq 0 ] && [ -n "$products" ]; then
      echo "ok    $check, $seconds s: $products"
    else
      bad=$((bad + 1))
      echo "not   $check, $seconds s: status $status (124: no end within 240 s)"
      cat "$log"
    fi
  done
  rm "$log"
  echo "$bad tools with findings"
  [ $bad -eq 0 ]
}

# The rest of the suite, its longest files side by side: most of the time the host draws operands
# and computes what is right.
suite() {
  logs=$(mktemp -d) rest='~[late]~[.]' all=$executed_none bad=
  for files in '[#even]' '[#shares]' '[#epilogue] [#several_tiles]' \
    '[#contexts] [#gated] [#a16]'; do
    tests=
    for file in $files; do
      tests=$tests${tests:+,}$file'~[late]~[.]' rest=$rest~$file
    done
    "$test" -# "$tests" >"$logs/$files" 2>&1 || echo $? >"$logs/$files.status" &
  done
  "$test" -# "$rest" >"$logs/rest" 2>&1 || echo $? >"$logs/rest.status"
  wait
  for log in "$logs"/*]* "$logs/rest"; do
    case $log in *.status) continue ;; esac
    cat "$log"
    code=$(cat "$log.status" 2>/dev/null || echo 0)
    [ "$code" -eq $executed_none ] || all=0
    [ "$code" -eq 0 ] || [ "$code" -eq $executed_none ] || bad="$bad $(basename "$log")"
  done
  rm -r "$logs"
  echo "failed:${bad:- nothing}"
  [ -z "$bad" ] || return 1
  return $all
}

case $part in
  gemm) # a GPU that hangs ends with its process, and says nothing
    timeout -k 5 200 "$test" '[late]'
    status=$?
    [ $status -lt 124 ] || die "grouped products did not end within 200 s (status $status)"
    [ $status -ne $executed_none ] || status=0
    suite && [ $status -eq 0 ]
    ;;
  ptx) # a process for each instruction: a fault of one hides nothing of the others
    [ -x "$emulator_test" ] || die "no $emulator_test: make build/emulator_hw_test first"
    bad= others=
    for tag in call carry tma mma wgmma fragments; do
      "$emulator_test" "[$tag]"
      case $? in
        0) ;;
        $executed_none) others="$others $tag" ;;
        *) bad="$bad $tag" ;;
      esac
    done
    [ -z "$others" ] || echo "other GPUs' tests:$others"
    echo "failed:${bad:- nothing}"
    [ -z "$bad" ]
    ;;
  random) # many processes: most of the time goes into ptxas
    [ -x "$emulator_test" ] || die "no $emulator_test: make build/emulator_hw_test first"
    [ -e "$build/emulator/libcuda.so.1" ] || die "no emulator: make emulator first"
    PATH=$PATH:/usr/local/cuda/bin
    jobs=$(nproc) logs=$(mktemp -d) records=${RANDOM_RECORDS:-$logs}
    part_of() { # FIRST COUNT: shared by all processors
      each=$((($2 + jobs - 1) / jobs)) i=0
      while [ $i -lt "$jobs" ]; do
        at=$(($1 + i * each))
        RANDOM_FIRST=$at RANDOM_PROGRAMS=$each RANDOM_RECORD=$records/words.$at \
          "$emulator_test" '[random]' >"$logs/log.$at" 2>&1 || : >"$logs/bad" &
        i=$((i + 1))
      done
      wait
    }
    part_of 0 "${RANDOM_PROGRAMS:-20000}"
    part_of 4294967296 "${RANDOM_SINGLES:-6000}" # random_program.h: kSingles
    grep -h -e 'random programs on' -e '^  program' -e '^    [@a-z#]' \
      -e '^  not compiled' "$logs"/log.*
    bad=0
    [ -e "$logs/bad" ] && bad=1
    rm -r "$logs"
    [ $bad -eq 0 ]
    ;;
  random-gemm)
    [ -x "$build/check_random" ] || die "no $build/check_random: make it first, here or elsewhere"
    "$build/check_random" --problems "${RANDOM_PROBLEMS:-100000}" --seed "${RANDOM_SEED:-1}"
    ;;
  sanitize)
    shift 2
    sanitize "$@"
    ;;
  hazard)
    [ -x "$emulator_test" ] || die "no $emulator_test: make build/emulator_hw_test first"
    PATH=$PATH:/usr/local/cuda/bin
    command -v compute-sanitizer >/dev/null || die "no compute-sanitizer"
    tools/emulator/test/pairs/sanitize.sh "$emulator_test" |
      python3 tools/emulator/test/pairs/verdict.py
    ;;
  python)
    python=${TORCH_PYTHON:-python3}
    "$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null ||
      die "$python has no torch that finds a GPU; TORCH_PYTHON names another"
    export NVFP4_GPU_NEEDED=1 # without it, tests that find no GPU are skipped
    bad=
    for tests in torch door_torch gated grouped gradients dialects nn parallel; do
      NVFP4_BUILD=$build "$python" "tools/python/test/test_python_$tests.py" -v || bad="$bad $tests"
    done
    NVFP4_BUILD=$build "$python" tools/python/test/models/on_gpu.py -v || bad="$bad models"
    echo "failed:${bad:- nothing}"
    [ -z "$bad" ]
    ;;
  bench) "$build/nvfp4_bench" gpu ;;
  first-hour) python3 tools/gates/first_hour.py "$build" ;;
  *) die "PART is gemm, sanitize, ptx, random, random-gemm, hazard, python, bench or first-hour" ;;
esac
