// SPDX-License-Identifier: MIT
// See emulate.h. The loader reads LD_LIBRARY_PATH when a program starts, so the program starts
// again.
#include "tools/nvfp4/emulate.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "nvfp4_gemm.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string this_program() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, size_t(length)) : "";
}

// Folder that this process loaded the library from.
std::string library_folder() {
  Dl_info info{};
  void* const function = dlsym(RTLD_DEFAULT, "nvfp4_version");
  return function && dladdr(function, &info) && info.dli_fname ? folder_of(info.dli_fname) : "";
}

}  // namespace

int emulate(char** argv) {
  const std::string program = this_program();
  // In the build tree beside the program; installed, beside the library and outside every search
  // path.
  const std::string places[] = {folder_of(program) + "/emulator",
                                library_folder() + "/nvfp4gemm/emulator"};
  for (const std::string& place : places) {
    if (access((place + "/libcuda.so.1").c_str(), R_OK) != 0) continue;
    const char* const before = std::getenv("LD_LIBRARY_PATH");
    setenv("LD_LIBRARY_PATH", (before && *before ? place + ":" + before : place).c_str(), 1);
    argv[1] = argv[0];
    execv(program.c_str(), argv + 1);
    std::perror(("nvfp4: --emulate: " + program).c_str());
    return kFailed;
  }
  std::fprintf(stderr,
               "nvfp4: --emulate: there is no libcuda.so.1 in %s or %s; make emulator builds it, "
               "make install EMULATOR=1 installs it\n",
               places[0].c_str(), places[1].c_str());
  return kFailed;
}

}  // namespace nvfp4_tool
