#!/bin/sh
# SPDX-License-Identifier: MIT
# unit.sh UNIT FILE...: writes UNIT, one source that includes these, so that what they share is
# parsed, instantiated and compiled once. Each stands in a namespace of its own, behind the headers
# of all of them, and its macros end with it. A UNIT that says that already stays as it is.
set -eu
unit=$1
shift
mkdir -p "$(dirname "$unit")"
{
  grep -h '^#include [<"].*\(\.h"\|>\)$' "$@" | sort -u
  for file; do
    name=$(echo "${file%.cc}" | tr -c 'a-z0-9\n' _)
    printf 'namespace %s {\n#include "%s"\n}\n' "$name" "$file"
    sed -n 's/^# *define \([A-Za-z_0-9]*\).*/#undef \1/p' "$file" | sort -u
  done
} >"$unit.new"
if cmp -s "$unit" "$unit.new"; then rm "$unit.new"; else mv "$unit.new" "$unit"; fi
