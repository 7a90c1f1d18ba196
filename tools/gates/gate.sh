# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Sourced by the gates: counts checks and ends with the line that every runner ends with.
passed=0 failed=0 skipped=0

pass() { passed=$((passed + 1)); printf 'ok    %s\n' "$1"; }
skip() { skipped=$((skipped + 1)); printf 'skip  %s: %s\n' "$1" "$2"; }
fail() {
  failed=$((failed + 1))
  printf 'FAIL  %s\n' "$1"
  [ -z "${2:-}" ] || printf '%s\n' "$2" | sed 's/^/        /'
}

# check SENTENCE COMMAND...: passes when the command does; shows what it printed when it does not.
check() {
  sentence=$1
  shift
  if output=$("$@" 2>&1); then pass "$sentence"; else fail "$sentence" "$output"; fi
}

# equal SENTENCE EXPECTED ACTUAL
equal() {
  if [ "$2" = "$3" ]; then
    pass "$1"
  else
    fail "$1" "$(printf 'expected:\n%s\nfound:\n%s' "$2" "$3")"
  fi
}

finish() {
  total="$passed passed, $failed failed, $skipped skipped"
  if [ -n "${NVFP4_TALLY:-}" ]; then echo "$total" >>"$NVFP4_TALLY"; fi
  echo "$total"
  [ "$failed" -eq 0 ]
}
