// SPDX-License-Identifier: MIT
// A table of measured variants as the header describes it: read once, then asked for problems.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/plan/variant.h"

namespace nvfp4 {

struct TuningRow {
  int64_t n, k, l, first_m, last_m;
  int32_t a_type;
  const char* variant;  // a string of the library's
};

constexpr size_t kMostTuningLines = 65536;

// The device that a table is opened for.
struct TunedDevice {
  const char* name;  // NULL: any
  int32_t capability, sm_count;
};

// Text and device in; rows, of which there is room for as many as the text has lines, sorted out.
nvfp4_status read_tuning(const char* text, size_t bytes, const TunedDevice& device, TuningRow* rows,
                         size_t* count);

size_t count_lines(const char* text, size_t bytes);

// NULL where no row covers the problem.
const TuningRow* find_row(const TuningRow* rows, size_t count, const nvfp4_gemm_desc& desc);

}  // namespace nvfp4
