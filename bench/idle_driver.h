// SPDX-License-Identifier: MIT
// What bench/idle_driver.cc counted. Programs find idle_counts with dlsym.
#pragma once

#include <cstdint>

struct IdleCounts {
  uint64_t launches, encodes, loads, others;
};

extern "C" const IdleCounts* idle_counts();
