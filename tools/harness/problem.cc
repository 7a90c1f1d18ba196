// SPDX-License-Identifier: MIT
#include "tools/harness/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "tools/harness/formats.h"

namespace support {

const char* to_string(Data data) {
  switch (data) {
    case Data::gpumode: return "gpumode";
    case Data::exact: return "exact";
    case Data::random: return "random";
  }
  return "?";
}

// ---- Problem ------------------------------------------------------------------------------------

namespace {

Operand make_operand(int64_t rows, int64_t k, int64_t l, int64_t ld_gap, int64_t batch_gap) {
  Operand o;
  o.rows = rows, o.k = k, o.l = l;
  o.ld = close_ld(k) + ld_gap;
  o.batch_stride = rows * o.ld + batch_gap;
  o.codes.assign(size_t((l - 1) * o.batch_stride + (rows - 1) * o.ld + k) / 2, 0xFF);
  for (int64_t batch = 0; batch < l; ++batch) {
    for (int64_t row = 0; row < rows; ++row) {
      std::fill_n(o.codes.begin() + long(o.code_byte(batch, row, 0)), k / 2, uint8_t(0));
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
      const size_t first = o.code_byte(batch, row, 0);
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

Problem make_problem(const Shape& shape, const Gaps& gaps) {
  Problem p;
  p.d_ld_gap = gaps.d_ld, p.d_batch_gap = gaps.d_batch;
  p.lay_out(shape);
  p.a = make_operand(shape.m, shape.k, shape.l, gaps.a_ld, gaps.a_batch);
  p.b = make_operand(shape.n, shape.k, shape.l, gaps.b_ld, gaps.b_batch);
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

uint16_t half_bits(int32_t type, double value) {
  return type == NVFP4_TYPE_F16 ? f16_bits(value) : bf16_bits(value);
}

// 1/2, 1, .. 4: the exact sets draw hundreds of millions of them.
std::array<uint16_t, 8> small_halves(int32_t type) {
  std::array<uint16_t, 8> all;
  for (size_t i = 0; i < all.size(); ++i) all[i] = half_bits(type, 0.5 * double(1 + i));
  return all;
}

uint16_t draw_half(Random& random, int32_t type, Data data) {
  const int sign = random.below(2) != 0 ? -1 : 1;
  if (data != Data::random) {
    static const std::array<uint16_t, 8> of_f16 = small_halves(NVFP4_TYPE_F16),
                                         of_bf16 = small_halves(NVFP4_TYPE_BF16);
    const uint16_t size = (type == NVFP4_TYPE_F16 ? of_f16 : of_bf16)[random.below(8)];
    return uint16_t(size | (sign < 0 ? 0x8000 : 0));
  }
  const int fraction_bits = type == NVFP4_TYPE_F16 ? 10 : 7;
  const uint32_t one = 1u << fraction_bits;
  return half_bits(
      type, sign * std::ldexp(one + random.below(one), int(random.below(16)) - 12 - fraction_bits));
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
  for (int64_t batch = 0; batch < p.l; ++batch) {
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t i = 0; i < p.k; ++i) {
        a.set_half(batch, row, i, draw_half(random, a_type, data));
      }
    }
  }
  if (data == Data::random) p.alpha = 1 / float(200 * std::sqrt(double(p.k)));
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

// ---- descriptor and arrays ----------------------------------------------------------------------

namespace {

// A finite number of moderate size, of either sign.
uint32_t random_code(int32_t type, Random& random) {
  const uint32_t sign = random.below(2), bits = uint32_t(random.next());
  if (type == NVFP4_TYPE_F16) return sign << 15 | (10 + random.below(9)) << 10 | (bits & 0x3FF);
  if (type == NVFP4_TYPE_BF16) return sign << 15 | (122 + random.below(9)) << 7 | (bits & 0x7F);
  return sign << 31 | (122 + random.below(9)) << 23 | (bits & 0x7FFFFF);
}

void put(std::vector<uint8_t>& array, int32_t type, int64_t i, uint32_t code) {
  const size_t size = size_t(bytes_of_type(type));
  std::memcpy(&array.at(size_t(i) * size), &code, size);
}

uint32_t get(const std::vector<uint8_t>& array, int32_t type, int64_t i) {
  const size_t size = size_t(bytes_of_type(type));
  uint32_t code = 0;
  std::memcpy(&code, &array.at(size_t(i) * size), size);
  return code;
}

// Elements of C or D from the first to the last one.
int64_t extent_of(const Fields& f, int64_t ld, int64_t stride) {
  return (f.l - 1) * stride + (f.lines() - 1) * ld + f.line_length();
}

bool has_scales(const Fields& p) { return scale_block_of_d(p.d_type) != 0; }
bool has_maxima(const Problem& p) { return p.d_amax != nullptr || p.d_row_amax != nullptr; }

// Bytes of D without its scales.
size_t bytes_of_elements(const Fields& p) {
  const int64_t elements = extent_of(p, p.d_ld, p.d_batch_stride);
  return size_t(has_scales(p) ? elements / 2 : elements * bytes_of_type(p.d_type));
}

// Bytes of one batch, with a gap of 16 before the next.
int64_t stride_of_d_scales(const Problem& p) {
  if (p.d_scales_bytes > 0) return (p.d_scales_bytes + 31) / 16 * 16;
  const size_t bytes = nvfp4_scale_bytes_for(p.m, p.n, p.d_scale_layout, format_of_d(p.d_type));
  return int64_t(bytes + 31) / 16 * 16;
}

// Bytes of D with its scales.
size_t end_of_d(const Problem& p) {
  if (!has_scales(p)) return bytes_of_elements(p);
  return p.d_scales_at() + size_t(p.l * stride_of_d_scales(p));
}

// Cleared, or left by an earlier product.
constexpr float kMaximaBefore[] = {0, 0, 0.75f, 0, 1000, 0, 0};

template <typename Visit>
void for_each_element(const Fields& p, const Visit& visit) {
  for (int64_t batch = 0; batch < p.l; ++batch)
    for (int64_t row = 0; row < p.m; ++row)
      for (int64_t column = 0; column < p.n; ++column) visit(batch, row, column);
}

void draw_bias(std::vector<uint8_t>& bias, const Fields& f, Random& random) {
  const int64_t values = f.bias_axis == NVFP4_BIAS_AXIS_ROW ? f.m : f.n;
  bias.resize(size_t(values * bytes_of_type(f.bias_type)));
  if (!bias.empty())
    for (int64_t i = 0; i < values; ++i)
      put(bias, f.bias_type, i, random_code(f.bias_type, random));
}

}  // namespace

// An address without a row would be null whatever a test asks for.
constexpr bool is_read(nvfp4::Kind kind) {
  return kind == nvfp4::Kind::input || kind == nvfp4::Kind::vector || kind == nvfp4::Kind::factor;
}
constexpr int unread_arrays() {
  int count = 0;
  for (const GemmField& field : nvfp4::fields::gemm) count += is_read(field.kind);
#define ARRAY(...) --count;
#define FACTORS(...) --count;
#include "tools/harness/arrays.def"
  return count;
}
static_assert(unread_arrays() == 0, "arrays.def has not the addresses of fields.def that are read");

Problem with_fields(Problem p, const Fields& fields, uint64_t seed) {
  const Shape shape = p.shape();
  static_cast<Fields&>(p) = merged(p, fields);
  p.lay_out(shape);
  Random random(seed);
  if (p.has_c()) {
    p.c.assign(size_t(extent_of(p, p.c_ld, p.c_batch_stride) * bytes_of_type(p.c_type)), 0xFF);
    for_each_element(p, [&](int64_t batch, int64_t row, int64_t column) {
      p.set_c(batch, row, column, random_code(p.c_type, random));
    });
  }
  draw_bias(p.bias, p, random);
  if (p.gated()) p.b2 = with_rows_reversed(p.b), draw_bias(p.bias2, p, random);
  const auto one_to_hundred = [&] { return float(1 + random.below(100)); };
  const int64_t columns = p.b_tensor_scale_columns;
  const int64_t column_groups = columns == 0 ? 1 : (p.n + columns - 1) / columns;
#define ARRAY(...)
#define FACTORS(address, array, count, value) \
  p.array.resize(size_t(count));              \
  for (float& factor : p.array) factor = value;
#include "tools/harness/arrays.def"
  return p;
}

nvfp4_gemm_desc make_desc(const Problem& p, int32_t scale_layout) {
  nvfp4_gemm_desc g = numbers_of(p);
  g.a_ld = p.a.ld, g.a_batch_stride = p.a.batch_stride;
  g.b_ld = p.b.ld, g.b_batch_stride = p.b.batch_stride;
  g.a_type = p.a.type;
  g.operand_format = p.b.format;
  const auto with_layout = [&](const Operand& o, int32_t* layout) {  // and the stride of the scales
    *layout = scale_layout != NVFP4_SCALE_LAYOUT_UNSET ? scale_layout : o.layout;
    return o.device_scales_stride(p.scales_gap_bytes, *layout);
  };
  g.a_scales_batch_stride_bytes = with_layout(p.a, &g.a_scale_layout);
  g.b_scales_batch_stride_bytes = with_layout(p.b, &g.b_scale_layout);
  if (!p.a.quantized()) g.a_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
  if (p.b_packing != NVFP4_PACKING_NONE) {
    g.b_ld = g.b_scales_batch_stride_bytes = 0, g.b_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
    g.b_batch_stride = p.b.packed_stride(p.b_packing);
  }
  if (p.a_packing != NVFP4_PACKING_NONE) {
    g.a_ld = g.a_scales_batch_stride_bytes = 0, g.a_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
    g.a_batch_stride = p.a.packed_tokens_stride();
  }
  if (has_scales(p)) g.d_scales_batch_stride_bytes = stride_of_d_scales(p);
  return g;
}

std::vector<Input> inputs(const Problem& p, int32_t scale_layout, uint8_t poison) {
  const auto scales = [&](Operand o) {
    if (scale_layout != NVFP4_SCALE_LAYOUT_UNSET) o.layout = scale_layout;
    return o.device_scales(poison, p.scales_gap_bytes);
  };
  const auto weights = [&](const Operand& o) {
    return p.b_packing == NVFP4_PACKING_NONE ? o.elements() : o.packed(p.b_packing);
  };
  const auto tokens = [&](const Operand& o) {
    return p.a_packing == NVFP4_PACKING_NONE ? o.elements() : o.packed_tokens();
  };
  Fields f = p;
  f.a_type = p.a.type;
  std::vector<Input> all;
  const auto add = [&](size_t offset, const auto& bytes) {
    for (const GemmField& field : nvfp4::fields::gemm)
      if (field.offset == offset && is_there(f, field)) all.push_back({&field, bytes()});
  };
#define ARRAY(address, bytes) \
  add(offsetof(nvfp4_gemm_desc, address), [&]() -> std::vector<uint8_t> { return bytes; });
#define FACTORS(address, array, ...) ARRAY(address, bytes_of(p.array.data(), p.array.size()))
#include "tools/harness/arrays.def"
  return all;
}

void set_results(const Problem& p, void* d, nvfp4_gemm_desc& g) {
  const auto at = [&](size_t byte) { return static_cast<uint8_t*>(d) + byte; };
  float* const maxima = reinterpret_cast<float*>(at(p.d_amax_at()));
  g.d = d;
  if (has_scales(p)) g.d_scales = at(p.d_scales_at());
  if (p.d_amax != nullptr) g.d_amax = maxima;
  if (p.d_row_amax != nullptr) g.d_row_amax = maxima + 1;
  if (p.c_is_d) g.c = d;
}

void Problem::set_c(int64_t batch, int64_t row, int64_t column, uint32_t code) {
  put(c, c_type, index(batch, row, column, c_ld, c_batch_stride), code);
}

void Problem::set_bias(int64_t i, uint32_t code) { put(bias, bias_type, i, code); }

void Problem::set_bias2(int64_t i, uint32_t code) { put(bias2, bias_type, i, code); }

std::vector<uint8_t> Problem::d_before() const {
  std::vector<uint8_t> memory = c;
  if (!c_is_d) memory.assign(end_of_d(*this), 0xFF);
  if (!has_maxima(*this)) return memory;
  std::vector<float> maxima(1 + size_t(l * m));
  for (size_t i = 0; i < maxima.size(); ++i)
    maxima[i] = kMaximaBefore[i % std::size(kMaximaBefore)];
  memory.resize(d_amax_at(), 0xFF);
  const std::vector<uint8_t> bytes = bytes_of(maxima.data(), maxima.size());
  memory.insert(memory.end(), bytes.begin(), bytes.end());
  return memory;
}

size_t Problem::d_amax_at() const { return (end_of_d(*this) + 15) / 16 * 16; }

size_t Problem::d_scales_at() const { return (bytes_of_elements(*this) + 15) / 16 * 16; }

// ---- reference ----------------------------------------------------------------------------------

std::vector<uint8_t> Problem::reference() const {
  std::vector<uint8_t> memory = d_before();
  nvfp4_gemm_desc g = make_desc(*this, NVFP4_SCALE_LAYOUT_LINEAR);
  const std::vector<Input> read = inputs(*this, NVFP4_SCALE_LAYOUT_LINEAR, 0xFF);
  for (const Input& input : read)
    nvfp4::fields::set<const void*>(&g, *input.field, input.bytes.data());
  set_results(*this, memory.data(), g);
  if (nvfp4_gemm_reference(&g) != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
  return memory;
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
  g.b_packing = NVFP4_PACKING_NONE, g.b_ld = p.b.ld, g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  g.a_packing = NVFP4_PACKING_NONE, g.a_ld = p.a.ld;
  if (p.a.quantized()) g.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  g.b = p.b.codes.data() + (batch * p.b.batch_stride + column * p.b.ld) / 2;
  if (p.a.quantized()) g.a_scales = p.a.scales.data() + batch * p.a.scales_stride();
  g.b_scales = p.b.scales.data() + batch * p.b.scales_stride() + column * (p.k / p.b.block());
  std::vector<uint16_t> slice(size_t(g.m * columns));
  g.d = slice.data();
  g.d_ld = columns;
  if (nvfp4_gemm_reference(&g) != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
  for (int64_t row = 0; row < g.m; ++row) {
    std::copy_n(slice.begin() + row * columns, columns, d + row * p.n + column);
  }
}

}  // namespace

std::vector<uint16_t> reference(const Problem& p, const Progress& progress) {
  const Shape s = p.shape();
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

// ---- compare ------------------------------------------------------------------------------------

namespace {

std::string number_of(uint32_t have, uint32_t need) {
  char text[60];
  std::snprintf(text, sizeof text, ": got 0x%X, want 0x%X", have, need);
  return text;
}

// Compares codes, scales and maxima.
std::string different_byte(const Problem& p, const std::vector<uint8_t>& got,
                           const std::vector<uint8_t>& want, size_t byte) {
  const size_t maxima = p.d_amax_at(), scales = p.d_scales_at();
  if (has_maxima(p) && byte >= maxima) {
    const int64_t i = int64_t(byte) / 4, row = i - int64_t(maxima) / 4 - 1;
    return "the maximum of " + (row < 0 ? "D" : "row " + std::to_string(row) + " of all batches") +
           number_of(get(got, NVFP4_TYPE_F32, i), get(want, NVFP4_TYPE_F32, i));
  }
  const bool is_code = byte < scales;
  return "byte " + std::to_string(is_code ? byte : byte - scales) + " of " +
         (is_code ? "the codes" : "the scales") + " of D" + number_of(got[byte], want[byte]);
}

}  // namespace

std::string first_difference(const Problem& p, const std::vector<uint8_t>& got,
                             const std::vector<uint8_t>& want) {
  const auto at = std::mismatch(got.begin(), got.end(), want.begin(), want.end());
  if (at.first == got.end() && at.second == want.end()) return "";
  const auto byte = size_t(at.first - got.begin());
  if (has_scales(p) || byte >= bytes_of_elements(p)) return different_byte(p, got, want, byte);
  std::string difference;
  int64_t wrong = 0;
  for_each_element(p, [&](int64_t batch, int64_t row, int64_t column) {
    const int64_t i = p.index(batch, row, column, p.d_ld, p.d_batch_stride);
    const uint32_t have = get(got, p.d_type, i), need = get(want, p.d_type, i);
    if (have == need || wrong++ > 0) return;
    difference = "batch " + std::to_string(batch) + ", row " + std::to_string(row) + ", column " +
                 std::to_string(column) + number_of(have, need);
  });
  if (wrong == 0) return "a gap between the lines or batches of D was written";
  return difference + ", and " + std::to_string(wrong - 1) + " more";
}

bool gaps_are_untouched(const Fields& f, std::vector<uint8_t> d) {
  if (scale_block_of_d(f.d_type) != 0) return true;
  const size_t size = size_t(bytes_of_type(f.d_type));
  for_each_element(f, [&](int64_t batch, int64_t row, int64_t column) {
    const int64_t at = f.index(batch, row, column, f.d_ld, f.d_batch_stride) * int64_t(size);
    std::fill_n(d.begin() + at, size, uint8_t(0xFF));
  });
  const auto end = d.begin() + int64_t(bytes_of_elements(f));
  return std::all_of(d.begin(), end, [](uint8_t byte) { return byte == 0xFF; });
}

}  // namespace support
