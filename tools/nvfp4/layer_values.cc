// SPDX-License-Identifier: MIT
#include "tools/nvfp4/layer_values.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "nvfp4_gemm.h"

namespace nvfp4_tool {

namespace {

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

constexpr double kLargestCode = 6;

double ue4m3(uint8_t byte) {
  const int exponent = byte >> 3, mantissa = byte & 7;
  return std::ldexp(exponent == 0 ? mantissa : 8 + mantissa, std::max(exponent, 1) - 10);
}

double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) value = mantissa ? NAN : INFINITY;
  return bits & 0x8000 ? -value : value;
}

template <typename T>
T load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

double float_of_bf16(const uint8_t* bytes) {
  const uint32_t bits = uint32_t(load<uint16_t>(bytes)) << 16;
  return double(load<float>(reinterpret_cast<const uint8_t*>(&bits)));
}

// The value for an expert; a single value serves all.
double one_of(const std::vector<double>& values, int64_t expert) {
  return values.size() == 1 ? values[0] : values[size_t(expert)];
}

double tensor_scale(const Layer& layer, int64_t expert, TensorReader& reader) {
  if (layer.tensor_scale == nullptr) return 1;
  const double value = one_of(reader.values(*layer.tensor_scale), expert);
  const bool divides = layer.dialect->direction == Direction::divides;
  if (!std::isfinite(value) || value < 0 || (divides && value == 0)) {
    throw Refusal{layer.tensor_scale->name, text_of(value),
                  divides ? "a finite positive number" : "a finite non-negative number"};
  }
  if (divides) return 1 / value;
  if (layer.dialect->direction == Direction::multiplies) return value;
  double largest = 448;
  if (const TensorInfo* said = layer.at(Use::e4m3_max)) {
    largest = one_of(reader.values(*said), 0);
    if (largest != 448 && largest != 256) {
      throw Refusal{said->name, text_of(largest), "448 or 256"};
    }
  }
  return value == 0 ? 1 : value / (6 * largest);
}

// ggml: 4 scales, then for each 16 elements 8 bytes, byte j with element j low and j + 8 high.
void unpack_blocks(const Layer& layer, const std::vector<uint8_t>& blocks, MatrixBytes& out) {
  out.codes.assign(size_t(out.n * out.k / 2), 0);
  out.scales.resize(size_t(out.n * out.k / 16));
  for (size_t block = 0; block < blocks.size() / 36; ++block) {
    const uint8_t* from = &blocks[block * 36];
    for (size_t i = 0; i < 4; ++i) {
      if (from[i] > 0x7F) {
        throw Refusal{layer.scales->name, "a scale has bit 7 set, which UE4M3 has not",
                      "UE4M3, finite"};
      }
      // The scale that is NaN elsewhere is 0 there.
      out.scales[block * 4 + i] = from[i] == 0x7F ? 0 : from[i];
      for (size_t j = 0; j < 16; ++j) {
        const int code = from[4 + i * 8 + j % 8] >> (j / 8 * 4) & 15;
        out.codes[block * 32 + i * 8 + j / 2] |= uint8_t(code << (j % 2 * 4));
      }
    }
  }
}

// ggml: a scale, then 16 bytes, byte j with element j low and j + 16 high.
void unpack_mxfp4_blocks(const std::vector<uint8_t>& blocks, MatrixBytes& out) {
  out.codes.assign(size_t(out.n * out.k / 2), 0);
  out.scales.resize(size_t(out.n * out.k / 32));
  for (size_t block = 0; block < out.scales.size(); ++block) {
    const uint8_t* from = &blocks[block * 17];
    out.scales[block] = from[0];
    for (size_t j = 0; j < 32; ++j) {
      const int code = from[1 + j % 16] >> (j / 16 * 4) & 15;
      out.codes[block * 16 + j / 2] |= uint8_t(code << (j % 2 * 4));
    }
  }
}

// Reorders scales, as the file stores them, to [n, k / 16].
std::vector<uint8_t> linear_scales(const Layer& layer, std::vector<uint8_t> bytes, bool tiles) {
  const int64_t n = layer.n(), k = layer.k();
  const Layout layout = layer.dialect->layout;
  const bool linear = layout == Layout::linear || layout == Layout::words;
  if (!tiles && (linear || layer.dialect->mxfp4())) return bytes;
  const int64_t across = k / (layer.dialect->mxfp4() ? 32 : 16);
  std::vector<uint8_t> scales(size_t(n * across));
  if (tiles) {
    if (nvfp4_scale_convert_host(bytes.data(), NVFP4_SCALE_LAYOUT_128X4, scales.data(),
                                 NVFP4_SCALE_LAYOUT_LINEAR, n, across * 16) != NVFP4_SUCCESS) {
      throw Refusal{layer.scales->name, nvfp4_last_error(), "scales of the codes' shape"};
    }
    return scales;
  }
  const int64_t pitch = (k + 63) / 64 * 4;
  for (int64_t row = 0; row < n; ++row) {
    std::memcpy(&scales[size_t(row * (k / 16))], &bytes[size_t(row * pitch)], size_t(k / 16));
  }
  return scales;
}

// For the codes of scale i.
bool all_zero(const MatrixBytes& matrix, size_t i) {
  const size_t bytes = size_t(matrix.block) / 2;
  uint64_t any = 0;
  for (size_t at = 0; at < bytes; at += 8) any |= load<uint64_t>(&matrix.codes[i * bytes + at]);
  return (any & 0x7777777777777777) == 0;
}

bool is_nan(const MatrixBytes& matrix, uint8_t scale) {
  return matrix.ue8m0 ? scale == 0xFF : (scale & 0x7F) == 0x7F;
}

void check_scale_bytes(const Layer& layer, const MatrixBytes& matrix, const std::string& name) {
  const int64_t across = matrix.k / matrix.block;
  for (const bool nan : {false, true}) {
    for (size_t i = 0; i < matrix.scales.size(); ++i) {
      const uint8_t scale = matrix.scales[i];
      const bool none = is_nan(matrix, scale), negative = !matrix.ue8m0 && scale > 0x80;
      const bool bad = nan ? none && !all_zero(matrix, i) : negative && !none;
      if (!bad) continue;
      char what[96];
      std::snprintf(what, sizeof what, "row %lld, block %lld is 0x%02x, %s",
                    static_cast<long long>(int64_t(i) / across),
                    static_cast<long long>(int64_t(i) % across), unsigned(scale),
                    nan ? "NaN, over codes that are not 0" : "negative; UE4M3 has no sign");
      throw Refusal{name.empty() ? layer.scales->name : name, what,
                    matrix.ue8m0 ? "UE8M0, finite" : "UE4M3, finite"};
    }
  }
}

}  // namespace

std::vector<uint8_t> TensorReader::bytes(const TensorInfo& tensor, int64_t part, int64_t parts) {
  if (!file_ || path_ != tensor.file) {
    file_.reset();
    file_.emplace(tensor.file);
    path_ = tensor.file;
  }
  const uint64_t size = tensor.bytes / uint64_t(parts);
  return file_->read(tensor.begin + uint64_t(part) * size, size);
}

std::vector<double> TensorReader::values(const TensorInfo& tensor) {
  const std::vector<uint8_t> data = bytes(tensor);
  std::vector<double> out;
  const auto each = [&](size_t size, auto value) {
    for (size_t i = 0; i + size <= data.size(); i += size) out.push_back(value(&data[i]));
  };
  if (tensor.dtype == "F32") {
    each(4, [](const uint8_t* at) { return double(load<float>(at)); });
  } else if (tensor.dtype == "F16") {
    each(2, [](const uint8_t* at) { return half_value(load<uint16_t>(at)); });
  } else if (tensor.dtype == "BF16") {
    each(2, float_of_bf16);
  } else if (tensor.dtype == "F64") {
    each(8, [](const uint8_t* at) { return load<double>(at); });
  } else if (tensor.dtype == "I64") {
    each(8, [](const uint8_t* at) { return double(load<int64_t>(at)); });
  } else if (tensor.dtype == "I32") {
    each(4, [](const uint8_t* at) { return double(load<int32_t>(at)); });
  } else if (tensor.dtype == "U8" || tensor.dtype == "BOOL") {
    each(1, [](const uint8_t* at) { return double(*at); });
  } else {
    throw Refusal{tensor.name, "of " + tensor.dtype, "F32"};
  }
  return out;
}

MatrixBytes read_matrix(const Layer& layer, int64_t expert, TensorReader& reader) {
  if (const TensorInfo* declared = layer.at(Use::declaration)) {
    const std::vector<uint8_t> json = reader.bytes(*declared);
    check_declaration(declared->name, std::string(json.begin(), json.end()));
  }
  MatrixBytes matrix;
  matrix.n = layer.n(), matrix.k = layer.k();
  matrix.tensor_scale = tensor_scale(layer, expert, reader);
  matrix.codes = reader.bytes(*layer.codes, expert, layer.experts());
  if (layer.dialect->layout == Layout::blocks) {
    const std::vector<uint8_t> blocks = std::move(matrix.codes);
    unpack_blocks(layer, blocks, matrix);
    return matrix;
  }
  if (layer.dialect->mxfp4()) matrix.block = 32;
  matrix.ue8m0 = layer.dialect->ue8m0();
  if (layer.dialect->layout == Layout::mxfp4_blocks) {
    const std::vector<uint8_t> blocks = std::move(matrix.codes);
    unpack_mxfp4_blocks(blocks, matrix);
    check_scale_bytes(layer, matrix, "");
    return matrix;
  }
  if (layer.dialect->nibbles == Nibbles::high_first) {
    for (uint8_t& byte : matrix.codes) byte = uint8_t(byte >> 4 | byte << 4);
  }
  const TensorInfo* swizzled = layer.at(Use::swizzled);
  matrix.tiles = layer.dialect->tiles() || (swizzled && one_of(reader.values(*swizzled), 0) != 0);
  matrix.scales =
      linear_scales(layer, reader.bytes(*layer.scales, expert, layer.experts()), matrix.tiles);
  check_scale_bytes(layer, matrix,
                    layer.stacked() ? layer.scales->name + "[" + std::to_string(expert) + "]" : "");
  return matrix;
}

std::optional<double> read_input_scale(const Layer& layer, TensorReader& reader) {
  for (const Use use : {Use::input_scale, Use::input_divisor}) {
    const TensorInfo* tensor = layer.at(use);
    if (tensor == nullptr) continue;
    double first = 0;
    for (const double value : reader.values(*tensor)) {
      if (!std::isfinite(value) || value <= 0) {
        throw Refusal{tensor->name, text_of(value), "a finite positive number"};
      }
      if (first == 0) first = use == Use::input_divisor ? 1 / value : value;
    }
    return first;
  }
  return std::nullopt;
}

std::vector<double> read_pre_quant_scale(const Layer& layer, TensorReader& reader) {
  const TensorInfo* tensor = layer.at(Use::pre_quant);
  if (tensor == nullptr) return {};
  std::vector<double> values = reader.values(*tensor);
  for (const double value : values) {
    if (!std::isfinite(value)) {
      throw Refusal{tensor->name, "not finite everywhere", "finite numbers"};
    }
  }
  return values;
}

Statistics statistics_of(const MatrixBytes& matrix) {
  Statistics found;
  found.blocks = int64_t(matrix.scales.size());
  for (size_t i = 0; i < matrix.scales.size(); ++i) {
    const uint8_t byte = matrix.scales[i];
    const uint8_t scale = matrix.ue8m0 ? byte : byte & 0x7F;
    const bool zero = all_zero(matrix, i), nan = is_nan(matrix, byte);
    found.zero += zero;
    found.nan_over_zeros += zero && nan;
    found.saturated += scale == (matrix.ue8m0 ? 0xFE : 0x7E);
    found.lost += scale == 0 && !zero && !matrix.ue8m0;
    const int exponent = matrix.ue8m0 ? std::clamp(int(scale) - 120, 0, 15) : scale >> 3;
    if (nan) continue;
    ++found.histogram[size_t(exponent)];
    found.largest = std::max(found.largest, scale);
  }
  return found;
}

std::optional<Refusal> values_refused(const Layer& layer, const MatrixBytes& matrix,
                                      const Statistics& seen, int64_t expert) {
  if (matrix.ue8m0) return std::nullopt;
  const std::string& scale = (layer.tensor_scale ? layer.tensor_scale : layer.codes)->name;
  const double t = matrix.tensor_scale, largest = kLargestCode * ue4m3(seen.largest) * t;
  const int64_t used = seen.blocks - seen.zero;
  if (t == 0 && used > 0) return Refusal{scale, "0, over codes that are not", "a positive number"};
  if (largest > double(limit::largest_weight)) {
    return Refusal{scale,
                   text_of(t) + " as a multiplier, which makes weights of " + text_of(largest),
                   "weights of at most " + std::to_string(limit::largest_weight) +
                       "; it may be the reciprocal"};
  }
  if (seen.lost == 0 || seen.lost * limit::lost_blocks < used) return std::nullopt;
  return Refusal{layer.scales->name + (layer.stacked() ? "[" + std::to_string(expert) + "]" : ""),
                 "0 over codes that are not in " + std::to_string(seen.lost) + " of " +
                     std::to_string(used) + " blocks",
                 "fewer than one of " + std::to_string(limit::lost_blocks)};
}

}  // namespace nvfp4_tool
