// SPDX-License-Identifier: MIT
// The entry points that exist and answer CUDA_ERROR_NOT_SUPPORTED (unsupported.awk).
#pragma once

#include <string_view>
#include <vector>

namespace emu::driver {

struct UnsupportedRow {
  std::string_view base;
  void* address;
  int version;
};
const std::vector<UnsupportedRow>& unsupported_rows();

}  // namespace emu::driver
