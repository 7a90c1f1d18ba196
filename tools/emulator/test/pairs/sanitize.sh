#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/emulator/test/pairs/sanitize.sh PROGRAM: every pair that sm_90 can run, under
# compute-sanitizer on a real GPU. A line per program and tool: name, variant, tool, how many
# hazards and errors it reports. PROGRAM is build/emulator_hw_test; compute-sanitizer is taken from
# PATH. Eight at a time.
set -u
program=$1
pairs=$(dirname "$0")
if [ $# -eq 1 ]; then
  for name in $("$program" --pair "$pairs"); do
    for variant in racy repaired; do
      for tool in racecheck synccheck memcheck; do echo "$program $name $variant $tool"; done
    done
  done | xargs -P 8 -L 1 "$0" | sort
  exit
fi
one() {
  text=$(timeout 60 compute-sanitizer --tool "$3" "$program" --pair "$pairs" "$1" "$2" 2>&1)
  status=$?
  summary=$(printf '%s\n' "$text" | grep -E 'SUMMARY' | sed 's/.*SUMMARY: //' | tail -n 1)
  [ $status -eq 124 ] && summary='no end within 60 s'
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" \
    "${summary:-status $status: $(printf '%s' "$text" | tail -n 1)}"
}
one "$2" "$3" "$4"
