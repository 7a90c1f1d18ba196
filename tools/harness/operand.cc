// SPDX-License-Identifier: MIT
#include "tools/harness/operand.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tools/harness/formats.h"

namespace support {

std::vector<int32_t> ue8m0_formats() {
  std::vector<int32_t> formats;
  for (const ScaledFormat& row : kScaledFormats)
    if (row.scale == ScaleType::ue8m0) formats.push_back(row.format);
  return formats;
}

const ScaledFormat& row_of(int32_t format) {
  for (const ScaledFormat& row : kScaledFormats)
    if (row.format == format) return row;
  throw std::invalid_argument(std::to_string(format) + " is no operand format");
}

int32_t format_of_d(int32_t d_type) {
  for (const ScaledFormat& row : kScaledFormats)
    if (row.d_type == d_type) return row.format;
  throw std::invalid_argument("D of type " + std::to_string(d_type) + " has no scales");
}

int64_t scale_block_of_d(int32_t d_type) {
  for (const ScaledFormat& row : kScaledFormats)
    if (row.d_type == d_type) return row.block;
  return 0;
}

uint64_t Random::next() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

size_t Operand::code_byte(int64_t batch, int64_t row, int64_t at) const {
  return size_t(batch * batch_stride + row * ld + at) / 2;
}

namespace {

size_t scale_byte(const Operand& o, int64_t batch, int64_t row, int64_t block) {
  return size_t(batch * o.scales_stride() + row * (o.k / o.block()) + block);
}

}  // namespace

uint8_t Operand::code(int64_t batch, int64_t row, int64_t at) const {
  return uint8_t(codes[code_byte(batch, row, at)] >> (at % 2 * 4) & 15);
}

void Operand::set_code(int64_t batch, int64_t row, int64_t at, uint8_t code) {
  uint8_t& byte = codes[code_byte(batch, row, at)];
  byte = uint8_t(at % 2 ? (byte & 0x0F) | code << 4 : (byte & 0xF0) | code);
}

uint8_t Operand::scale(int64_t batch, int64_t row, int64_t block) const {
  return scales[scale_byte(*this, batch, row, block)];
}

void Operand::set_scale(int64_t batch, int64_t row, int64_t block, uint8_t byte) {
  scales[scale_byte(*this, batch, row, block)] = byte;
}

double Operand::scale_value(uint8_t byte) const {
  switch (row_of(format).scale) {
    case ScaleType::ue4m3: return e4m3_value(byte);
    case ScaleType::ue8m0: return ue8m0_value(byte);
  }
  throw std::logic_error("no value for this type of scale");
}

double Operand::half(int64_t batch, int64_t row, int64_t at) const {
  const uint16_t bits = halves[size_t(batch * batch_stride + row * ld + at)];
  return type == NVFP4_TYPE_F16 ? f16_value(bits) : bf16_value(bits);
}

void Operand::set_half(int64_t batch, int64_t row, int64_t at, uint16_t bits) {
  halves[size_t(batch * batch_stride + row * ld + at)] = bits;
}

std::vector<uint8_t> Operand::elements() const {
  return quantized() ? codes : bytes_of(halves.data(), halves.size());
}

std::vector<uint8_t> Operand::packed(int32_t packing) const {
  nvfp4_pack_desc desc = NVFP4_PACK_DESC_INIT;
  const size_t matrix = nvfp4_packed_bytes(rows, k, packing, format);
  std::vector<uint8_t> out(matrix * size_t(l)), from_codes = codes, from_scales = scales;
  desc.n = rows, desc.k = k, desc.l = l, desc.packing = packing, desc.format = format;
  desc.codes = from_codes.data(), desc.codes_ld = ld, desc.codes_batch_stride = batch_stride;
  desc.scales = from_scales.data(), desc.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  desc.scales_batch_stride_bytes = scales_stride();
  desc.packed = out.data(), desc.packed_batch_stride_bytes = int64_t(matrix);
  if (nvfp4_pack_weights_host(&desc) != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
  return out;
}

// Place by place: which element of which row is there (docs/packing.md)?
std::vector<uint8_t> Operand::packed_tokens() const {
  std::vector<uint16_t> out;
  const int64_t slabs = (k + 255) / 256 * 4;
  for (int64_t batch = 0; batch < l; ++batch)
    for (int64_t slab = 0; slab < slabs; ++slab)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t place = 0; place < 64; ++place) {  // of an fp16 in the row's 128 bytes
          const int64_t chunk = (place / 8) ^ (row % 8);
          const int64_t of_eight = chunk % 4 + place % 2 * 4;
          const int64_t eight = slab % 4 * 2 + chunk / 4;
          const int64_t at = slab / 4 * 256 + place % 8 / 2 * 64 + eight * 8 + of_eight;
          if (at >= k) {
            out.push_back(0);
            continue;
          }
          const uint8_t byte = scale(batch, row, at / 16);
          const double value = e2m1_value(code(batch, row, at)) * scale_value(byte) / 128;
          const uint16_t sign = code(batch, row, at) < 8 ? 0 : 0x8000;
          out.push_back(std::isnan(value) ? 0x7FFF : f16_bits(std::fabs(value)) | sign);
        }
  return bytes_of(out.data(), out.size());
}

std::vector<uint8_t> Operand::interleaved_scales(uint8_t poison) const {
  const size_t linear = size_t(rows * (k / block()));
  const size_t tiles = nvfp4_scale_bytes_for(rows, k, NVFP4_SCALE_LAYOUT_128X4, format);
  const auto convert = [&](const uint8_t* from, uint8_t* to) {
    if (nvfp4_scale_convert_host(from, NVFP4_SCALE_LAYOUT_LINEAR, to, NVFP4_SCALE_LAYOUT_128X4,
                                 rows, k / block() * 16) != NVFP4_SUCCESS) {
      throw std::runtime_error(nvfp4_last_error());
    }
  };
  // Converting ones shows which bytes belong to an element: padding becomes 0.
  std::vector<uint8_t> ones(linear, 1), used(tiles), out(tiles * size_t(l));
  convert(ones.data(), used.data());
  for (int64_t batch = 0; batch < l; ++batch) {
    uint8_t* to = out.data() + size_t(batch) * tiles;
    convert(scales.data() + batch * scales_stride(), to);
    for (size_t i = 0; i < tiles; ++i) {
      if (!used[i]) to[i] = poison;
    }
  }
  return out;
}

int64_t Operand::device_scales_stride(int64_t gap, int32_t as_layout) const {
  if (as_layout == NVFP4_SCALE_LAYOUT_LINEAR) return scales_stride() + gap;
  return int64_t(nvfp4_scale_bytes_for(rows, k, as_layout, format)) + gap;
}

// The last batch ends with its last scale.
std::vector<uint8_t> Operand::device_scales(uint8_t poison, int64_t gap) const {
  const bool linear = layout == NVFP4_SCALE_LAYOUT_LINEAR;
  const std::vector<uint8_t> from = linear ? scales : interleaved_scales(poison);
  const size_t matrix = nvfp4_scale_bytes_for(rows, k, layout, format);
  const size_t from_stride = linear ? size_t(scales_stride()) : matrix;
  const size_t stride = size_t(device_scales_stride(gap, layout));
  std::vector<uint8_t> out(size_t(l - 1) * stride + matrix, poison);
  for (size_t i = 0; i < size_t(l); ++i) {
    std::copy_n(from.begin() + long(i * from_stride), matrix, out.begin() + long(i * stride));
  }
  return out;
}

Operand with_rows_reversed(const Operand& from) {
  Operand x = from;
  for (int64_t batch = 0; batch < x.l; ++batch) {
    for (int64_t row = 0; row < x.rows; ++row) {
      const int64_t other = x.rows - 1 - row;
      for (int64_t k = 0; k < x.k; ++k) x.set_code(batch, row, k, from.code(batch, other, k));
      for (int64_t i = 0; i < x.k / x.block(); ++i) {
        x.set_scale(batch, row, i, from.scale(batch, other, i));
      }
    }
  }
  return x;
}

int64_t close_ld(int64_t k) { return (k + 31) / 32 * 32; }

}  // namespace support
