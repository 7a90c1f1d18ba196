// SPDX-License-Identifier: MIT
#include "tools/harness/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
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

std::string to_string(const Shape& s) {
  std::string text =
      std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k);
  return s.l == 1 ? text : text + " x " + std::to_string(s.l);
}

const char* to_string(Data data) {
  switch (data) {
    case Data::gpumode: return "gpumode";
    case Data::exact: return "exact";
    case Data::random: return "random";
  }
  return "?";
}

uint64_t Random::next() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// ---- Operand ------------------------------------------------------------------------------------

namespace {

size_t code_byte(const Operand& o, int64_t batch, int64_t row, int64_t at) {
  return size_t(batch * o.batch_stride + row * o.ld + at) / 2;
}
size_t scale_byte(const Operand& o, int64_t batch, int64_t row, int64_t block) {
  return size_t(batch * o.scales_stride() + row * (o.k / o.block()) + block);
}

}  // namespace

uint8_t Operand::code(int64_t batch, int64_t row, int64_t at) const {
  return uint8_t(codes[code_byte(*this, batch, row, at)] >> (at % 2 * 4) & 15);
}

void Operand::set_code(int64_t batch, int64_t row, int64_t at, uint8_t code) {
  uint8_t& byte = codes[code_byte(*this, batch, row, at)];
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

// ---- Problem ------------------------------------------------------------------------------------

int64_t close_ld(int64_t k) { return (k + 31) / 32 * 32; }

namespace {

Operand make_operand(int64_t rows, int64_t k, int64_t l, int64_t ld_gap, int64_t batch_gap) {
  Operand o;
  o.rows = rows, o.k = k, o.l = l;
  o.ld = close_ld(k) + ld_gap;
  o.batch_stride = rows * o.ld + batch_gap;
  o.codes.assign(size_t((l - 1) * o.batch_stride + (rows - 1) * o.ld + k) / 2, 0xFF);
  for (int64_t batch = 0; batch < l; ++batch) {
    for (int64_t row = 0; row < rows; ++row) {
      std::fill_n(o.codes.begin() + long(code_byte(o, batch, row, 0)), k / 2, uint8_t(0));
    }
  }
  o.scales.assign(size_t(l * o.scales_stride()), 0);
  return o;
}

uint8_t draw_scale(Random& random, Data data) {
  static const uint8_t small_integers[] = {0x00, 0x38, 0x40, 0x44};  // 0, 1, 2, 3
  static const uint8_t powers[] = {0x30, 0x38, 0x40};                // 1/2, 1, 2
  switch (data) {
    case Data::gpumode: return small_integers[random.below(4)];
    case Data::exact: return powers[random.below(3)];
    case Data::random: return uint8_t(random.below(127));
  }
  return 0;
}

void fill(Operand& o, Data data, Random& random) {
  for (int64_t batch = 0; batch < o.l; ++batch) {
    for (int64_t row = 0; row < o.rows; ++row) {
      const size_t first = code_byte(o, batch, row, 0);
      for (size_t i = 0; i < size_t(o.k / 2); ++i) o.codes[first + i] = uint8_t(random.below(256));
    }
  }
  for (uint8_t& byte : o.scales) byte = draw_scale(random, data);
}

// 1 / the standard deviation of an element of D: codes and scales, bytes from `first` to `last`,
// are independent, codes have mean 0.
float unit_variance_alpha(const Operand& o, int first, int last) {
  double code_square = 0, scale_square = 0;
  for (uint8_t code = 0; code < 16; ++code) code_square += std::pow(e2m1_value(code), 2) / 16;
  for (int byte = first; byte <= last; ++byte) {
    scale_square += std::pow(o.scale_value(uint8_t(byte)), 2) / (last - first + 1);
  }
  return float(1 / (code_square * scale_square * std::sqrt(double(o.k))));
}

}  // namespace

int64_t Problem::d_elements() const {
  return (shape.l - 1) * d_batch_stride + (shape.m - 1) * d_ld + shape.n;
}

Problem make_problem(const Shape& shape, const Gaps& gaps) {
  Problem p;
  p.shape = shape;
  p.a = make_operand(shape.m, shape.k, shape.l, gaps.a_ld, gaps.a_batch);
  p.b = make_operand(shape.n, shape.k, shape.l, gaps.b_ld, gaps.b_batch);
  p.d_ld = shape.n + gaps.d_ld;
  p.d_batch_stride = shape.m * p.d_ld + gaps.d_batch;
  p.scales_gap_bytes = gaps.scales_batch_bytes;
  return p;
}

Problem make_problem(const Shape& shape, Data data, uint64_t seed, const Gaps& gaps) {
  Problem p = make_problem(shape, gaps);
  Random random(seed);
  fill(p.a, data, random);
  fill(p.b, data, random);
  if (data == Data::random) p.alpha = unit_variance_alpha(p.b, 0, 126);
  return p;
}

namespace {

uint16_t draw_half(Random& random, int32_t type, Data data) {
  const int sign = random.below(2) != 0 ? -1 : 1;
  const auto bits = [&](double value) {
    return type == NVFP4_TYPE_F16 ? f16_bits(value) : bf16_bits(value);
  };
  if (data != Data::random) return bits(sign * 0.5 * (1 + random.below(8)));
  const int fraction_bits = type == NVFP4_TYPE_F16 ? 10 : 7;
  const uint32_t one = 1u << fraction_bits;
  return bits(sign *
              std::ldexp(one + random.below(one), int(random.below(16)) - 12 - fraction_bits));
}

}  // namespace

Problem with_format(Problem p, int32_t format, Data data, uint64_t seed) {
  Random random(seed + 2);
  for (Operand* o : {&p.a, &p.b}) {
    o->format = format;
    o->scales.assign(size_t(o->l * o->scales_stride()), 0);
    for (uint8_t& byte : o->scales) {
      byte = !o->ue8m0()            ? draw_scale(random, data)
             : data == Data::random ? uint8_t(118 + random.below(18))
                                    : uint8_t(126 + random.below(3));
    }
  }
  if (p.b.ue8m0() && data == Data::random) p.alpha = unit_variance_alpha(p.b, 118, 135);
  return p;
}

Problem with_a16(Problem p, int32_t a_type, Data data, uint64_t seed) {
  if (a_type == NVFP4_TYPE_NONE) return p;
  Operand& a = p.a;
  if (a.quantized()) a.halves.assign(a.codes.size() * 2, 0xFFFF);
  a.codes.clear(), a.scales.clear();
  a.type = a_type;
  Random random(seed + 1);
  for (int64_t batch = 0; batch < p.shape.l; ++batch) {
    for (int64_t row = 0; row < p.shape.m; ++row) {
      for (int64_t i = 0; i < p.shape.k; ++i) {
        a.set_half(batch, row, i, draw_half(random, a_type, data));
      }
    }
  }
  if (data == Data::random) p.alpha = 1 / float(200 * std::sqrt(double(p.shape.k)));
  return p;
}

Problem make_a16_problem(const Shape& shape, int32_t a_type, Data data, uint64_t seed,
                         const Gaps& gaps) {
  return with_a16(make_problem(shape, data, seed, gaps), a_type, data, seed);
}

Problem worst_for_wgmma(const Shape& shape) {
  if (shape.k != 256) throw std::logic_error("the worst case is one of K = 256");
  constexpr uint8_t kThree = 0x5, kSix = 0x7, kMinusSix = 0xF;
  Problem p = make_problem(shape);
  // 6 * 416 * 6 * 288 is 1.028 * 2^22, of which 2^-3 is kept; 6 / 16 * 3 * 7 / 64 is 0.123.
  const auto fill_row = [&](Operand& o, int64_t batch, int64_t row, uint8_t large, uint8_t small) {
    for (int64_t block = 0; block < 16; ++block)
      o.set_scale(batch, row, block, block == 0 || block == 15 ? large : small);
    for (int64_t i = 16; i < 240; ++i) {
      const bool twice = i / 64 < 3 && (i % 8 == 0 || i % 8 == 2);
      o.set_code(batch, row, i, &o == &p.a || twice ? kSix : kThree);
    }
    o.set_code(batch, row, 0, kSix);
    o.set_code(batch, row, 255, &o == &p.a ? kSix : kMinusSix);
  };
  for (int64_t batch = 0; batch < shape.l; ++batch) {
    for (int64_t m = 0; m < shape.m; ++m) fill_row(p.a, batch, m, 0x7D, 0x18);
    for (int64_t n = 0; n < shape.n; ++n) fill_row(p.b, batch, n, 0x79, 0x1E);
  }
  return p;
}

namespace {

struct Extent {
  double largest = 0;                                         // element times scale
  double smallest = std::numeric_limits<double>::infinity();  // a unit that divides all of them
  double row_sum = 0;  // the largest sum of absolute values along one row
};

Extent extent_of_halves(const Operand& o) {
  Extent e;
  for (int64_t batch = 0; batch < o.l; ++batch) {
    for (int64_t row = 0; row < o.rows; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < o.k; ++i) {
        const double value = std::fabs(o.half(batch, row, i));
        if (value == 0 || !std::isfinite(value)) continue;  // as a NaN scale below
        sum += value;
        e.largest = std::max(e.largest, value);
        double unit = std::exp2(std::ilogb(value));
        while (std::fmod(value, unit) != 0) unit /= 2;
        e.smallest = std::min(e.smallest, unit);
      }
      e.row_sum = std::max(e.row_sum, sum);
    }
  }
  return e;
}

Extent extent(const Operand& o) {
  if (!o.quantized()) return extent_of_halves(o);
  Extent e;
  for (int64_t batch = 0; batch < o.l; ++batch) {
    for (int64_t row = 0; row < o.rows; ++row) {
      double sum = 0;
      for (int64_t block = 0; block < o.k / o.block(); ++block) {
        const uint8_t byte = o.scale(batch, row, block);
        const double scale = o.scale_value(byte);
        // A NaN makes its row NaN, whatever the others are and in any order.
        if (scale == 0 || std::isnan(scale)) continue;
        for (int64_t i = 0; i < o.block(); ++i) {
          const double element = e2m1_value(o.code(batch, row, block * o.block() + i));
          const double value = std::fabs(element) * scale;
          sum += value;
          e.largest = std::max(e.largest, value);
        }
        e.smallest = std::min(e.smallest, 0.5 * (o.ue8m0() ? scale : e4m3_lowest_bit(byte)));
      }
      e.row_sum = std::max(e.row_sum, sum);
    }
  }
  return e;
}

}  // namespace

bool sums_are_exact(const Problem& problem) {
  const Extent a = extent(problem.a), b = extent(problem.b);
  if (a.row_sum == 0 || b.row_sum == 0) return true;
  const double largest_sum = std::min(a.row_sum * b.largest, b.row_sum * a.largest);
  return largest_sum < 0x1p24 * a.smallest * b.smallest;
}

nvfp4_gemm_desc make_desc(const Problem& p, int32_t scale_layout) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = p.shape.m, g.n = p.shape.n, g.k = p.shape.k, g.l = p.shape.l;
  g.a_ld = p.a.ld, g.a_batch_stride = p.a.batch_stride;
  g.b_ld = p.b.ld, g.b_batch_stride = p.b.batch_stride;
  g.d_ld = p.d_ld, g.d_batch_stride = p.d_batch_stride;
  g.a_type = p.a.type;
  g.operand_format = p.b.format;
  const auto with_layout = [&](const Operand& o, int32_t* layout) {  // and the stride of the scales
    *layout = scale_layout != NVFP4_SCALE_LAYOUT_UNSET ? scale_layout : o.layout;
    return o.device_scales_stride(p.scales_gap_bytes, *layout);
  };
  g.a_scales_batch_stride_bytes = with_layout(p.a, &g.a_scale_layout);
  g.b_scales_batch_stride_bytes = with_layout(p.b, &g.b_scale_layout);
  if (!p.a.quantized()) g.a_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
  g.d_type = NVFP4_TYPE_F16;
  g.alpha = p.alpha;
  g.variant = p.variant;
  g.pdl = p.pdl;
  g.batch_invariant = p.batch_invariant;
  return g;
}

namespace {

// A slice of columns of one batch, through the library's reference.
void reference_slice(const Problem& p, int64_t batch, int64_t column, int64_t columns,
                     uint16_t* d) {
  nvfp4_gemm_desc g = make_desc(p, NVFP4_SCALE_LAYOUT_LINEAR);
  g.l = 1;
  g.n = columns;
  g.a = p.a.quantized() ? static_cast<const void*>(p.a.codes.data() + batch * p.a.batch_stride / 2)
                        : p.a.halves.data() + batch * p.a.batch_stride;
  g.b = p.b.codes.data() + (batch * p.b.batch_stride + column * p.b.ld) / 2;
  if (p.a.quantized()) g.a_scales = p.a.scales.data() + batch * p.a.scales_stride();
  g.b_scales = p.b.scales.data() + batch * p.b.scales_stride() + column * (p.shape.k / p.b.block());
  std::vector<uint16_t> slice(size_t(g.m * columns));
  g.d = slice.data();
  g.d_ld = columns;
  if (nvfp4_gemm_reference(&g) != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
  for (int64_t row = 0; row < g.m; ++row) {
    std::copy_n(slice.begin() + row * columns, columns, d + row * p.shape.n + column);
  }
}

}  // namespace

std::vector<uint16_t> reference(const Problem& p, const Progress& progress) {
  const Shape& s = p.shape;
  std::vector<uint16_t> d(size_t(s.l * s.m * s.n));
  // Multiples of 16 columns keep every pointer of a slice 16-byte aligned: 16 rows of scales are k
  // bytes.
  const int64_t wanted = (s.n / (4 * cores()) + 15) / 16 * 16;
  const int64_t columns = std::max<int64_t>(wanted, 16);
  const int64_t slices = (s.n + columns - 1) / columns;
  const auto each_slice = [&](int64_t item) {
    const int64_t batch = item / slices, column = item % slices * columns;
    reference_slice(p, batch, column, std::min(columns, s.n - column),
                    d.data() + batch * s.m * s.n);
  };
  parallel_for(s.l * slices, each_slice, progress);
  return d;
}

}  // namespace support
