#!/bin/sh
# SPDX-License-Identifier: MIT
# images.sh "GPUS" [ptx]: which images a library has. images.sh "GPUS" [ptx] FROM TO: writes the
# folder TO for host/run/images.S, with a link to the file of FROM for each of them, an empty file
# for each of the others, gpus.txt and compiler.txt.
#
# Prints a line NAME:FILE:1 for each image of images.def and then of
# quantizer_images.def that a library for these compute capabilities has (10 * major + minor), and
# NAME:FILE:0 for the others. "all" stands for every capability of arch.def. With ptx the library
# has no cubin, and nothing of a GPU's second family. If a capability has no row, the one line is
# "unknown" with the list of those that have one.
set -eu
gpus=$1 ptx=
shift
if [ "${1:-}" = ptx ]; then ptx=ptx; shift; fi
if [ $# -eq 2 ]; then
  from=$(realpath --relative-to="$2" -m "$1") to=$2
  list=$("$0" "$gpus" $ptx)
  case $list in
    unknown*) echo "images.sh: GPUS=\"$gpus\": known are ${list#unknown }" >&2; exit 2 ;;
  esac
  for row in $list; do
    file=${row#*:} file=${file%:?}
    if [ "${row##*:}" = 1 ] && [ ! -e "$1/$file" ]; then
      echo "images.sh: $1 has no $file, which GPUS=\"$gpus\" needs" >&2
      exit 2
    fi
  done
  rm -rf "$to" && mkdir -p "$to"
  echo "$list" | while IFS=: read -r _ file built; do
    if [ "$built" = 1 ]; then ln -s "$from/$file" "$to/$file"; else : >"$to/$file"; fi
  done
  printf %s "$gpus${ptx:+ by the PTX for NVFP4 tokens alone}" >"$to/gpus.txt"
  cp "$1/compiler.txt" "$to/compiler.txt"
  exit 0
fi
cd "$(dirname "$0")/../host/plan"
exec awk -v gpus="$gpus" -v only_ptx="$ptx" '
  function fields(line) {
    sub(/^[A-Z_]*\(/, "", line)
    sub(/\)$/, "", line)
    return split(line, field, /, */)
  }
  /^\/\/|^#/ { next }
  FILENAME == "arch.def" {  # a row has several lines; a capability may have a second row
    row = row " " $0
    if ($0 !~ /\)$/) next
    sub(/^ /, "", row)
    count = fields(row)
    row = ""
    capability = field[1]
    if (!(capability in first)) known = known " " capability
    if (!(capability in first)) first[capability] = field[2]
    family[capability, field[2]] = 1
    for (i = 2; i <= count; ++i) {
      if (field[i] ~ /^kImage_/) serves[capability, substr(field[i], 8)] = 1
    }
    next
  }
  !chosen {
    if (gpus == "all") gpus = known
    chosen = split(gpus, gpu, " ")
    unknown = chosen == 0
    for (i = 1; i <= chosen; ++i) unknown += !(gpu[i] in first)
    if (unknown) {
      print "unknown" known
      exit
    }
  }
  /^IMAGE\(/ { fields($0); put(field[2], field[3], wanted(field[1], field[2], 0, 0)) }
  /^QUANTIZER_IMAGE\(/ {
    fields($0)
    put(field[3], field[4], wanted(field[1], field[3], 1, field[2]))
  }
  function put(name, quoted, built) {
    gsub(/"/, "", quoted)
    print name ":" quoted ":" built
  }
  function wanted(of, name, quantizes, major,    i) {
    if (only_ptx != "" && name !~ /compute_/) return 0
    for (i = 1; i <= chosen; ++i) {
      if (only_ptx != "" && first[gpu[i]] != of) continue
      if (quantizes && ((gpu[i], of) in family) && (major == 0 || major == int(gpu[i] / 10))) {
        return 1
      }
      if (!quantizes && ((gpu[i], name) in serves)) return 1
    }
    return 0
  }' arch.def images.def quantizer_images.def
