// SPDX-License-Identifier: MIT
// cuLink*: PTX texts put together to one. The result, which NVIDIA's driver calls a cubin, is PTX
// text here, and cuModuleLoadData takes it.
#pragma once

#include "tools/emulator/driver/cuda_api.h"

#include <string>
#include <string_view>

#include "tools/emulator/driver/image.h"

namespace emu::driver {

class Linker {
 public:
  JitOptions log;         // of cuLinkCreate; its buffers live as long as the linker
  bool complete = false;  // text() is final, and has been handed out

  // Takes the text up to its first NUL. A single text stays as it is, with its line numbers;
  // several get one header. INVALID_PTX with a sentence in the log if they cannot.
  CUresult add(std::string_view ptx, const std::string& name);
  const std::string& text() const { return text_; }

 private:
  CUresult refuse(const std::string& sentence);
  unsigned inputs_ = 0;
  std::string text_;
};

}  // namespace emu::driver
