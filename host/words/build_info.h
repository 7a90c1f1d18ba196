// SPDX-License-Identifier: MIT
// What the library was built from, in one line.
#pragma once

namespace nvfp4 {

// Version, compiler of the kernels, and the images: of each the compute capabilities that it
// serves, and the oldest CUDA whose driver loads it. A static string.
const char* build_info();

}  // namespace nvfp4
