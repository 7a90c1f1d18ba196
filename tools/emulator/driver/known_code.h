// SPDX-License-Identifier: MIT
// Code that was loaded before. A program may load one image again, for another context or library.
// The kernels that were parsed the first time need not be parsed again.
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
  // Code with variables is not kept, because their addresses belong to one module.
  void keep(std::shared_ptr<ptx::Module> code);

 private:
  static constexpr size_t most = 4;  // a large one takes 100 MB
  std::vector<std::shared_ptr<ptx::Module>> latest_;
};

}  // namespace emu::driver
