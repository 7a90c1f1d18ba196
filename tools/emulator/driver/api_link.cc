// SPDX-License-Identifier: MIT
// The linker: cuLinkCreate to cuLinkDestroy.
#include "tools/emulator/driver/call.h"

#include <fstream>
#include <sstream>

using namespace emu::driver;

namespace {

template <class Body>
CUresult on_linker(Entry entry, CUlinkState handle, Body&& body) {
  return in_context(entry, [&](State& s, Context&) {
    Linker* linker = s.linkers.find(handle);
    if (!linker) return CUDA_ERROR_INVALID_HANDLE;
    return body(s, *linker);
  });
}

// Where the options of one input name a log, what is wrong with that input goes there.
CUresult add(Linker& linker, CUjitInputType type, const std::string& image, const std::string& name,
             unsigned count, CUjit_option* options, void** values) {
  if (linker.complete || type < 0 || type >= CU_JIT_NUM_INPUT_TYPES)
    return CUDA_ERROR_INVALID_VALUE;
  JitOptions own = linker.log;
  if (count)
    if (CUresult r = own.read(count, options, values)) return r;
  std::string ptx;
  if (CUresult r = linked_ptx(type, image, name, own, &ptx)) return r;
  return linker.add(ptx, name);
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values,
                         CUlinkState* state) {
  return in_context(Entry::cuLinkCreate_v2, [&](State& s, Context&) {
    if (!state) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<Linker>();
    if (CUresult r = made->log.read(count, options, values)) return r;
    *state = s.linkers.insert(std::move(made));
    return CUDA_SUCCESS;
  });
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t bytes,
                          const char* name, unsigned int count, CUjit_option* options,
                          void** values) {
  return on_linker(Entry::cuLinkAddData_v2, state, [&](State&, Linker& linker) {
    if (!data || !bytes) return CUDA_ERROR_INVALID_VALUE;
    const std::string image(static_cast<const char*>(data), bytes);
    return add(linker, type, image, name && *name ? name : "input", count, options, values);
  });
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path,
                          unsigned int count, CUjit_option* options, void** values) {
  return on_linker(Entry::cuLinkAddFile_v2, state, [&](State&, Linker& linker) {
    if (!path) return CUDA_ERROR_INVALID_VALUE;
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    std::stringstream image;
    image << file.rdbuf();
    return add(linker, type, image.str(), path, count, options, values);
  });
}

// The size counts the NUL at the end: a copy of that many bytes can be loaded.
CUresult cuLinkComplete(CUlinkState state, void** image, size_t* bytes) {
  return on_linker(Entry::cuLinkComplete, state, [&](State& s, Linker& linker) {
    if (!image || !bytes) return CUDA_ERROR_INVALID_VALUE;
    const std::string& text = linker.text();
    LoadedImage read =
        load_image(text.c_str(), *s.device, s.driver_version(), s.known_code, linker.log);
    if (read.status) return read.status;
    linker.complete = true;
    *image = const_cast<char*>(text.c_str());
    *bytes = text.size() + 1;
    return CUDA_SUCCESS;
  });
}

CUresult cuLinkDestroy(CUlinkState state) {
  return on_linker(Entry::cuLinkDestroy, state, [&](State& s, Linker&) {
    s.linkers.erase(state);
    return CUDA_SUCCESS;
  });
}
