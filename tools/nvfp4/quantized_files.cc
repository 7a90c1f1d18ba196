// SPDX-License-Identifier: MIT
#include "tools/nvfp4/inputs.h"

#include <cmath>
#include <filesystem>

#include "nvfp4_gemm.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/npy.h"

namespace nvfp4_tool {

namespace {

using Sizes = std::vector<uint64_t>;

std::string words_of(const Sizes& sizes) {
  std::string text;
  for (const uint64_t size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "a single value" : text;
}

[[noreturn]] void refuse(const std::string& file, const Sizes& is, const std::string& expected) {
  throw UsageError(file + ": is " + words_of(is) + "; expected " + expected);
}

std::vector<uint8_t> linear_scales(const std::string& file, const QuantizedMatrix& q) {
  Array<uint8_t> stored = load_npy_bytes(file);
  const uint64_t rows = uint64_t(q.rows), columns = uint64_t(q.columns);
  const Sizes linear = {rows, columns / 16};
  const Sizes tiles = {(rows + 127) / 128, (columns + 63) / 64, 512};
  if (stored.shape == linear) return std::move(stored.values);
  if (stored.shape != tiles) {
    refuse(
        file, stored.shape,
        words_of(linear) + ", linear, or " + words_of(tiles) + ", 128x4 tiles, beside its codes");
  }
  std::vector<uint8_t> scales(size_t(rows * (columns / 16)));
  if (nvfp4_scale_convert_host(stored.values.data(), NVFP4_SCALE_LAYOUT_128X4, scales.data(),
                               NVFP4_SCALE_LAYOUT_LINEAR, q.rows, q.columns) != NVFP4_SUCCESS) {
    throw UsageError(file + ": " + nvfp4_last_error());
  }
  return scales;
}

float tensor_scale(const std::string& file) {
  const Array<float> stored = load_npy_floats(file);
  if (stored.shape != Sizes{1}) {
    refuse(file, stored.shape,
           "1, a multiplier for the whole matrix: nvfp4 run takes none for each row, as --rows "
           "writes them");
  }
  const float value = stored.values[0];
  if (std::isfinite(value) && value > 0) return value;
  throw UsageError(file + ": " + std::to_string(value) + " is not finite and positive");
}

}  // namespace

QuantizedMatrix load_quantized(const std::string& prefix) {
  const std::string file = prefix + ".codes.npy";
  Array<uint8_t> codes = load_npy_bytes(file);
  if (codes.shape.size() != 2 || codes.values.empty() || codes.shape[1] % 8 != 0) {
    refuse(file, codes.shape, "rows x K / 2, and K a multiple of 16");
  }
  QuantizedMatrix q;
  q.rows = int64_t(codes.shape[0]), q.columns = int64_t(codes.shape[1] * 2);
  q.codes = std::move(codes.values);
  q.scales = linear_scales(prefix + ".scales.npy", q);
  q.tensor_scale = tensor_scale(prefix + ".tensor_scale.npy");
  const std::string packed = prefix + ".packed.npy";
  if (std::filesystem::exists(packed)) q.packed = load_npy_bytes(packed);
  return q;
}

Sizes packed_shape(int64_t rows, int64_t columns, int32_t packing) {
  const auto bytes = [&](int64_t n, int64_t k) {
    return uint64_t(nvfp4_packed_bytes(n, k, packing, NVFP4_OPERAND_FORMAT_NVFP4));
  };
  const uint64_t unit = bytes(1, 16), blocks = bytes(rows, 16) / unit;
  return {blocks, bytes(1, columns) / unit, unit};
}

int32_t packing_of(const QuantizedMatrix& q, const support::Operand& weights,
                   const std::string& prefix) {
  if (!q.packed) return NVFP4_PACKING_NONE;
  const std::string file = prefix + ".packed.npy";
  std::string units;
  for (const int32_t packing : {NVFP4_PACKING_SM90_1, NVFP4_PACKING_SM100_1}) {
    const Sizes shape = packed_shape(q.rows, q.columns, packing);
    if (q.packed->shape == shape) {
      if (q.packed->values == weights.packed(packing)) return packing;
      throw UsageError(file + ": holds other weights than the codes and scales beside it");
    }
    units += (units.empty() ? "" : " or ") + words_of(shape);
  }
  refuse(file, q.packed->shape, units + ", units of the codes beside it");
}

}  // namespace nvfp4_tool
