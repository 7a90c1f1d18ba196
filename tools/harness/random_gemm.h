// SPDX-License-Identifier: MIT
// Random problems of every field of nvfp4_gemm_desc, each run on the device and compared with
// nvfp4_gemm_reference: bits where sums are exact, else the bound. What lies around the arrays is
// compared, too. A problem that fails can be written in a line and made simpler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/harness/driver.h"
#include "tools/harness/fields.h"

namespace support {

struct RandomGemm {
#define PART(name, simplest) int64_t name = simplest;
#include "tools/harness/random_gemm.def"
  Fields fields;  // without gaps, and c_is_d
};

// "m=5,k16=3": what differs from the simplest problem; throws std::invalid_argument for other text.
std::string to_line(const RandomGemm& problem);
RandomGemm from_line(const std::string& line);

// The number-th problem of a seed. Only 9.0 multiplies tokens that are not quantized.
RandomGemm draw_gemm(uint64_t seed, uint64_t number, int capability);

// One allocation of the device, for problems one after the other; of one thread.
class GemmArena {
 public:
  explicit GemmArena(const Driver& driver);
  ~GemmArena();
  GemmArena(const GemmArena&) = delete;
  GemmArena& operator=(const GemmArena&) = delete;

  // "" or what is wrong: the library's refusal, the first difference, or what was written beside D.
  std::string complaint(const RandomGemm& problem);

 private:
  const Driver& driver_;
  int capability_;
  CUdeviceptr base_ = 0;
};

// The simplest problem found that still fails, in at most so many runs.
RandomGemm shrink(GemmArena& arena, RandomGemm failing, int runs);

}  // namespace support
