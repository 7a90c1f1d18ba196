// SPDX-License-Identifier: MIT
// Grouped products for tests: one operand A of all rows, a B for each group, and the same rows as
// single products.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "test/gemm/gpu.h"
#include "tools/harness/device_gemm.h"

namespace gemm_test {

struct GroupedSizes {
  int64_t rows, n, k;  // rows that A and D have
  int32_t a_type = NVFP4_TYPE_NONE;
  int32_t format = NVFP4_OPERAND_FORMAT_NVFP4;
};

template <typename T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  const uint8_t* first = reinterpret_cast<const uint8_t*>(values.data());
  return {first, first + values.size() * sizeof(T)};
}

// Operands on the host, of which group g takes the rows up to ends[g]; or with a capacity ends[g]
// rows from row g * capacity on.
struct GroupedProblem {
  GroupedSizes sizes;
  std::vector<int32_t> ends;
  int64_t capacity = 0;
  int32_t rows_hint = 0;
  std::vector<float> alphas;         // of each group, or none
  std::vector<float> alphas2;        // the same of the second sums of a gated product
  bool scales_turned = false;        // tiles of scales lie from the last group to the first
  bool b_shared = false;             // every group uses the B of group 0
  support::Problem tokens, weights;  // A of all rows; B of all groups
  support::Fields fields;

  GroupedProblem(const GroupedSizes& of, std::vector<int32_t> row_ends, uint64_t seed,
                 support::Data data = support::Data::random)
      : sizes(of),
        ends(std::move(row_ends)),
        tokens(of.a_type == NVFP4_TYPE_NONE
                   ? make({of.rows, 1, of.k}, data, seed)
                   : support::make_a16_problem({of.rows, 1, of.k}, of.a_type, data, seed)),
        weights(make({1, of.n, of.k, groups()}, data, seed + 1)) {
    fields.d_type = NVFP4_TYPE_F32;  // in which every other order of additions shows
    fields.alpha = tokens.alpha;
    tokens.a.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  }

  int64_t groups() const { return int64_t(ends.size()); }
  int64_t begin(int64_t group) const {
    if (capacity > 0) return group * capacity;
    return group == 0 ? 0 : ends[size_t(group - 1)];
  }
  int64_t end(int64_t group) const {
    return (capacity > 0 ? begin(group) : 0) + ends[size_t(group)];
  }
  bool tiled() const { return tokens.a.quantized() && tokens.a.layout == NVFP4_SCALE_LAYOUT_128X4; }

  // The first row of each group's tiles of scales.
  std::vector<int32_t> scale_rows() const {
    std::vector<int32_t> rows(ends.size());
    int64_t at = 0;
    for (int64_t i = 0; i < groups(); ++i) {
      const int64_t group = scales_turned ? groups() - 1 - i : i;
      rows[size_t(group)] = int32_t(at);
      at += (end(group) - begin(group) + 127) / 128 * 128;
    }
    return rows;
  }
  // Scales of A as they lie on the device.
  std::vector<uint8_t> token_scales() const {
    if (!tokens.a.quantized()) return std::vector<uint8_t>(16);
    if (!tiled()) return tokens.a.device_scales(0x7F, 0);
    const int64_t row_bytes = (sizes.k / tokens.a.block() + 3) / 4 * 4;
    std::vector<uint8_t> all(
        nvfp4_grouped_scale_bytes(sizes.rows, groups(), sizes.k, tokens.a.layout, sizes.format),
        0x7F);
    const std::vector<int32_t> first = scale_rows();
    for (int64_t group = 0; group < groups(); ++group) {
      if (end(group) == begin(group)) continue;
      const std::vector<uint8_t> tiles = product(group).a.interleaved_scales(0x7F);
      const size_t at = size_t(first[size_t(group)] * row_bytes);
      REQUIRE(at + tiles.size() <= all.size());
      std::copy(tiles.begin(), tiles.end(), all.begin() + int64_t(at));
    }
    return all;
  }

  // b2 of all groups.
  support::Operand weights2() const { return support::with_rows_reversed(weights.b); }

  bool packed() const { return fields.b_packing != NVFP4_PACKING_NONE; }
  // A matrix of weights as it lies on the device.
  std::vector<uint8_t> bytes_of_weights(const support::Operand& b) const {
    return packed() ? b.packed(fields.b_packing) : b.codes;
  }

  // The rows of one group, as a problem of its own.
  support::Problem single(int64_t group) const {
    return support::with_fields(product(group), fields, 1);
  }
  support::Problem product(int64_t group) const {
    const int64_t first = begin(group), count = end(group) - first;
    const support::Shape shape{count, sizes.n, sizes.k};
    support::Problem one = support::make_problem(shape);
    if (sizes.format != NVFP4_OPERAND_FORMAT_NVFP4) {
      one = support::with_format(one, sizes.format, support::Data::exact, 1);
    }
    if (sizes.a_type != NVFP4_TYPE_NONE) {
      one = support::with_a16(one, sizes.a_type, support::Data::exact, 1);
    }
    const auto copy = [&](const auto& from, auto& to, int64_t row_units, int64_t row) {
      std::copy_n(from.begin() + row * row_units, int64_t(to.size()), to.begin());
    };
    if (sizes.a_type == NVFP4_TYPE_NONE) {
      copy(tokens.a.codes, one.a.codes, tokens.a.ld / 2, first);
      copy_scales(tokens.a, first, &one.a);
    } else {
      copy(tokens.a.halves, one.a.halves, tokens.a.ld, first);
    }
    one.b.layout = weights.b.layout;
    const int64_t of_b = b_shared ? 0 : group;
    copy(weights.b.codes, one.b.codes, weights.b.batch_stride / 2, of_b);
    copy(weights.b.scales, one.b.scales, weights.b.scales_stride(), of_b);
    one.alpha = fields.alpha;
    one.batch_invariant = true;
    return one;
  }

 private:
  support::Problem make(const support::Shape& shape, support::Data data, uint64_t seed) const {
    support::Problem p = support::make_problem(shape, data, seed);
    if (sizes.format == NVFP4_OPERAND_FORMAT_NVFP4) return p;
    return support::with_format(p, sizes.format, data, seed);
  }
  static void copy_scales(const support::Operand& from, int64_t first, support::Operand* to) {
    for (int64_t row = 0; row < to->rows; ++row)
      for (int64_t block = 0; block < to->k / to->block(); ++block)
        to->set_scale(0, row, block, from.scale(0, first + row, block));
  }
};

// The same on the device, between guards. D begins as 0xFF.
class DeviceGrouped {
 public:
  DeviceGrouped(const Gpu& gpu, const GroupedProblem& problem)
      : a_(gpu.driver, problem.tokens.a.elements()),
        a_scales_(gpu.driver, problem.token_scales()),
        b_(gpu.driver, problem.bytes_of_weights(problem.weights.b)),
        b_scales_(gpu.driver, problem.weights.b.device_scales(0x7F, 0)),
        rows_(gpu.driver, bytes_of(problem.ends)),
        b2_(gpu.driver,
            problem.fields.gated() ? problem.bytes_of_weights(problem.weights2()) : none()),
        b2_scales_(gpu.driver,
                   problem.fields.gated() ? problem.weights2().device_scales(0x7F, 0) : none()),
        d_(gpu.driver, size_t(problem.sizes.rows * problem.sizes.n *
                              support::bytes_of_type(problem.fields.d_type))) {
    const GroupedSizes& s = problem.sizes;
    support::Fields fields = problem.fields;
    fields.lay_out({s.rows, s.n, s.k, problem.groups()});
    fields.operand_format = s.format, fields.a_type = s.a_type;
    gemm = numbers_of(fields);
    gemm.a = a_.pointer(), gemm.a_ld = problem.tokens.a.ld;
    if (s.a_type == NVFP4_TYPE_NONE) {
      gemm.a_scales = a_scales_.pointer();
      gemm.a_scale_layout = problem.tokens.a.layout;
    }
    const support::Operand& b = problem.weights.b;
    gemm.b = b_.pointer(), gemm.b_ld = b.ld;
    gemm.b_scales = b_scales_.pointer(), gemm.b_scale_layout = b.layout;
    grouped.b_shared = problem.b_shared;
    if (!problem.b_shared) {
      gemm.b_batch_stride = b.batch_stride;
      gemm.b_scales_batch_stride_bytes = b.device_scales_stride(0, b.layout);
    }
    gemm.d = d_.pointer(), gemm.d_batch_stride = 0;
    if (fields.gated()) gemm.b2 = b2_.pointer(), gemm.b2_scales = b2_scales_.pointer();
    if (problem.packed()) {
      gemm.b_ld = gemm.b_scales_batch_stride_bytes = 0;
      gemm.b_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
      gemm.b_scales = gemm.b2_scales = nullptr;
      if (!problem.b_shared) gemm.b_batch_stride = b.packed_stride(gemm.b_packing);
    }
    grouped.gemm = &gemm;
    grouped.rows = static_cast<const int32_t*>(rows_.pointer());
    grouped.rows_kind = problem.capacity > 0 ? NVFP4_ROWS_COUNTS : NVFP4_ROWS_ENDS;
    grouped.capacity = problem.capacity;
    grouped.rows_hint = problem.rows_hint;
    add_arrays(gpu, problem);
    add_workspace(gpu);
  }
  DeviceGrouped(const DeviceGrouped&) = delete;

  nvfp4_gemm_desc gemm{};
  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;

  // With the workspace that it needs.
  void take(const Gpu& gpu, const char* variant) {
    gemm.variant = variant;
    add_workspace(gpu);
  }
  void set_rows(const std::vector<int32_t>& ends) { rows_.upload(bytes_of(ends)); }
  void clear_d() { d_.upload(std::vector<uint8_t>(d_.bytes(), 0xFF)); }
  const int32_t* row_ends() const { return static_cast<const int32_t*>(rows_.pointer()); }
  std::vector<uint8_t> d() const { return d_.download(); }
  bool guards_intact() const {
    return d_.guards_intact() && a_.guards_intact() &&
           (workspace_ == nullptr || workspace_->guards_intact());
  }

 private:
  static std::vector<uint8_t> none() { return std::vector<uint8_t>(16); }

  void add_arrays(const Gpu& gpu, const GroupedProblem& problem) {
    const auto keep = [&](std::unique_ptr<support::DeviceBuffer>& to, const auto& values) {
      to = std::make_unique<support::DeviceBuffer>(gpu.driver, bytes_of(values));
      return to->pointer();
    };
    if (!problem.alphas.empty()) {
      grouped.group_alpha = static_cast<const float*>(keep(alphas_, problem.alphas));
    }
    if (!problem.alphas2.empty()) {
      grouped.group_alpha2 = static_cast<const float*>(keep(alphas2_, problem.alphas2));
    }
    if (problem.tiled() && problem.scales_turned) {
      grouped.scale_rows = static_cast<const int32_t*>(keep(scale_rows_, problem.scale_rows()));
    }
  }
  // On other devices than those of these tests no workspace exists, and none is requested.
  void add_workspace(const Gpu& gpu) {
    uint64_t bytes = 0;
    gemm.workspace = nullptr, gemm.workspace_bytes = 0;
    if (nvfp4_grouped_workspace_bytes(&grouped, gpu.info.compute_capability(), &bytes) != 0) return;
    if (bytes == 0) return;
    workspace_ = std::make_unique<support::DeviceBuffer>(gpu.driver, bytes);
    gemm.workspace = workspace_->pointer(), gemm.workspace_bytes = bytes;
  }

  support::DeviceBuffer a_, a_scales_, b_, b_scales_, rows_, b2_, b2_scales_, d_;
  std::unique_ptr<support::DeviceBuffer> alphas_, alphas2_, scale_rows_, workspace_;
};

// Biases fp32 or bf16 of all groups, n values each from every n + 3rd on. Those of groups without
// rows, and all between, are NaN.
struct GroupBiases {
  int64_t stride;
  std::vector<uint8_t> host;
  support::DeviceBuffer device;

  GroupBiases(const Gpu& gpu, const GroupedProblem& problem, int32_t type)
      : stride(problem.sizes.n + 3),
        host(size_t(problem.groups() * stride * support::bytes_of_type(type)), 0xFF),
        device(gpu.driver, filled(problem, type)),
        size_(support::bytes_of_type(type)),
        problem_(problem) {}
  GroupBiases(const GroupBiases&) = delete;

  // Where the bias begins of the group with rows whose rows begin there.
  const void* of_rows(int64_t begin) const {
    int64_t group = 0;
    while (problem_.begin(group) != begin || problem_.end(group) == begin) ++group;
    return static_cast<const uint8_t*>(device.pointer()) + group * stride * size_;
  }

 private:
  const std::vector<uint8_t>& filled(const GroupedProblem& problem, int32_t type) {
    for (int64_t group = 0; group < problem.groups(); ++group) {
      if (problem.end(group) == problem.begin(group)) continue;
      for (int64_t i = 0; i < problem.sizes.n; ++i) {
        const float value = float((group * 37 + i * 5) % 29) / 8 - 1.5f;  // exact in bf16
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint8_t* const at = host.data() + (group * stride + i) * support::bytes_of_type(type);
        if (type == NVFP4_TYPE_F32) {
          memcpy(at, &bits, 4);
        } else {
          const uint16_t half = uint16_t(bits >> 16);
          memcpy(at, &half, 2);
        }
      }
    }
    return host;
  }

  int64_t size_;
  const GroupedProblem& problem_;
};

// A tensor scale of each row of A; NaN of rows of no group.
struct RowFactors {
  std::vector<float> host;
  support::DeviceBuffer device;

  RowFactors(const Gpu& gpu, const GroupedProblem& problem)
      : host(filled(problem)), device(gpu.driver, bytes_of(host)) {}

  const float* of_rows(int64_t begin) const {
    return static_cast<const float*>(device.pointer()) + begin;
  }

 private:
  static std::vector<float> filled(const GroupedProblem& problem) {
    std::vector<float> factors(size_t(problem.sizes.rows), NAN);
    for (int64_t group = 0; group < problem.groups(); ++group)
      for (int64_t row = problem.begin(group); row < problem.end(group); ++row)
        factors[size_t(row)] = float(1 + row % 7) / 8;
    return factors;
  }
};

// Runs one product with a workspace, and waits. In kernel/sm80 only grouped products are gated:
// there it is a product of one group.
inline nvfp4_status run_single(const Gpu& gpu, nvfp4_gemm_desc& desc) {
  const int32_t capability = gpu.info.compute_capability();
  const support::DeviceBuffer rows(gpu.driver, bytes_of(std::vector<int32_t>{int32_t(desc.m)}));
  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
  grouped.gemm = &desc, grouped.rows = static_cast<const int32_t*>(rows.pointer());
  grouped.rows_kind = NVFP4_ROWS_ENDS;
  const bool mma = desc.variant != nullptr && std::strncmp(desc.variant, "sm80", 4) == 0;
  const bool alone = desc.b2 == nullptr || !mma;
  uint64_t bytes = 0;
  if (alone) nvfp4_gemm_workspace_bytes(&desc, capability, &bytes);
  const support::DeviceBuffer workspace(gpu.driver, std::max(bytes, uint64_t{1}));
  desc.workspace = workspace.pointer(), desc.workspace_bytes = bytes;
  const nvfp4_status status =
      alone ? nvfp4_gemm_run(&desc, nullptr) : nvfp4_grouped_run(&grouped, nullptr);
  gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  return status;
}

// What else a test asks of the single product whose rows begin there.
using Change = std::function<void(nvfp4_gemm_desc&, int64_t begin)>;

// D of all rows, group by group as single products, with batch_invariant if nothing is changed;
// rows of no group 0xFF.
inline std::vector<uint8_t> single_products(const Gpu& gpu, const GroupedProblem& problem,
                                            const Change& change = nullptr) {
  const int64_t row_bytes = problem.sizes.n * support::bytes_of_type(problem.fields.d_type);
  std::vector<uint8_t> d(size_t(problem.sizes.rows * row_bytes), 0xFF);
  for (int64_t group = 0; group < problem.groups(); ++group) {
    if (problem.end(group) == problem.begin(group)) continue;
    support::DeviceGemm one(gpu.driver, problem.single(group));
    if (!problem.alphas.empty()) {
      one.desc.scalar_mode = NVFP4_SCALARS_HOST;
      one.desc.alpha_device = one.desc.beta_device = nullptr;
      one.desc.alpha = problem.alphas[size_t(group)];
    }
    if (!problem.alphas2.empty()) one.desc.alpha2 = problem.alphas2[size_t(group)];
    if (change) change(one.desc, problem.begin(group));
    const nvfp4_status status = run_single(gpu, one.desc);
    INFO(nvfp4_last_error());
    REQUIRE(status == NVFP4_SUCCESS);
    const std::vector<uint8_t> rows = one.d_bytes();
    std::copy(rows.begin(), rows.end(), d.begin() + problem.begin(group) * row_bytes);
  }
  return d;
}

inline std::vector<uint8_t> run_grouped(const DeviceGrouped& device) {
  const nvfp4_status status = nvfp4_grouped_run(&device.grouped, nullptr);
  INFO(nvfp4_last_error());
  REQUIRE(status == NVFP4_SUCCESS);
  return device.d();
}

// D as nvfp4_grouped_reference leaves it; rows of no group 0xFF.
inline std::vector<uint8_t> grouped_reference(const GroupedProblem& problem,
                                              const DeviceGrouped& device,
                                              const GroupBiases* biases = nullptr,
                                              const RowFactors* factors = nullptr) {
  const support::Operand &a = problem.tokens.a, &b = problem.weights.b;
  const support::Operand b2 = problem.fields.gated() ? problem.weights2() : b;
  const std::vector<uint8_t> a_scales = problem.token_scales();
  const std::vector<uint8_t> b_scales = b.device_scales(0x7F, 0);
  const std::vector<uint8_t> b2_scales = b2.device_scales(0x7F, 0);
  const std::vector<uint8_t> of_b = problem.bytes_of_weights(b);
  const std::vector<uint8_t> of_b2 = problem.bytes_of_weights(b2);
  const std::vector<int32_t> scale_rows = problem.scale_rows();
  std::vector<uint8_t> d(device.d().size(), 0xFF);
  nvfp4_gemm_desc host = device.gemm;
  host.a = a.quantized() ? static_cast<const void*>(a.codes.data()) : a.halves.data();
  host.a_scales = a.quantized() ? a_scales.data() : nullptr;
  host.b = of_b.data(), host.d = d.data();
  if (host.b2 != nullptr) host.b2 = of_b2.data();
  if (!problem.packed()) {
    host.b_scales = b_scales.data();
    if (host.b2 != nullptr) host.b2_scales = b2_scales.data();
  }
  if (factors != nullptr) host.a_tensor_scale = factors->host.data();
  if (biases != nullptr) host.bias = biases->host.data();
  if (biases != nullptr && host.b2 != nullptr) host.bias2 = biases->host.data();
  nvfp4_grouped_desc grouped = device.grouped;
  grouped.gemm = &host, grouped.rows = problem.ends.data();
  if (grouped.scale_rows != nullptr) grouped.scale_rows = scale_rows.data();
  if (grouped.group_alpha != nullptr) grouped.group_alpha = problem.alphas.data();
  if (grouped.group_alpha2 != nullptr) grouped.group_alpha2 = problem.alphas2.data();
  const nvfp4_status status = nvfp4_grouped_reference(&grouped);
  INFO(nvfp4_last_error());
  REQUIRE(status == NVFP4_SUCCESS);
  return d;
}

// A variant that has such an entry, with the type of its tokens.
struct GroupedTile {
  const char* variant;
  int32_t a_type;
  operator std::string() const { return variant; }
};
inline bool is_blackwell() { return support::devices(support::Driver::get()).at(0).major == 10; }
// A device whose grouped products are those of kernel/sm80 alone.
inline bool is_mma_alone() {
  const int major = support::devices(support::Driver::get()).at(0).major;
  return major == 8 || major == 12;
}

// Tiles of mma.sync that have such an entry.
inline std::vector<GroupedTile> mma_tiles() {
  return {{"sm80_f16_64x16w4x128", NVFP4_TYPE_F16},
          {"sm80_bf16_64x8w4x128", NVFP4_TYPE_BF16},
          {"sm80_bf16_64x16w4x128", NVFP4_TYPE_BF16}};
}

// Group boundaries drawn by seed: some groups are empty, some have one row.
inline std::vector<int32_t> drawn_ends(int64_t rows, int64_t groups, uint64_t seed) {
  support::Random random(seed);
  std::vector<int32_t> ends;
  for (int64_t i = 0; i + 1 < groups; ++i)
    ends.push_back(int32_t(random.below(uint32_t(rows + 1))));
  ends.push_back(int32_t(rows));
  std::sort(ends.begin(), ends.end());
  for (size_t i = 3; i + 1 < ends.size(); i += 4) ends[i] = ends[i - 1];
  return ends;
}

// What the single products have whose bits a row has: but on 10.x the tile with K whole.
inline void take_tile(const GroupedTile& tile, nvfp4_gemm_desc& g) {
  static std::string whole;
  whole = tile.variant;
  if (!is_blackwell()) whole += "/1", g.batch_invariant = 0;
  g.variant = whole.c_str();
}

inline void require_bits_of_singles(const Gpu& gpu, const GroupedTile& tile,
                                    const GroupedProblem& problem) {
  DeviceGrouped device(gpu, problem);
  device.take(gpu, tile.variant);
  CAPTURE(tile.variant);
  const auto alike = [&](nvfp4_gemm_desc& g, int64_t) { take_tile(tile, g); };
  CHECK(run_grouped(device) == single_products(gpu, problem, alike));
  CHECK(device.guards_intact());
}

}  // namespace gemm_test
