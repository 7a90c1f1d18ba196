// SPDX-License-Identifier: MIT
// Device code as the loader gets it.
#include "tools/emulator/driver/image.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/base/tell.h"
#include "tools/emulator/driver/fat_binary.h"
#include "tools/emulator/op/load.h"

namespace emu::driver {

CUresult JitOptions::read(unsigned count, CUjit_option* options, void** values) {
  if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
  auto size_of = [](Log& log, void** value) {
    log.capacity = reinterpret_cast<uintptr_t>(*value) & 0xFFFFFFFFu;  // an unsigned int
    log.filled = value;
  };
  for (unsigned i = 0; i < count; ++i) {
    switch (options[i]) {
      case CU_JIT_ERROR_LOG_BUFFER: error_.buffer = static_cast<char*>(values[i]); break;
      case CU_JIT_INFO_LOG_BUFFER: info_.buffer = static_cast<char*>(values[i]); break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: size_of(error_, &values[i]); break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: size_of(info_, &values[i]); break;
      case CU_JIT_TARGET: break;  // PTX says its own; what the device does not run is refused
      case CU_JIT_MAX_REGISTERS:
      case CU_JIT_OPTIMIZATION_LEVEL:
      case CU_JIT_TARGET_FROM_CUCONTEXT:
      case CU_JIT_FALLBACK_STRATEGY:
      case CU_JIT_GENERATE_DEBUG_INFO:
      case CU_JIT_LOG_VERBOSE:
      case CU_JIT_GENERATE_LINE_INFO:
      case CU_JIT_CACHE_MODE:
      case CU_JIT_SPLIT_COMPILE: break;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  }
  write(error_, "");
  write(info_, "");
  return CUDA_SUCCESS;
}

void JitOptions::log_error(const std::string& text) {
  write(error_, text);
  tell_without_log(text);
}

void JitOptions::tell_without_log(const std::string& text) const {
  if (!error_.buffer || !error_.capacity) tell("a module is refused: " + text);
}

void JitOptions::write(const Log& log, const std::string& text) {
  size_t written = 0;
  if (log.buffer && log.capacity) {
    written = std::min(text.size(), log.capacity - 1);
    memcpy(log.buffer, text.data(), written);
    log.buffer[written] = 0;
  }
  if (log.filled) *log.filled = reinterpret_cast<void*>(written);
}

const char* skip_comments(const char* at) {
  for (;;) {
    while (isspace(static_cast<unsigned char>(*at))) ++at;
    if (at[0] == '/' && at[1] == '/') {
      at += strcspn(at, "\n");
    } else if (at[0] == '/' && at[1] == '*') {
      at = strstr(at + 2, "*/");
      if (!at) return nullptr;
      at += 2;
    } else {
      return at;
    }
  }
}

namespace {

enum class Kind { ptx, cubin, fat_binary, unknown };

bool is_device_elf(const uint8_t* image) {
  constexpr size_t machine_at = 18;  // e_machine
  constexpr uint8_t machine_cuda = 190;
  constexpr uint8_t magic[] = {0x7F, 'E', 'L', 'F'};
  return std::equal(magic, magic + 4, image) && image[machine_at] == machine_cuda &&
         image[machine_at + 1] == 0;
}

// Reads no further than the bytes before it allow: an image's length is not known.
Kind kind_of(const void* image) {
  const auto* bytes = static_cast<const uint8_t*>(image);
  if (bytes[0] == 0x7F) return is_device_elf(bytes) ? Kind::cubin : Kind::unknown;
  if (is_fat_binary(image)) return Kind::fat_binary;
  const char* start = skip_comments(static_cast<const char*>(image));
  return start && !strncmp(start, ".version", 8) ? Kind::ptx : Kind::unknown;
}

// The newest PTX ISA version of each driver, from the release notes in the PTX manual (10 * ISA).
int newest_ptx(int driver_version) {
  constexpr int table[][2] = {{13050, 95}, {13040, 94}, {13030, 93}, {13020, 92}, {13010, 91},
                              {13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85},
                              {12040, 84}, {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80}};
  for (auto [driver, isa] : table)
    if (driver_version >= driver) return isa;
  return 79;
}

// Empty, or why the PTX is too new for the driver. Without a readable .version the parser
// complains.
std::string version_error(const char* text, int driver_version) {
  const char* start = skip_comments(text);
  int major = 0, minor = 0;
  if (!start || sscanf(start, ".version %d.%d", &major, &minor) != 2) return {};
  int newest = newest_ptx(driver_version);
  if (major < 1000 && major * 10 + minor <= newest) return {};
  return format("%td:1: .version %d.%d is newer than this driver's %d.%d",
                1 + std::count(text, start, '\n'), major, minor, newest / 10, newest % 10);
}

LoadedImage load_ptx(std::string ptx, const DeviceRow& device, int driver_version, KnownCode& known,
                     JitOptions& options) {
  LoadedImage image;
  image.text = std::move(ptx);
  std::string too_new = version_error(image.text.c_str(), driver_version);
  if (!too_new.empty()) {
    options.log_error(too_new);
    image.status = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    return image;
  }
  image.code = known.find(image.text);
  if (image.code) return image;
  try {
    image.code = ops::load(image.text, device.capability, ptx::Reading::when_asked);
    known.keep(image.code);
  } catch (const PtxError& e) {
    options.log_error(format("%u:%u: ", e.pos.line, e.pos.column) + e.text);
    image.status = CUDA_ERROR_INVALID_PTX;
  }
  return image;
}

LoadedImage load_fat_binary(const void* data, const DeviceRow& device, int driver_version,
                            KnownCode& known, JitOptions& options) {
  FatPtx ptx = ptx_of_fat_binary(data, device.capability);
  LoadedImage refused;
  switch (ptx.verdict) {
    case FatPtx::Verdict::found:
      return load_ptx(std::move(ptx.text), device, driver_version, known, options);
    case FatPtx::Verdict::none:
      refused.status = CUDA_ERROR_NO_BINARY_FOR_GPU;
      options.tell_without_log("a fat binary has no PTX that the emulated device runs" +
                               (ptx.complaint.empty() ? "" : ": " + ptx.complaint));
      break;
    case FatPtx::Verdict::damaged:
      refused.status = CUDA_ERROR_INVALID_IMAGE;
      options.log_error(ptx.complaint);
      break;
  }
  return refused;
}

}  // namespace

LoadedImage load_image(const void* data, const DeviceRow& device, int driver_version,
                       KnownCode& known, JitOptions& options) {
  LoadedImage refused;
  switch (kind_of(data)) {
    case Kind::ptx:
      return load_ptx(static_cast<const char*>(data), device, driver_version, known, options);
    case Kind::fat_binary: return load_fat_binary(data, device, driver_version, known, options);
    case Kind::cubin:
      refused.status = CUDA_ERROR_NO_BINARY_FOR_GPU;
      options.tell_without_log("a cubin has no code for an emulated device");
      break;
    case Kind::unknown:
      refused.status = CUDA_ERROR_INVALID_IMAGE;
      options.log_error("the image is neither PTX text nor a cubin nor a fat binary");
      break;
  }
  return refused;
}

CUresult linked_ptx(CUjitInputType type, const std::string& image, const std::string& name,
                    JitOptions& options, std::string* ptx) {
  if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_CUBIN) {
    options.log_error(name +
                      ": the emulator links PTX, not fat binaries, objects, libraries or NVVM");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const char* start = skip_comments(image.c_str());
  if (start && !strncmp(start, ".version", 8)) return *ptx = image, CUDA_SUCCESS;
  constexpr size_t elf_header = 64;
  if (image.size() >= elf_header && is_device_elf(reinterpret_cast<const uint8_t*>(image.data()))) {
    options.log_error(name + ": a cubin has no code for an emulated device");
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  options.log_error(name + ": this is neither PTX text nor a cubin");
  return type == CU_JIT_INPUT_PTX ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE;
}

}  // namespace emu::driver
