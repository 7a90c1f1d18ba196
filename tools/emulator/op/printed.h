// SPDX-License-Identifier: MIT
// What printf makes of a format in a kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace emu::ops {

struct Printed {
  std::string text;
  int arguments = 0;  // -1: the format has a directive that CUDA does not know; it stays as it is
};

// `value`: the next argument of 4 or 8 bytes; `string`: the text at an address.
Printed print_as(const std::string& format, const std::function<uint64_t(uint32_t)>& value,
                 const std::function<std::string(uint64_t)>& string);

}  // namespace emu::ops
