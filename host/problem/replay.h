// SPDX-License-Identifier: MIT
// The command line that makes a problem again.
#pragma once

#include <cstddef>

#include "nvfp4_gemm.h"

namespace nvfp4 {

constexpr size_t kReplayBytes = 1024;  // fifteen numbers of 20 digits and their names fit

// "nvfp4 run --m ...": sizes, and whatever else of the problem differs from the default. K > 0.
void write_replay(const nvfp4_gemm_desc& desc, char* text, size_t bytes);

// An NVFP4_ACTIVATION_ in that line: "gelu-tanh", for example.
const char* activation_word(int32_t activation);

}  // namespace nvfp4
