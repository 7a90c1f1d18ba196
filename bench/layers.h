// SPDX-License-Identifier: MIT
// Files of layers such as bench/layers.csv.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// model,layer,tensor_parallel,n,k: each distinct (n, k) once, in the order of the file.
std::vector<std::pair<int64_t, int64_t>> read_layers(const std::string& path);

}  // namespace bench
