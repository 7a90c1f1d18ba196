# SPDX-License-Identifier: MIT
# The regression tests and what happened there: the comment right above each test case. A test
# without such a comment, or without the tag, is an error.
/^\/\/ / { story = story substr($0, 3); next }
/^TEST_CASE\(/ { name = ""; at = story; open = 1 }
open {
  if (name == "" && match($0, /"[^"]*"/)) name = substr($0, RSTART + 1, RLENGTH - 2)
  if ($0 ~ /\) \{$/) {
    open = 0
    if (at == "" || $0 !~ /"\[regression\]"/) { print FILENAME ":" FNR ": " name ": no story or no tag"; wrong = 1 }
    printf "%s\n    %s\n", name, substr(at, 2)
    ++count
  }
}
{ story = "" }
END { print count " tests"; exit wrong }
