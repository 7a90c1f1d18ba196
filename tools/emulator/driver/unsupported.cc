// SPDX-License-Identifier: MIT
// The entry points that the emulator does not have. A caller cleans up after itself in the C
// calling conventions of x86-64 and AArch64, so one function without parameters serves every
// signature; therefore <cuda.h> is not included here.
#include "tools/emulator/driver/unsupported.h"

#include <dlfcn.h>

#include <mutex>
#include <set>
#include <string>

#include "tools/emulator/base/tell.h"

namespace {

constexpr int not_supported = 801;  // CUDA_ERROR_NOT_SUPPORTED

// The file of the code at an address: which library, or the program itself, has called.
std::string file_of(void* code) {
  Dl_info found = {};
  if (!dladdr(code, &found) || !found.dli_fname) return "the program";
  const std::string path = found.dli_fname;
  return path.substr(path.rfind('/') + 1);
}

// NVIDIA's compiler libraries ask for tables of the driver, too, and work without them, so nothing
// needs to be reported.
bool goes_on_without(const std::string& symbol, const std::string& file) {
  return symbol == "cuGetExportTable" &&
         (file.starts_with("libnvrtc.so") || file.starts_with("libnvJitLink.so"));
}

// NVIDIA's runtime library calls this one first, and there is no way around it.
const char* instead_of(const std::string& symbol) {
  return symbol == "cuGetExportTable"
             ? ". NVIDIA's CUDA runtime cannot start without it. A program that uses the runtime "
               "runs here when it loads its PTX (nvcc -ptx) and launches it through the driver "
               "API, or when it is built with -cudart none and brings the calls of the runtime "
               "along"
             : "";
}

// Told once for each name: some programs ask again and again.
int refuse(const char* symbol, void* caller) {
  static std::mutex lock;
  static std::set<std::string>& told = *new std::set<std::string>;
  std::lock_guard guard(lock);
  const std::string file = file_of(caller);
  if (!goes_on_without(symbol, file) && told.insert(symbol).second)
    emu::tell(file + " calls " + symbol +
              ", which is not emulated: it answers CUDA_ERROR_NOT_SUPPORTED" + instead_of(symbol));
  return not_supported;
}

}  // namespace

#define EMU_UNSUPPORTED(base, symbol, version)                    \
  extern "C" __attribute__((visibility("default"))) int symbol(); \
  int symbol() { return refuse(#symbol, __builtin_return_address(0)); }
#define EMU_PER_THREAD(symbol) EMU_UNSUPPORTED(, symbol, )
#include EMU_UNSUPPORTED_DEF
#undef EMU_UNSUPPORTED
#undef EMU_PER_THREAD

namespace emu::driver {

const std::vector<UnsupportedRow>& unsupported_rows() {
  static const std::vector<UnsupportedRow> rows = {
#define EMU_UNSUPPORTED(base, symbol, version) {#base, reinterpret_cast<void*>(&symbol), version},
#define EMU_PER_THREAD(symbol)
#include EMU_UNSUPPORTED_DEF
#undef EMU_UNSUPPORTED
#undef EMU_PER_THREAD
  };
  return rows;
}

}  // namespace emu::driver
