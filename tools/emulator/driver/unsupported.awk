# SPDX-License-Identifier: MIT
# unsupported.awk entries.def HEADER: what <cudaTypedefs.h>, preprocessed, declares and entries.def
# does not have, for unsupported.cc.
#   EMU_UNSUPPORTED(base name, exported symbol, first CUDA version of that signature)
#   EMU_PER_THREAD(exported symbol)   for programs compiled with a default stream for each thread
# A name's first signature is exported under the name itself, the second as NAME_v2, and so on; a
# per-thread one by the number of the signature that its version has, and an ending.
FNR == 1 { ++file }
file == 1 && /^EMU_ENTRY\(/ {
  for (row = $0; row !~ /\)/; row = row $0) getline
  split(row, cell, /[(), ]+/)
  is_entry[cell[3]] = 1
}
file > 1 && match($0, /\*PFN_cu[A-Z][A-Za-z0-9_]*\)/) {
  name = substr($0, RSTART + 5, RLENGTH - 6)
  ending = ""
  if (match(name, /_pt[ds][sz]$/)) {
    ending = substr(name, RSTART)
    name = substr(name, 1, RSTART - 1)
  }
  if (!match(name, /_v[0-9]+$/)) next
  ++count
  base[count] = substr(name, 1, RSTART - 1)
  version[count] = substr(name, RSTART + 2) + 0
  per_thread[count] = ending
}
# How many signatures of the base name CUDA had by then.
function number(name, by,    i, older) {
  for (i = 1; i <= count; ++i) older += base[i] == name && per_thread[i] == "" && version[i] <= by
  return older
}
END {
  for (i = 1; i <= count; ++i) {
    # Every per-thread stream is as old as CUDA 7.0, what it replaces may be older.
    which = number(base[i], version[i])
    symbol = base[i] (which > 1 ? "_v" which : "") per_thread[i]
    if (per_thread[i] != "") print "EMU_PER_THREAD(" symbol ")"
    else if (!(symbol in is_entry)) print "EMU_UNSUPPORTED(" base[i] ", " symbol ", " version[i] ")"
  }
}
