// SPDX-License-Identifier: MIT
// Device code as the loader gets it: what kind of image, whether this device runs it, and the JIT
// log.
#pragma once

#include "tools/emulator/driver/cuda_api.h"

#include <memory>
#include <string>

#include "tools/emulator/driver/device.h"
#include "tools/emulator/driver/known_code.h"
#include "tools/emulator/ptx/module.h"

namespace emu::driver {

// The options of cuModuleLoadDataEx and cuLibraryLoadData. Those that steer ptxas's optimiser are
// accepted and do nothing; those that would change the code's meaning or ask for linking are
// refused.
class JitOptions {
 public:
  CUresult read(unsigned count, CUjit_option* options, void** values);
  // Into the caller's error log, cut to its size; to stderr if the caller gave none.
  void log_error(const std::string& text);
  // Writes to stderr if the caller gave no log, and else nothing: for errors that the real driver
  // does not log.
  void tell_without_log(const std::string& text) const;

 private:
  struct Log {
    char* buffer = nullptr;
    size_t capacity = 0;
    void** filled = nullptr;  // the size option's value: characters written (measured: no NUL)
  };
  static void write(const Log& log, const std::string& text);
  Log error_, info_;
};

// Past white space and comments, which nvcc's PTX starts with; nullptr if a comment does not end.
const char* skip_comments(const char* at);

struct LoadedImage {
  CUresult status = CUDA_SUCCESS;
  std::string text;  // PTX
  std::shared_ptr<ptx::Module> code;
};

// PTX is parsed here and now, as the real driver compiles it. Its errors are 218 (222 for a
// .version newer than the driver) with "line:column: sentence" in the log. Text that is `known` is
// not parsed again. From a fat binary the PTX that the device runs is taken. If there is none, or
// for a cubin, there is no code for an emulated device (209). Everything else is 200.
LoadedImage load_image(const void* image, const DeviceRow& device, int driver_version,
                       KnownCode& known, JitOptions& options);

// The PTX of one input of the linker, which may call itself a cubin: so cuLinkComplete's result may
// be linked again. Everything else is refused with a sentence in the log, which names the input.
CUresult linked_ptx(CUjitInputType type, const std::string& image, const std::string& name,
                    JitOptions& options, std::string* ptx);

}  // namespace emu::driver
