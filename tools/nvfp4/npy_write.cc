// SPDX-License-Identifier: MIT
#include <fstream>

#include "tools/nvfp4/npy.h"

#if __has_include(<xtensor/io/xnpy.hpp>)  // 0.26 sorted its headers into folders
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/io/xnpy.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xnpy.hpp>
#endif

namespace nvfp4_tool {

namespace {

// xtensor's own way to a file does not notice a full disk.
template <typename Value>
void write(const std::string& path, const std::vector<size_t>& shape,
           const std::vector<Value>& values) {
  std::ofstream file(path, std::ios::binary);
  file << xt::dump_npy(xt::adapt(values, shape));
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace

void save_npy(const std::string& path, const std::vector<size_t>& shape,
              const std::vector<float>& values) {
  write(path, shape, values);
}

void save_npy(const std::string& path, const std::vector<size_t>& shape,
              const std::vector<uint8_t>& values) {
  write(path, shape, values);
}

}  // namespace nvfp4_tool
