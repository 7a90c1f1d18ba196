// SPDX-License-Identifier: MIT
// Catch2, whichever of 2.13 and 3 is installed, in the subset that both know, and skips that are
// counted.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace support {

// Counts the running test case as skipped and prints the reason. Catch2 2.13 has no SKIP.
void note_skip(const std::string& reason);

}  // namespace support

// Leaves the test case. A skip always says why.
#define SKIP_TEST(reason)         \
  do {                            \
    ::support::note_skip(reason); \
    return;                       \
  } while (0)
