// SPDX-License-Identifier: MIT
#include "nvfp4/npy.h"

#if __has_include(<xtensor/io/xnpy.hpp>)  // 0.26 sorted its headers into folders
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/io/xnpy.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xnpy.hpp>
#endif

#include <fstream>

#include "nvfp4/commands.h"

namespace nvfp4_tool {

Matrix load_npy(const std::string& path) {
  xt::xarray<float> array;
  std::ifstream file(path, std::ios::binary);
  try {
    array = xt::load_npy<float>(file);
  } catch (const std::exception& error) {
    throw UsageError(path + ": expected fp32 values in NumPy's format: " + error.what());
  }
  // xtensor does not look at how much it could read.
  if (!file) throw UsageError(path + ": is shorter than its header says");
  if (array.dimension() != 2) {
    throw UsageError(path + ": has " + std::to_string(array.dimension()) + " dimensions, not 2");
  }
  Matrix m;
  m.rows = int64_t(array.shape(0));
  m.columns = int64_t(array.shape(1));
  m.values.assign(array.begin(), array.end());
  return m;
}

void save_npy(const std::string& path, int64_t batches, int64_t rows, int64_t columns,
              const std::vector<float>& values) {
  std::vector<size_t> shape = {size_t(rows), size_t(columns)};
  if (batches != 1) shape.insert(shape.begin(), size_t(batches));
  xt::dump_npy(path, xt::adapt(values, shape));
}

}  // namespace nvfp4_tool
