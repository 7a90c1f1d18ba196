// SPDX-License-Identifier: MIT
// Fat binaries: several images of one program in a container, which the driver chooses from. The
// format is NVIDIA's and not published; what stands here was read off what fatbinary 13.0 writes.
#pragma once

#include <string>

namespace emu::driver {

bool is_fat_binary(const void* image);  // the container, or the wrapper that nvcc puts around it

struct FatPtx {
  enum class Verdict { found, none, damaged } verdict = Verdict::none;
  std::string text;
  std::string complaint;  // why there is none, if that is not plain
};

// The PTX of the highest target that runs on the device. Trusts the container's length as the
// driver does; nothing beyond it is read.
FatPtx ptx_of_fat_binary(const void* image, int compute_capability);

}  // namespace emu::driver
