// SPDX-License-Identifier: MIT
// nvfp4_bench grouped: the rows of experts in one launch, packed (ENDS) and each expert's at a
// multiple of the capacity (COUNTS), beside a loop of single products and beside one product whose
// weights have the same bytes. Every row of both, of a large D of those that are looked at, has the
// bits of its group's single product by the same variant, with K in as many parts, or nothing is
// timed.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/commands.h"
#include "bench/device.h"
#include "bench/figures.h"
#include "bench/head.h"
#include "bench/yardsticks.h"
#include "tools/harness/progress.h"

namespace bench {
namespace {

using support::DeviceBuffer;
using support::Driver;

struct Layer {
  std::string name;
  int64_t experts, n, k;
};
#define EXPERTS(name, experts, n, k) {name, experts, n, k},
const Layer kLayers[] = {
#include "bench/experts.def"
};
const Layer kEmulated{"four", 4, 192, 512};

// Those of the options' shapes, EXPERTSxNxK, or the layers whose names have what they say.
std::vector<Layer> layers_of(const GroupedOptions& options) {
  std::vector<Layer> layers;
  for (const std::string& text : options.shapes) {
    const support::Shape shape = parse_shape(text);
    layers.push_back({text, shape.m, shape.n, shape.k});
  }
  for (const Layer& layer : kLayers) {
    const bool named = layer.name.find(options.layer) != std::string::npos;
    if (named && options.shapes.empty()) layers.push_back(layer);
  }
  return layers;
}

// How the rows are divided among the groups, for a given mean.
enum class Routing { even, skewed, half_empty };
constexpr const char* kRoutings[] = {"even", "skewed", "half-empty"};
constexpr Routing kEachRouting[] = {Routing::even, Routing::skewed, Routing::half_empty};

bool is_wanted(const GroupedOptions& options, Routing routing) {
  const auto& wanted = options.routings;
  return wanted.empty() ||
         std::find(wanted.begin(), wanted.end(), kRoutings[int(routing)]) != wanted.end();
}

// Where the rows of each group end.
std::vector<int32_t> ends_of(const Layer& layer, int64_t rows, Routing routing) {
  const int64_t all = layer.experts * rows;
  // Skewed: the second has 60 % of all rows, the others share what is left.
  const int64_t most = all * 6 / 10, others = layer.experts - 1;
  std::vector<int32_t> ends;
  for (int64_t i = 0; i < layer.experts; ++i) {
    const int64_t before = i == 0 ? 1 : i;  // of the others, up to this group
    int64_t end = (i + 1) * rows;
    if (routing == Routing::half_empty) end = (i / 2 + 1) * 2 * rows;
    if (routing == Routing::skewed) end = (i == 0 ? 0 : most) + (all - most) * before / others;
    ends.push_back(int32_t(std::min(end, all)));
  }
  return ends;
}

// Random bytes. Scales are between 2^-2 and 1.75, far from the NaN of UE4M3.
std::vector<uint8_t> random_bytes(size_t count, bool scales, uint64_t seed) {
  support::Random random(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) {
    byte = scales ? uint8_t(40 + random.below(24)) : uint8_t(random.below(256));
  }
  return bytes;
}

// Random numbers of 16 bits around 1, of either sign.
std::vector<uint8_t> random_halves(size_t bytes) {
  support::Random random(3);
  std::vector<uint8_t> all(bytes);
  for (size_t i = 0; i < bytes; i += 2) {
    all[i] = uint8_t(random.below(256)), all[i + 1] = uint8_t(0x3F + random.below(2) * 0x80);
  }
  return all;
}

// A buffer of the device of which each expert's part is another piece of make(bytes).
template <typename F>
std::unique_ptr<DeviceBuffer> filled(const Driver& driver, int64_t experts, size_t bytes,
                                     const F& make) {
  constexpr size_t kMost = size_t{8} << 20, kShift = 4096;
  const size_t piece = std::min(bytes, kMost);
  const DeviceBuffer some(driver, make(piece + kShift * size_t(experts)));
  auto all = std::make_unique<DeviceBuffer>(driver, bytes * size_t(experts));
  for (size_t expert = 0; expert < size_t(experts); ++expert) {
    for (size_t at = 0; at < bytes; at += piece) {
      driver.check(
          driver.cuMemcpyDtoD(all->address() + expert * bytes + at,
                              some.address() + expert * kShift, std::min(piece, bytes - at)),
          "cuMemcpyDtoD");
    }
  }
  return all;
}
std::unique_ptr<DeviceBuffer> filled(const Driver& driver, int64_t experts, size_t bytes,
                                     bool scales, uint64_t seed) {
  return filled(driver, experts, bytes,
                [&](size_t count) { return random_bytes(count, scales, seed); });
}

// Rows of A and D where each expert has room for `capacity` rows, most of which stay empty. They
// serve all sets of weights.
class Counted {
 public:
  Counted(const Driver& driver, const Layer& layer, int64_t most, int32_t a_type)
      : capacity(most),
        a_row_bytes(size_t(layer.k * (a_type == NVFP4_TYPE_NONE ? 1 : 4) / 2)),
        a(driver, rows(layer) * a_row_bytes),
        a_scales(driver, rows(layer) * size_t(layer.k / 16)),
        d(driver, rows(layer) * size_t(layer.n * 2)),
        counts(driver, size_t(layer.experts * 4)),
        driver_(driver) {}
  Counted(const Counted&) = delete;

  const int64_t capacity;
  const size_t a_row_bytes;
  DeviceBuffer a, a_scales, d, counts;

  bool fits(const std::vector<int32_t>& ends) const {
    int32_t before = 0, most = 0;
    for (const int32_t end : ends) most = std::max(most, end - before), before = end;
    return most <= capacity;
  }
  // The rows of `from`, [all rows][bytes], at each expert's place.
  void place(const DeviceBuffer& from, size_t bytes, const std::vector<int32_t>& ends,
             DeviceBuffer& to) const {
    each(ends, [&](size_t expert, size_t begin, size_t count) {
      copy(to.address() + expert * size_t(capacity) * bytes, from.address() + begin * bytes,
           count * bytes);
    });
  }
  void set_counts(const std::vector<int32_t>& ends) {
    std::vector<uint8_t> bytes(ends.size() * 4);
    each(ends, [&](size_t expert, size_t, size_t count) {
      const int32_t rows = int32_t(count);
      std::memcpy(&bytes[expert * 4], &rows, 4);
    });
    counts.upload(bytes);
  }
  // The rows of D of all experts one after the other.
  void collect(const DeviceBuffer& to, size_t bytes, const std::vector<int32_t>& ends) const {
    each(ends, [&](size_t expert, size_t begin, size_t count) {
      copy(to.address() + begin * bytes, d.address() + expert * size_t(capacity) * bytes,
           count * bytes);
    });
  }

 private:
  size_t rows(const Layer& layer) const { return size_t(layer.experts * capacity); }
  template <typename F>
  static void each(const std::vector<int32_t>& ends, const F& f) {
    size_t begin = 0;
    for (size_t expert = 0; expert < ends.size(); ++expert) {
      const size_t end = size_t(ends[expert]);
      f(expert, begin, end - begin);
      begin = end;
    }
  }
  void copy(CUdeviceptr to, CUdeviceptr from, size_t bytes) const {
    if (bytes > 0) driver_.check(driver_.cuMemcpyDtoD(to, from, bytes), "cuMemcpyDtoD");
  }

  const Driver& driver_;
};

// One set of weights, the rows of all groups, and D. Sets take turns, so that weights are cold.
class Experts {
 public:
  Experts(const Gpu& gpu, const Layer& layer, int64_t rows, const GroupedOptions& options,
          Counted& counted)
      : driver_(gpu.driver), rows_(layer.experts * rows), counted_(counted) {
    const int64_t n = layer.n, k = layer.k;
    const size_t codes = size_t(n * k / 2);
    const size_t scales = nvfp4_scale_bytes(n, k, NVFP4_SCALE_LAYOUT_128X4);
    b_ = filled(driver_, layer.experts, codes, false, 1);
    b_scales_ = filled(driver_, layer.experts, scales, true, 2);
    const int32_t a_type = options.a_type;
    const bool halves = a_type != NVFP4_TYPE_NONE;
    a_ = halves ? filled(driver_, layer.experts, size_t(rows * k * 2), random_halves)
                : filled(driver_, layer.experts, size_t(rows * k / 2), false, 3);
    host_scales_ = random_bytes(size_t(rows_ * k / 16), true, 4);
    a_scales_ = std::make_unique<DeviceBuffer>(driver_, host_scales_);
    loop_scales_ = std::make_unique<DeviceBuffer>(
        driver_, host_scales_.size() + kScaleAlignment * size_t(layer.experts));
    d_ = std::make_unique<DeviceBuffer>(driver_, size_t(rows_ * n * 2));
    ends_ = std::make_unique<DeviceBuffer>(driver_, size_t(layer.experts * 4));
    gemm = NVFP4_GEMM_DESC_INIT;
    gemm.m = rows_, gemm.n = n, gemm.k = k, gemm.l = layer.experts;
    gemm.a = a_->pointer(), gemm.a_ld = k, gemm.a_type = a_type;
    if (!halves) {
      gemm.a_scales = a_scales_->pointer(), gemm.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    }
    gemm.b = b_->pointer(), gemm.b_ld = k, gemm.b_batch_stride = n * k;
    gemm.b_scales = b_scales_->pointer(), gemm.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    gemm.b_scales_batch_stride_bytes = int64_t(scales);
    gemm.d = d_->pointer(), gemm.d_ld = n, gemm.d_type = NVFP4_TYPE_BF16;
    gemm.alpha = 1.0f / 4096;
    if (!options.variant.empty()) gemm.variant = options.variant.c_str();
    grouped.struct_size = sizeof grouped;
    grouped.gemm = &gemm;
    grouped.rows = static_cast<const int32_t*>(ends_->pointer());
    grouped.rows_kind = NVFP4_ROWS_ENDS;
    grouped.rows_hint = int32_t(rows);
    take_counted();
    const int32_t capability = gpu.info.compute_capability();
    uint64_t bytes = 0, of_one = 0, of_counts = 0;
    check(nvfp4_grouped_workspace_bytes(&grouped, capability, &bytes));
    check(nvfp4_grouped_workspace_bytes(&in_counts, capability, &of_counts));
    nvfp4_gemm_desc one = gemm;  // of the loop's at most
    one.l = 1, one.variant = nullptr;
    check(nvfp4_gemm_workspace_bytes(&one, capability, &of_one));
    bytes = std::max({bytes, of_one, of_counts});
    workspace_ = std::make_unique<DeviceBuffer>(driver_, size_t(bytes + (64 << 20)));
    gemm.workspace = workspace_->pointer(), gemm.workspace_bytes = workspace_->bytes();
    if (options.packed) take_packed();
    gemm_counts.workspace = gemm.workspace, gemm_counts.workspace_bytes = gemm.workspace_bytes;
  }
  Experts(const Experts&) = delete;

  nvfp4_gemm_desc gemm{}, gemm_counts{}, gemm_packed{};
  nvfp4_grouped_desc grouped{}, in_counts{}, of_packed{};

  void divide(const std::vector<int32_t>& ends) {
    host_ends_ = ends;
    std::vector<uint8_t> bytes(ends.size() * 4);
    std::memcpy(bytes.data(), ends.data(), bytes.size());
    ends_->upload(bytes);
    align_scales_for_loop();
  }
  void run(CUstream stream) const { check(nvfp4_grouped_run(&grouped, stream)); }
  void run_counts(CUstream stream) const { check(nvfp4_grouped_run(&in_counts, stream)); }
  void run_packed(CUstream stream) const { check(nvfp4_grouped_run(&of_packed, stream)); }
  // Puts the rows where COUNTS has them. False if an expert has more than the capacity.
  bool spread_rows() {
    if (!counted_.fits(host_ends_)) return false;
    counted_.set_counts(host_ends_);
    counted_.place(*a_, counted_.a_row_bytes, host_ends_, counted_.a);
    if (gemm.a_scales != nullptr) {
      counted_.place(*a_scales_, size_t(gemm.k / 16), host_ends_, counted_.a_scales);
    }
    return true;
  }
  std::vector<uint8_t> d_of_counts() {
    counted_.collect(*d_, size_t(gemm.n * 2), host_ends_);
    return d();
  }
  // The variant of a grouped product, cut along K as it is.
  std::string variant(const Gpu& gpu, const nvfp4_grouped_desc& of) const {
    nvfp4_plan_info info{};
    info.struct_size = sizeof info;
    check(nvfp4_grouped_describe(&of, gpu.info.compute_capability(), gpu.info.sms, &info));
    return formatted("%s/%d", info.variant, int(info.k_partitions));
  }
  // One product for each group that has rows: what a caller without grouped products does.
  void loop(const nvfp4_gemm_desc& of, const char* variant, CUstream stream) const {
    int64_t begin = 0;
    for (size_t group = 0; group < host_ends_.size(); ++group) {
      const int64_t end = host_ends_[group];
      if (end > begin) check(run_rows(of, int64_t(group), begin, end, variant, stream));
      begin = end;
    }
  }
  // All experts' weights as one matrix, for the rows of one group: the same bytes, as many of D.
  void single(int64_t rows, CUstream stream) const {
    nvfp4_gemm_desc g = gemm;
    g.m = rows, g.n = gemm.n * gemm.l, g.l = 1, g.d_ld = g.n, g.variant = nullptr;
    check(nvfp4_gemm_run(&g, stream));
  }
  // All of D; of more than 64 MiB so many pieces of 1 MiB, evenly spread from the first byte to the
  // last.
  std::vector<uint8_t> d() const {
    constexpr size_t kPieces = 64, kPiece = size_t{1} << 20;
    driver_.check(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
    if (d_->bytes() <= kPieces * kPiece) return d_->download();
    std::vector<uint8_t> pieces(kPieces * kPiece);
    for (size_t i = 0; i < kPieces; ++i) {
      const size_t at = (d_->bytes() - kPiece) * i / (kPieces - 1);
      driver_.check(driver_.cuMemcpyDtoH(&pieces[i * kPiece], d_->address() + at, kPiece),
                    "cuMemcpyDtoH");
    }
    return pieces;
  }
  void clear() {
    driver_.check(driver_.cuMemsetD8(d_->address(), 0xFF, d_->bytes()), "cuMemsetD8");
  }

 private:
  static constexpr size_t kScaleAlignment = 16;
  static constexpr int32_t kPacking = NVFP4_PACKING_SM90_1;

  int64_t packed_bytes() const {
    return int64_t(nvfp4_packed_bytes(gemm.n, gemm.k, kPacking, gemm.operand_format));
  }
  void take_packed() {
    packed_ = std::make_unique<DeviceBuffer>(driver_, size_t(packed_bytes() * gemm.l));
    nvfp4_pack_desc p = NVFP4_PACK_DESC_INIT;
    p.n = gemm.n, p.k = gemm.k, p.l = gemm.l, p.format = gemm.operand_format, p.packing = kPacking;
    p.codes = b_->pointer(), p.codes_ld = gemm.b_ld, p.codes_batch_stride = gemm.b_batch_stride;
    p.scales = b_scales_->pointer(), p.scale_layout = gemm.b_scale_layout;
    p.scales_batch_stride_bytes = gemm.b_scales_batch_stride_bytes;
    p.packed = packed_->pointer(), p.packed_batch_stride_bytes = packed_bytes();
    check(nvfp4_pack_weights(&p, nullptr));
    gemm_packed = gemm, of_packed = grouped, of_packed.gemm = &gemm_packed;
    gemm_packed.b = packed_->pointer(), gemm_packed.b_scales = nullptr;
    gemm_packed.b_packing = kPacking, gemm_packed.b_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
    gemm_packed.b_batch_stride =
        support::packed_stride(gemm.n, gemm.k, kPacking, gemm.operand_format);
    gemm_packed.b_ld = gemm_packed.b_scales_batch_stride_bytes = 0;
  }
  void take_counted() {
    gemm_counts = gemm, in_counts = grouped;
    gemm_counts.m = gemm.l * counted_.capacity;
    gemm_counts.a = counted_.a.pointer(), gemm_counts.d = counted_.d.pointer();
    if (gemm.a_scales != nullptr) gemm_counts.a_scales = counted_.a_scales.pointer();
    in_counts.gemm = &gemm_counts;
    in_counts.rows = static_cast<const int32_t*>(counted_.counts.pointer());
    in_counts.rows_kind = NVFP4_ROWS_COUNTS, in_counts.capacity = counted_.capacity;
  }

  // A single product wants the scales of its first row at 16 bytes. A row of K = 2880 has 180, so
  // the loop has the scales of each group from an aligned address.
  void align_scales_for_loop() {
    std::vector<uint8_t> bytes(loop_scales_->bytes());
    size_t to = 0, from = 0;
    group_scales_.clear();
    for (const int32_t end : host_ends_) {
      const size_t until = size_t(int64_t(end) * gemm.k / 16);
      std::copy(&host_scales_[0] + from, &host_scales_[0] + until, &bytes[to]);
      group_scales_.push_back(int64_t(to));
      to = (to + until - from + kScaleAlignment - 1) / kScaleAlignment * kScaleAlignment;
      from = until;
    }
    loop_scales_->upload(bytes);
  }
  nvfp4_status run_rows(const nvfp4_gemm_desc& of, int64_t group, int64_t begin, int64_t end,
                        const char* variant, CUstream stream) const {
    nvfp4_gemm_desc g = of;
    const bool packed = of.b_packing != NVFP4_PACKING_NONE;
    const bool halves = gemm.a_type != NVFP4_TYPE_NONE;
    const auto past = [](const void* from, int64_t bytes) {
      return static_cast<const uint8_t*>(from) + bytes;
    };
    g.m = end - begin, g.l = 1, g.variant = variant;
    g.a = past(gemm.a, begin * gemm.k * (halves ? 4 : 1) / 2);
    if (!halves) g.a_scales = past(loop_scales_->pointer(), group_scales_[size_t(group)]);
    g.b = past(of.b, group * (packed ? packed_bytes() : of.b_batch_stride / 2));
    if (!packed) g.b_scales = past(of.b_scales, group * of.b_scales_batch_stride_bytes);
    g.d = static_cast<uint8_t*>(gemm.d) + begin * gemm.n * 2;
    return nvfp4_gemm_run(&g, stream);
  }

  const Driver& driver_;
  int64_t rows_;
  Counted& counted_;
  std::vector<int32_t> host_ends_;
  std::vector<uint8_t> host_scales_;
  std::vector<int64_t> group_scales_;  // where those of each group begin in loop_scales_
  std::unique_ptr<DeviceBuffer> a_, a_scales_, loop_scales_, b_, b_scales_, packed_, d_, ends_,
      workspace_;
};

void verify_packed(const Gpu& gpu, Experts& experts, const std::string& name) {
  if (experts.of_packed.gemm == nullptr) return;
  experts.clear();
  experts.run_packed(nullptr);
  const std::vector<uint8_t> d = experts.d();
  experts.clear();
  experts.loop(experts.gemm_packed, experts.variant(gpu, experts.of_packed).c_str(), nullptr);
  if (experts.d() != d)
    throw std::runtime_error(name + ": rows of packed weights have other bits than their product");
}

// Where COUNTS can have these rows, their D, too.
void verify(const Gpu& gpu, Experts& experts, bool counts, const std::string& name) {
  experts.clear();
  experts.run(nullptr);
  const std::vector<uint8_t> d = experts.d();
  experts.clear();
  experts.loop(experts.gemm, experts.variant(gpu, experts.grouped).c_str(), nullptr);
  if (experts.d() != d)
    throw std::runtime_error(name + ": rows have not the bits of their group's product");
  verify_packed(gpu, experts, name);
  if (!counts) return;
  experts.clear();
  experts.run_counts(nullptr);
  if (experts.d_of_counts() != d)
    throw std::runtime_error(name + ": with COUNTS rows have other bits");
}

struct Figures {
  double grouped = 0, loop = 0, counts = 0, single = 0, packed = 0;
};

// Each in turn; weights cold.
Figures time_routing(GpuTimer& timer, std::vector<std::unique_ptr<Experts>>& sets, int64_t rows,
                     bool counts, bool single, int replays) {
  const auto turns = [&](const auto& run) { return support::in_turns(sets, run, 4); };
  std::vector<Series> series{
      turns([](const Experts& set, CUstream stream) { set.run(stream); }),
      turns([](const Experts& set, CUstream stream) { set.loop(set.gemm, nullptr, stream); })};
  const bool packed = sets[0]->of_packed.gemm != nullptr;
  if (counts) {
    series.push_back(turns([](const Experts& set, CUstream stream) { set.run_counts(stream); }));
  }
  if (single) {
    series.push_back(
        turns([rows](const Experts& set, CUstream stream) { set.single(rows, stream); }));
  }
  if (packed) {
    series.push_back(turns([](const Experts& set, CUstream stream) { set.run_packed(stream); }));
  }
  const auto times = timer.interleaved(series, replays);
  Figures us{median(times[0]), median(times[1])};
  size_t next = 2;
  if (counts) us.counts = median(times[next++]);
  if (single) us.single = median(times[next++]);
  if (packed) us.packed = median(times[next++]);
  return us;
}

double bytes_of_weights(const Layer& layer, const std::vector<int32_t>& ends) {
  int64_t with_rows = 0, begin = 0;
  for (const int32_t end : ends) with_rows += end > begin, begin = end;
  return double(with_rows * layer.n * layer.k) * kQuantizedBytes;
}

// What the run's GPU reads, and how long it takes for an empty node of a graph.
struct Measured {
  double bytes_per_us, node_us;
};

void print_figure(double us) {
  if (us > 0) std::printf("%.2f", us);
  std::printf(",");
}

void print_row(const Layer& layer, int64_t rows, Routing routing, int64_t capacity,
               const Figures& us, const Measured& by, const std::vector<int32_t>& ends) {
  const double reading = bytes_of_weights(layer, ends) / by.bytes_per_us;
  std::printf("%s,%lld,%lld,%lld,%lld,%s,%lld,%.2f,", layer.name.c_str(), (long long)layer.experts,
              (long long)layer.n, (long long)layer.k, (long long)rows, kRoutings[int(routing)],
              (long long)capacity, us.grouped);
  print_figure(us.counts);
  print_figure(us.loop);
  print_figure(us.single);
  std::printf("%.3f,%.2f,%.2f", us.loop / us.grouped, reading, by.node_us + 3 + reading / 0.85);
  if (us.packed > 0) std::printf(",%.2f", us.packed);
  std::printf("\n");
  std::fflush(stdout);
}

// Up to 4,096 rows of each expert, but no more than 131,072 of all, whose D is 1.5 GB.
int64_t capacity_of(const Layer& layer) {
  return std::min<int64_t>(4096, (int64_t{1} << 17) / layer.experts);
}

void time_layer(const Gpu& gpu, GpuTimer& timer, const Measured& by, const Layer& layer,
                int64_t rows, const GroupedOptions& options) {
  support::progress(layer.name + formatted(": %lld rows a group", (long long)rows));
  const double bytes = double(layer.experts * layer.n * layer.k) * kQuantizedBytes;
  std::vector<std::unique_ptr<Experts>> sets;
  const int count = std::min(8, cold_copies(bytes, gpu.l2_bytes));
  Counted counted(gpu.driver, layer, capacity_of(layer), options.a_type);
  for (int i = 0; i < count; ++i)
    sets.push_back(std::make_unique<Experts>(gpu, layer, rows, options, counted));
  for (const Routing routing : kEachRouting) {
    if (!is_wanted(options, routing)) continue;
    const std::vector<int32_t> ends = ends_of(layer, rows, routing);
    for (const auto& set : sets) set->divide(ends);
    const bool counts = sets[0]->spread_rows();
    verify(gpu, *sets[0], counts, layer.name + ", " + kRoutings[int(routing)]);
    const bool single = routing == Routing::even && layer.n % 128 == 0;
    print_row(layer, rows, routing, counted.capacity,
              time_routing(timer, sets, rows, counts, single, options.replays), by, ends);
  }
}

void verify_in_emulator(const Gpu& gpu, const GroupedOptions& options) {
  Counted counted(gpu.driver, kEmulated, 16, options.a_type);
  Experts experts(gpu, kEmulated, 5, options, counted);
  for (const Routing routing : kEachRouting) {
    experts.divide(ends_of(kEmulated, 5, routing));
    verify(gpu, experts, experts.spread_rows(), kRoutings[int(routing)]);
  }
  experts.single(5, nullptr);
  experts.d();
  std::printf("# %s: nothing is timed in the emulator\n", gpu.info.name.c_str());
}

}  // namespace

int time_grouped(const GroupedOptions& options) {
  const Driver& driver = Driver::get();
  const support::Context context(driver);
  const Gpu gpu(driver);
  if (gpu.info.emulated()) return verify_in_emulator(gpu, options), 0;
  GpuTimer timer(driver);
  const Measured by{read_bytes_per_us(driver, timer, gpu.info.sms), empty_node_us(driver, timer)};
  int version = 0;
  driver.check(driver.cuDriverGetVersion(&version), "cuDriverGetVersion");
  const Head head{
      {"date", today()},
      {"command", options.command},
      {"device", formatted("%s, %d SMs", gpu.info.name.c_str(), gpu.info.sms)},
      {"driver", driver_release() + formatted("CUDA %d.%d", version / 1000, version % 1000 / 10)},
      {"library", nvfp4_build_info()},
      {"build", build_id()},
      {"reading", formatted("%.2f TB/s", by.bytes_per_us / 1e6)},
      {"node", formatted("%.2f us for an empty kernel in a graph", by.node_us)},
      {"skewed", "one expert has 60 % of the rows"},
      {"counts_us", "COUNTS, where no expert has more rows than the capacity; grouped_us is ENDS"},
      {"single_us", "one product of all weights, with the rows of one group"},
      {"read_us", "to read the weights of the experts that have rows"},
      {"goal_us", "node + 3 us + read_us / 0.85: the goal up to 4 rows of each group"},
  };
  std::printf(
      "# Microseconds by graph replay, weights cold, median of %d replays that take turns.\n%s"
      "layer,experts,n,k,rows_a_group,routing,capacity,grouped_us,counts_us,loop_us,single_us,"
      "loop_over_grouped,read_us,goal_us%s\n",
      options.replays, as_comments(head).c_str(), options.packed ? ",packed_us" : "");
  for (const Layer& layer : layers_of(options)) {
    for (const int64_t rows : options.rows) time_layer(gpu, timer, by, layer, rows, options);
  }
  support::progress_done();
  return 0;
}

}  // namespace bench
