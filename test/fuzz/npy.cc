// SPDX-License-Identifier: MIT
// NumPy files into the command line's reader: a matrix as large as its values, or a refusal.
#include <sstream>

#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/npy.h"
#include "tools/testing/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  std::istringstream file(std::string(reinterpret_cast<const char*>(data), bytes));
  try {
    const nvfp4_tool::Matrix m = nvfp4_tool::read_npy(file, "input");
    fuzz::expect(m.rows >= 0 && m.columns >= 0, "a size below 0");
    fuzz::expect(uint64_t(m.rows) * uint64_t(m.columns) == m.values.size(), "sizes and values");
    fuzz::expect(m.values.size() * sizeof(uint16_t) <= bytes, "more values than the file has");
  } catch (const nvfp4_tool::UsageError&) {
  }
  return 0;
}
