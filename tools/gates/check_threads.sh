#!/bin/sh
# SPDX-License-Identifier: MIT
# check_threads.sh BUILD [PROCESSES]: fresh processes in which 64 threads make the first call
# together, under ThreadSanitizer, half of them on one core; a quarter with the log on.
set -eu
build=$1 processes=${2:-20}
cd "$(dirname "$0")/../.."
. tools/gates/gate.sh
program=$build/tsan/first_use
LD_LIBRARY_PATH=$(pwd)/$build/emulator
# The emulator is not built for ThreadSanitizer: its own memory is not looked at.
TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=66 halt_on_error=1"
export LD_LIBRARY_PATH TSAN_OPTIONS

if output=$("$program" planted 2>&1); then
  fail "a planted race is reported" "$output"
elif printf '%s' "$output" | grep -q 'ThreadSanitizer: data race'; then
  pass "a planted race is reported"
else
  fail "a planted race is reported" "$output"
fi

one_core=''
if command -v taskset >/dev/null && taskset -c 0 true 2>/dev/null; then one_core="taskset -c 0"; fi
i=0 good=0
while [ $i -lt "$processes" ]; do
  i=$((i + 1))
  pin='' log=0
  if [ $((i % 2)) -eq 0 ]; then pin=$one_core; fi
  if [ $((i % 4)) -eq 1 ]; then log=3; fi
  if output=$(NVFP4_LOG=$log $pin "$program" 2>&1); then
    good=$((good + 1))
  else
    fail "process $i of $processes${pin:+, on one core}, NVFP4_LOG=$log" "$output"
  fi
done
if [ "$good" -eq "$processes" ]; then
  pass "$processes processes of 64 threads: no race, every call right"
fi
finish
