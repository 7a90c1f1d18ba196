// SPDX-License-Identifier: MIT
#include "bench/layers.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace bench {

std::vector<std::pair<int64_t, int64_t>> read_layers(const std::string& path) {
  std::vector<std::pair<int64_t, int64_t>> layers;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  if (line != "model,layer,tensor_parallel,n,k")
    throw std::runtime_error(path + " does not begin with model,layer,tensor_parallel,n,k");
  while (std::getline(file, line)) {
    const size_t k = line.rfind(','), n = line.rfind(',', k - 1);
    if (k == std::string::npos || n == std::string::npos)
      throw std::runtime_error(path + " has no n and k in: " + line);
    const std::pair<int64_t, int64_t> layer{std::stoll(line.substr(n + 1)),
                                            std::stoll(line.substr(k + 1))};
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  return layers;
}

}  // namespace bench
