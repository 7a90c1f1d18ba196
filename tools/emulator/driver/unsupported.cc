// SPDX-License-Identifier: MIT
// The entry points that the emulator does not have. A caller cleans up after itself in the C
// calling conventions of x86-64 and AArch64, so one function without parameters serves every
// signature; therefore <cuda.h> is not included here.
#include "tools/emulator/driver/unsupported.h"

#include <mutex>
#include <set>
#include <string>

#include "tools/emulator/base/tell.h"

namespace {

constexpr int not_supported = 801;  // CUDA_ERROR_NOT_SUPPORTED

// NVIDIA's runtime library calls this one first, and there is no way around it.
const char* instead_of(const std::string& symbol) {
  return symbol == "cuGetExportTable"
             ? ". NVIDIA's CUDA runtime cannot start without it. Such a program runs here when it "
               "loads its PTX (nvcc -ptx) and launches it through the driver API, or when it is "
               "built with -cudart none and brings the calls of the runtime along"
             : "";
}

// Told once for each name: some programs ask again and again.
int refuse(const char* symbol) {
  static std::mutex lock;
  static std::set<std::string>& told = *new std::set<std::string>;
  std::lock_guard guard(lock);
  if (told.insert(symbol).second)
    emu::tell(std::string(symbol) + " is not emulated; it answers CUDA_ERROR_NOT_SUPPORTED" +
              instead_of(symbol));
  return not_supported;
}

}  // namespace

#define EMU_UNSUPPORTED(base, symbol, version)                    \
  extern "C" __attribute__((visibility("default"))) int symbol(); \
  int symbol() { return refuse(#symbol); }
#define EMU_PER_THREAD(symbol) EMU_UNSUPPORTED(, symbol, )
#include "tools/emulator/driver/unsupported.def"
#undef EMU_UNSUPPORTED
#undef EMU_PER_THREAD

namespace emu::driver {

const std::vector<UnsupportedRow>& unsupported_rows() {
  static const std::vector<UnsupportedRow> rows = {
#define EMU_UNSUPPORTED(base, symbol, version) {#base, reinterpret_cast<void*>(&symbol), version},
#define EMU_PER_THREAD(symbol)
#include "tools/emulator/driver/unsupported.def"
#undef EMU_UNSUPPORTED
#undef EMU_PER_THREAD
  };
  return rows;
}

}  // namespace emu::driver
