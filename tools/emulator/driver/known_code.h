// SPDX-License-Identifier: MIT
// Code that was loaded before. A program loads one image again, for another context or library, and
// the kernels of a large one that were read then need not be read twice.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "tools/emulator/ptx/module.h"

namespace emu::driver {

class KnownCode {
 public:
  std::shared_ptr<ptx::Module> find(std::string_view text) const;  // nullptr: not known
  // Code with variables is not: their addresses are those of one module.
  void keep(std::shared_ptr<ptx::Module> code);

 private:
  static constexpr size_t most = 4;  // a large one takes 100 MB
  std::vector<std::shared_ptr<ptx::Module>> latest_;
};

}  // namespace emu::driver
