// SPDX-License-Identifier: MIT
// build/emulator_hw_test: instructions against the emulator's expectations, on a Hopper GPU and in
// the emulator alike. With --pair it runs one racy or repaired program instead (pair.h).
#include <cstring>

#include "tools/emulator/test/h200/pair.h"
#include "tools/testing/session.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--pair") == 0) return h200::pair(argc, argv);
  return support::run_tests(argc, argv);
}
