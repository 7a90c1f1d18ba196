// SPDX-License-Identifier: MIT
// main of the Catch2 binaries that do nothing else.
#include "tools/testing/session.h"

int main(int argc, char** argv) { return support::run_tests(argc, argv); }
