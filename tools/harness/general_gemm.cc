// SPDX-License-Identifier: MIT
#include "tools/harness/general_gemm.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace support {

EpilogueFields possible(EpilogueFields f, const Shape& shape) {
  const int64_t block = scale_block_of_d(f.d_type);
  if (block == 0) return f;
  if (shape.n % block != 0) f.d_type = NVFP4_TYPE_F16;
  f.cd_order = NVFP4_CD_ORDER_ROW_MAJOR;
  f.d_ld_gap += f.d_ld_gap % 2, f.d_batch_gap += f.d_batch_gap % 2;
  if (f.d_type == NVFP4_TYPE_NVFP4) f.d_scale_rule = NVFP4_SCALE_RULE_DEFAULT;
  if (f.d_type != NVFP4_TYPE_NVFP4) f.d_tensor_scale = false;
  return f;
}

int64_t bytes_of_type(int32_t type) {
  return type == NVFP4_TYPE_NONE ? 0 : type == NVFP4_TYPE_F32 ? 4 : 2;
}

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

int64_t lines(const GeneralProblem& p) {
  const Shape& s = p.operands.shape;
  return p.fields.cd_order == NVFP4_CD_ORDER_ROW_MAJOR ? s.m : s.n;
}
int64_t line_length(const GeneralProblem& p) {
  const Shape& s = p.operands.shape;
  return p.fields.cd_order == NVFP4_CD_ORDER_ROW_MAJOR ? s.n : s.m;
}

// Elements from the first to the last one.
int64_t extent(const GeneralProblem& p, int64_t ld, int64_t stride) {
  return (p.operands.shape.l - 1) * stride + (lines(p) - 1) * ld + line_length(p);
}

// Bytes of so many elements of D.
size_t bytes_of_d(int32_t type, int64_t elements) {
  return size_t(scale_block_of_d(type) != 0 ? elements / 2 : elements * bytes_of_type(type));
}

// Bytes of one batch, with a gap of 16 before the next.
int64_t stride_of_d_scales(const GeneralProblem& p) {
  const Shape& s = p.operands.shape;
  const EpilogueFields& f = p.fields;
  const size_t bytes = nvfp4_scale_bytes_for(s.m, s.n, f.d_scale_layout, format_of_d(f.d_type));
  return int64_t(bytes + 31) / 16 * 16;
}

// Bytes of D with its scales.
size_t end_of_d(const GeneralProblem& p) {
  const nvfp4_gemm_desc g = p.desc(NVFP4_SCALE_LAYOUT_LINEAR);
  if (scale_block_of_d(p.fields.d_type) == 0) {
    return bytes_of_d(p.fields.d_type, extent(p, g.d_ld, g.d_batch_stride));
  }
  return p.d_scales_at() + size_t(p.operands.shape.l * g.d_scales_batch_stride_bytes);
}

// Cleared, or left by an earlier product.
constexpr float kMaximaBefore[] = {0, 0, 0.75f, 0, 1000, 0, 0};

void set_amax(const GeneralProblem& p, void* d, nvfp4_gemm_desc& g) {
  float* const maxima = reinterpret_cast<float*>(static_cast<uint8_t*>(d) + p.d_amax_at());
  if (p.fields.d_amax) g.d_amax = maxima;
  if (p.fields.d_row_amax) g.d_row_amax = maxima + 1;
}

EpilogueFields with_scales(EpilogueFields f, Random& random) {
  f.c_is_d = false;
  f.d_type = kScaledFormats[random.below(std::size(kScaledFormats))].d_type;
  f.d_scale_layout = NVFP4_SCALE_LAYOUT_128X4 + int32_t(random.below(2));
  f.d_scale_rule = int32_t(random.below(3));
  f.d_tensor_scale = random.below(2) != 0;
  return f;
}

template <typename Visit>
void for_each_element(const Shape& s, const Visit& visit) {
  for (int64_t batch = 0; batch < s.l; ++batch)
    for (int64_t row = 0; row < s.m; ++row)
      for (int64_t column = 0; column < s.n; ++column) visit(batch, row, column);
}

std::vector<uint8_t> bytes_of(const float* first, size_t count) {
  std::vector<uint8_t> bytes(count * sizeof(float));
  std::memcpy(bytes.data(), first, bytes.size());
  return bytes;
}

}  // namespace

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

std::string to_string(const EpilogueFields& f) {
  char text[480];
  std::snprintf(
      text, sizeof text,
      "types d %d c %d bias %d, scalars %d, activation %d, order %d, axis %d, scales %d%s %d "
      "by %lld, alpha %g, beta %g, gaps %lld %lld %lld %lld%s, scales of D %d %d %d, gate %d by "
      "alpha2 %g, scale %d, limit %g, alpha %g, beta %g%s%s",
      f.d_type, f.c_type, f.bias_type, f.scalar_mode, f.activation, f.cd_order, f.bias_axis,
      f.a_tensor_scale, f.a_tensor_scale_rows ? " by rows" : "", f.b_tensor_scale,
      static_cast<long long>(f.b_tensor_scale_columns), double(f.alpha), double(f.beta),
      static_cast<long long>(f.c_ld_gap), static_cast<long long>(f.d_ld_gap),
      static_cast<long long>(f.c_batch_gap), static_cast<long long>(f.d_batch_gap),
      f.c_is_d ? ", C is D" : "", f.d_scale_layout, f.d_scale_rule, f.d_tensor_scale, f.gated,
      double(f.alpha2), f.b2_tensor_scale, double(f.gate_limit), double(f.gate_alpha),
      double(f.gate_beta), f.d_amax ? ", amax" : "", f.d_row_amax ? ", amax of rows" : "");
  return text;
}

bool is_general(const EpilogueFields& f) {
  return f.d_type != NVFP4_TYPE_F16 || f.c_type != NVFP4_TYPE_NONE ||
         f.bias_type != NVFP4_TYPE_NONE || f.scalar_mode != NVFP4_SCALARS_HOST ||
         f.activation != NVFP4_ACTIVATION_NONE || f.cd_order != NVFP4_CD_ORDER_ROW_MAJOR ||
         f.a_tensor_scale || f.b_tensor_scale || f.gated || f.d_amax || f.d_row_amax;
}

EpilogueFields random_fields(const Shape& shape, Random& random) {
  const auto coin = [&] { return random.below(2) != 0; };
  const auto type = [&] { return int32_t(1 + random.below(3)); };
  EpilogueFields f;
  f.d_type = type();
  if (coin()) f.c_type = type();
  if (coin()) f.bias_type = type();
  f.scalar_mode = int32_t(random.below(2));
  f.activation = int32_t(random.below(kActivations));
  f.cd_order = int32_t(random.below(2));
  f.bias_axis = int32_t(random.below(2));
  f.a_tensor_scale = coin();
  f.a_tensor_scale_rows = f.a_tensor_scale && coin();
  f.b_tensor_scale = coin();
  if (f.b_tensor_scale && coin()) f.b_tensor_scale_columns = 64 * (1 + random.below(3));
  f.alpha = float(int(random.below(400)) - 200) / 300;
  if (f.c_type != NVFP4_TYPE_NONE && random.below(4) != 0) {
    f.beta = float(int(random.below(400)) - 200) / 150;
  }
  f.c_ld_gap = coin() ? 0 : random.below(9);
  f.d_ld_gap = coin() ? 0 : random.below(9);
  if (shape.l > 1) f.c_batch_gap = random.below(9), f.d_batch_gap = random.below(9);
  if (f.c_type == f.d_type && coin()) {
    f.c_is_d = true;
    f.c_ld_gap = f.d_ld_gap, f.c_batch_gap = f.d_batch_gap;
  }
  if (shape.n % 16 == 0 && coin()) f = with_scales(f, random);
  return possible(f, shape);
}

EpilogueFields random_gated_fields(const Shape& shape, Random& random) {
  EpilogueFields f = random_fields(shape, random);
  f.c_type = NVFP4_TYPE_NONE, f.c_is_d = false, f.beta = 0;
  f.gated = true;
  f.b2_tensor_scale = random.below(2) != 0;
  f.alpha2 = float(int(random.below(400)) - 200) / 200;
  if (f.activation != NVFP4_ACTIVATION_SILU || random.below(2) == 0) return f;
  f.gate_limit = float(1 + random.below(60)) / 4;
  f.gate_alpha = float(1 + random.below(100)) / 40;
  f.gate_beta = float(int(random.below(9)) - 4) / 2;
  return f;
}

EpilogueFields random_column_fields(Random& random) {
  const auto coin = [&] { return random.below(2) != 0; };
  EpilogueFields f;
  f.d_type = coin() ? NVFP4_TYPE_F16 : NVFP4_TYPE_BF16;
  f.bias_type = int32_t(random.below(4));
  f.scalar_mode = int32_t(random.below(2));
  f.a_tensor_scale = coin();
  f.a_tensor_scale_rows = f.a_tensor_scale && coin();
  f.b_tensor_scale = coin();
  if (f.b_tensor_scale && coin()) f.b_tensor_scale_columns = 64 * (1 + random.below(2));
  f.alpha = float(int(random.below(400)) - 200) / 300;
  f.d_ld_gap = coin() ? 0 : random.below(9);
  return f;
}

GeneralProblem::GeneralProblem(const Problem& o, const EpilogueFields& f, uint64_t seed)
    : operands(o), fields(f) {
  Random random(seed);
  const nvfp4_gemm_desc g = desc(NVFP4_SCALE_LAYOUT_LINEAR);
  const Shape& s = o.shape;
  if (f.c_type != NVFP4_TYPE_NONE) {
    c.assign(size_t(extent(*this, g.c_ld, g.c_batch_stride) * bytes_of_type(f.c_type)), 0xFF);
    for_each_element(s, [&](int64_t batch, int64_t row, int64_t column) {
      set_c(batch, row, column, random_code(f.c_type, random));
    });
  }
  const int64_t values = f.bias_axis == NVFP4_BIAS_AXIS_ROW ? s.m : s.n;
  bias.resize(size_t(values * bytes_of_type(f.bias_type)));
  if (!bias.empty())
    for (int64_t i = 0; i < values; ++i) set_bias(i, random_code(f.bias_type, random));
  a_scales = {0.75f};
  if (f.a_tensor_scale_rows) {
    a_scales.resize(size_t(s.l * s.m));
    for (float& scale : a_scales) scale = float(1 + random.below(100)) / 40;
  }
  const int64_t columns = f.b_tensor_scale_columns;
  b_scales.resize(size_t(columns == 0 ? 1 : (s.n + columns - 1) / columns));
  for (float& scale : b_scales) scale = float(1 + random.below(100)) / 30;
  if (!f.gated) return;
  b2 = with_rows_reversed(o.b);
  bias2.resize(bias.size());
  if (!bias2.empty())
    for (int64_t i = 0; i < values; ++i) set_bias2(i, random_code(f.bias_type, random));
  b2_scales.resize(b_scales.size());
  for (float& scale : b2_scales) scale = float(1 + random.below(100)) / 50;
}

nvfp4_gemm_desc GeneralProblem::desc(int32_t scale_layout) const {
  const EpilogueFields& f = fields;
  nvfp4_gemm_desc g = make_desc(operands, scale_layout);
  g.d_type = f.d_type, g.c_type = f.c_type, g.bias_type = f.bias_type;
  g.scalar_mode = f.scalar_mode, g.activation = f.activation;
  g.cd_order = f.cd_order, g.bias_axis = f.bias_axis;
  if (scale_block_of_d(f.d_type) != 0) {
    g.d_scale_layout = f.d_scale_layout, g.d_scale_rule = f.d_scale_rule;
    g.d_scales_batch_stride_bytes = stride_of_d_scales(*this);
  }
  g.a_tensor_scale_rows = f.a_tensor_scale_rows;
  g.b_tensor_scale_columns = f.b_tensor_scale ? f.b_tensor_scale_columns : 0;
  g.d_ld = line_length(*this) + f.d_ld_gap;
  g.c_ld = line_length(*this) + f.c_ld_gap;
  g.d_batch_stride = lines(*this) * g.d_ld + f.d_batch_gap;
  g.c_batch_stride = lines(*this) * g.c_ld + f.c_batch_gap;
  // By pointer the values are not looked at: these would show.
  const bool by_pointer = f.scalar_mode == NVFP4_SCALARS_DEVICE;
  g.alpha = by_pointer ? 1e30f : f.alpha;
  g.beta = by_pointer ? -1e30f : f.beta;
  if (f.gated) g.alpha2 = by_pointer ? 1e29f : f.alpha2;
  g.gate_limit = f.gate_limit, g.gate_alpha = f.gate_alpha, g.gate_beta = f.gate_beta;
  return g;
}

int64_t GeneralProblem::index(int64_t batch, int64_t row, int64_t column, int64_t ld,
                              int64_t stride) const {
  const bool by_row = fields.cd_order == NVFP4_CD_ORDER_ROW_MAJOR;
  return batch * stride + (by_row ? row * ld + column : column * ld + row);
}

void GeneralProblem::set_c(int64_t batch, int64_t row, int64_t column, uint32_t code) {
  const nvfp4_gemm_desc g = desc(NVFP4_SCALE_LAYOUT_LINEAR);
  put(c, fields.c_type, index(batch, row, column, g.c_ld, g.c_batch_stride), code);
}

void GeneralProblem::set_bias(int64_t i, uint32_t code) { put(bias, fields.bias_type, i, code); }

void GeneralProblem::set_bias2(int64_t i, uint32_t code) { put(bias2, fields.bias_type, i, code); }

std::vector<uint8_t> GeneralProblem::d_before() const {
  std::vector<uint8_t> d = c;
  if (!fields.c_is_d) d.assign(end_of_d(*this), 0xFF);
  if (!fields.d_amax && !fields.d_row_amax) return d;
  std::vector<float> maxima(1 + size_t(operands.shape.l * operands.shape.m));
  for (size_t i = 0; i < maxima.size(); ++i)
    maxima[i] = kMaximaBefore[i % std::size(kMaximaBefore)];
  d.resize(d_amax_at(), 0xFF);
  const std::vector<uint8_t> bytes = bytes_of(maxima.data(), maxima.size());
  d.insert(d.end(), bytes.begin(), bytes.end());
  return d;
}

size_t GeneralProblem::d_amax_at() const { return (end_of_d(*this) + 15) / 16 * 16; }

size_t GeneralProblem::d_scales_at() const {
  const nvfp4_gemm_desc g = desc(NVFP4_SCALE_LAYOUT_LINEAR);
  return (bytes_of_d(fields.d_type, extent(*this, g.d_ld, g.d_batch_stride)) + 15) / 16 * 16;
}

std::vector<uint8_t> GeneralProblem::reference() const {
  std::vector<uint8_t> d = d_before();
  nvfp4_gemm_desc g = desc(NVFP4_SCALE_LAYOUT_LINEAR);
  g.a = operands.a.codes.data(), g.b = operands.b.codes.data();
  g.a_scales = operands.a.scales.data(), g.b_scales = operands.b.scales.data();
  if (!operands.a.quantized()) g.a = operands.a.halves.data(), g.a_scales = nullptr;
  g.a_scales_batch_stride_bytes = operands.a.scales_stride();
  g.b_scales_batch_stride_bytes = operands.b.scales_stride();
  g.d = d.data();
  if (scale_block_of_d(fields.d_type) != 0) {
    g.d_scales = &d[d_scales_at()];
    if (fields.d_tensor_scale) g.d_tensor_scale = &d_scale;
  }
  set_amax(*this, d.data(), g);
  if (!c.empty()) g.c = fields.c_is_d ? d.data() : c.data();
  if (!bias.empty()) g.bias = bias.data();
  if (fields.a_tensor_scale) g.a_tensor_scale = a_scales.data();
  if (fields.b_tensor_scale) g.b_tensor_scale = b_scales.data();
  if (fields.scalar_mode == NVFP4_SCALARS_DEVICE) {
    g.alpha_device = &fields.alpha;
    if (!c.empty()) g.beta_device = &fields.beta;
    if (fields.gated) g.alpha2_device = &fields.alpha2;
  }
  if (fields.gated) {
    g.b2 = b2.codes.data(), g.b2_scales = b2.scales.data();
    if (!bias2.empty()) g.bias2 = bias2.data();
    if (fields.b2_tensor_scale) g.b2_tensor_scale = b2_scales.data();
  }
  if (nvfp4_gemm_reference(&g) != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
  return d;
}

// ---- Device -------------------------------------------------------------------------------------

DeviceGeneral::DeviceGeneral(const Driver& driver, const GeneralProblem& p)
    : OnDevice(driver, p.desc(NVFP4_SCALE_LAYOUT_UNSET), p.d_before()) {
  const Problem& o = p.operands;
  const EpilogueFields& f = p.fields;
  const auto floats = [&](const char* name, const float* first, size_t count) {
    return static_cast<const float*>(add(name, bytes_of(first, count)));
  };
  const auto where_there = [&](const char* name, const std::vector<uint8_t>& content) {
    return content.empty() ? nullptr : add(name, content);
  };
  if (desc.k > 0) add_operands(o, 0xFF);
  if (f.gated) {
    desc.b2 = where_there("B2", p.b2.codes);
    desc.b2_scales = where_there("the scales of B2", p.b2.device_scales(0xFF, o.scales_gap_bytes));
    desc.bias2 = where_there("the second bias", p.bias2);
    if (f.b2_tensor_scale) {
      desc.b2_tensor_scale = floats("b2_tensor_scale", p.b2_scales.data(), p.b2_scales.size());
    }
  }
  if (scale_block_of_d(f.d_type) != 0) {
    desc.d_scales = static_cast<uint8_t*>(desc.d) + p.d_scales_at();
    if (f.d_tensor_scale) desc.d_tensor_scale = floats("d_tensor_scale", &p.d_scale, 1);
  }
  set_amax(p, desc.d, desc);
  desc.c = f.c_is_d ? desc.d : where_there("C", p.c);
  desc.bias = where_there("the bias", p.bias);
  if (f.a_tensor_scale) {
    desc.a_tensor_scale = floats("a_tensor_scale", p.a_scales.data(), p.a_scales.size());
  }
  if (f.b_tensor_scale) {
    desc.b_tensor_scale = floats("b_tensor_scale", p.b_scales.data(), p.b_scales.size());
  }
  if (f.scalar_mode == NVFP4_SCALARS_DEVICE) {
    desc.alpha_device = floats("alpha", &f.alpha, 1);
    if (!p.c.empty()) desc.beta_device = floats("beta", &f.beta, 1);
    if (f.gated) desc.alpha2_device = floats("alpha2", &f.alpha2, 1);
  }
  add_workspace();
}

std::vector<uint8_t> run_on_device(const Driver& driver, const GeneralProblem& problem) {
  const DeviceGeneral gemm(driver, problem);
  if (gemm.enqueue() != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
  std::vector<uint8_t> d = gemm.d();
  const std::string damage = gemm.damage();
  if (!damage.empty()) throw std::runtime_error(damage);
  return d;
}

namespace {

// Compares codes and scales.
std::string first_different_byte(const GeneralProblem& p, const std::vector<uint8_t>& got,
                                 const std::vector<uint8_t>& want) {
  const auto at = std::mismatch(got.begin(), got.end(), want.begin());
  const size_t byte = size_t(at.first - got.begin()), scales = p.d_scales_at();
  char text[120];
  std::snprintf(text, sizeof text, "byte %zu of %s: got 0x%02X, want 0x%02X",
                byte < scales ? byte : byte - scales,
                byte < scales ? "the codes of D" : "the scales of D", *at.first, *at.second);
  return text;
}

// "" where the maxima are the same.
std::string first_different_amax(const GeneralProblem& p, const std::vector<uint8_t>& got,
                                 const std::vector<uint8_t>& want) {
  if (!p.fields.d_amax && !p.fields.d_row_amax) return "";
  const size_t first = p.d_amax_at();
  const int64_t count = int64_t(got.size() - first) / 4;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = int64_t(first) / 4 + i;
    const uint32_t have = get(got, NVFP4_TYPE_F32, at), need = get(want, NVFP4_TYPE_F32, at);
    if (have == need) continue;
    char text[120];
    const std::string of = i == 0 ? "D" : "row " + std::to_string(i - 1) + " of all batches";
    std::snprintf(text, sizeof text, "the maximum of %s: got 0x%X, want 0x%X", of.c_str(), have,
                  need);
    return text;
  }
  return "";
}

}  // namespace

std::string first_difference(const GeneralProblem& p, const std::vector<uint8_t>& got,
                             const std::vector<uint8_t>& want) {
  if (got == want) return "";
  const nvfp4_gemm_desc g = p.desc(NVFP4_SCALE_LAYOUT_LINEAR);
  const int32_t type = p.fields.d_type;
  const std::string of_amax = first_different_amax(p, got, want);
  if (!of_amax.empty()) return of_amax;
  if (scale_block_of_d(type) != 0) return first_different_byte(p, got, want);
  std::string difference;
  int64_t wrong = 0;
  for_each_element(p.operands.shape, [&](int64_t batch, int64_t row, int64_t column) {
    const int64_t i = p.index(batch, row, column, g.d_ld, g.d_batch_stride);
    const uint32_t have = get(got, type, i), need = get(want, type, i);
    if (have == need) return;
    if (wrong++ > 0) return;
    char text[160];
    std::snprintf(text, sizeof text, "batch %lld, row %lld, column %lld: got 0x%X, want 0x%X",
                  static_cast<long long>(batch), static_cast<long long>(row),
                  static_cast<long long>(column), have, need);
    difference = text;
  });
  if (wrong == 0) return "a gap between the lines or batches of D was written";
  return difference + ", and " + std::to_string(wrong - 1) + " more";
}

std::string difference_on_device(const Driver& driver, const GeneralProblem& problem) {
  const DeviceGeneral gemm(driver, problem);
  if (gemm.enqueue() != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
  const std::string difference = first_difference(problem, gemm.d(), problem.reference());
  return difference.empty() ? gemm.damage() : difference;
}

}  // namespace support
