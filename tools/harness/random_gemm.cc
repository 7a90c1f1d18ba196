// SPDX-License-Identifier: MIT
#include "tools/harness/random_gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "tools/harness/exact.h"
#include "tools/harness/general_gemm.h"
#include "tools/harness/plan_info.h"

namespace support {

namespace {

constexpr size_t kArenaBytes = size_t{24} << 20;
constexpr size_t kGuard = 512;             // 0xFF between arrays
constexpr uint64_t kElsewhere = 1u << 20;  // how far a plan's own addresses are from those of a run

struct Field {
  const char* name;
  int64_t RandomGemm::*value;
  int64_t simplest;
};
constexpr Field kFields[] = {
#define FIELD(name, simplest) {#name, &RandomGemm::name, simplest},
#include "tools/harness/random_gemm.def"
#undef FIELD
};

// ---- draw ---------------------------------------------------------------------------------------

// Small sizes are more likely; what is beside a tile's edge is as likely as anything.
int64_t draw_size(Random& random, uint32_t most) {
  static const uint32_t edges[] = {8, 16, 32, 64, 128, 256};
  switch (random.below(4)) {
    case 0: return 1 + random.below(8);
    case 1: return std::min(most, edges[random.below(6)] - 1 + random.below(3));
    case 2: return 1 + random.below(most / 4);
    default: return 1 + random.below(most);
  }
}

int64_t draw_k16(Random& random) {
  switch (random.below(8)) {
    case 0: return 1 + random.below(160);
    case 1: return 4 * (1 + random.below(20));
    case 2: return random.below(12) == 0 ? 0 : 16 * (1 + random.below(5));
    default: return 1 + random.below(40);
  }
}

void draw_epilogue(RandomGemm& g, Random& random) {
  EpilogueFields f = random_fields({g.m, g.n, g.k16 * 16, g.l}, random);
  if (random.below(3) == 0) f = {};  // what has a way of its own
  g.d_type = f.d_type, g.c_type = f.c_type, g.bias_type = f.bias_type;
  g.scalars = f.scalar_mode, g.activation = f.activation;
  g.order = f.cd_order, g.axis = f.bias_axis;
  g.a_scale = f.a_tensor_scale, g.a_scale_rows = f.a_tensor_scale_rows;
  g.b_scale = f.b_tensor_scale;
  g.columns = f.b_tensor_scale_columns / 64;
  g.alpha = int64_t(std::lround(f.alpha * 256)), g.beta = int64_t(std::lround(f.beta * 256));
  g.c_ld = f.c_ld_gap, g.d_ld = f.d_ld_gap;
  g.c_batch = f.c_batch_gap, g.d_batch = f.d_batch_gap, g.c_is_d = f.c_is_d;
  g.d_linear = f.d_scale_layout == NVFP4_SCALE_LAYOUT_LINEAR;
  g.d_rule = f.d_scale_rule, g.d_scale = f.d_tensor_scale;
  g.d_amax = random.below(4) == 0, g.d_row_amax = random.below(4) == 0;
}

// So many multiplications take the reference a few milliseconds.
void limit_work(RandomGemm& g) {
  constexpr int64_t kMost = 1 << 20;
  while (g.m * g.n * g.l * g.k16 * 16 > kMost) {
    int64_t& largest = g.n >= g.m && g.n >= g.k16 ? g.n : g.m >= g.k16 ? g.m : g.k16;
    largest = (largest + 1) / 2;
  }
}

// ---- from numbers to a problem ------------------------------------------------------------------

// MXFP4 has blocks of 32.
int32_t format_of(const RandomGemm& g) {
  if (g.format == NVFP4_OPERAND_FORMAT_MXFP4 && g.k16 % 2 != 0) {
    return NVFP4_OPERAND_FORMAT_E2M1_UE8M0;
  }
  return int32_t(g.format);
}

Problem operands_of(const RandomGemm& g) {
  const Shape shape{g.m, g.n, g.k16 * 16, g.l};
  Gaps gaps;
  gaps.a_ld = 32 * g.a_ld, gaps.b_ld = 32 * g.b_ld;
  gaps.a_batch = 32 * g.a_batch, gaps.b_batch = 32 * g.b_batch;
  gaps.scales_batch_bytes = 16 * g.scales_batch;
  const Data data = g.off_grid != 0 ? Data::random : Data::exact;
  const bool halves = g.a_type != NVFP4_TYPE_NONE;
  const auto seed = uint64_t(g.data);
  Problem p = g.k16 == 0 && !halves ? make_problem(shape) : make_problem(shape, data, seed, gaps);
  const int32_t format = format_of(g);
  if (format != NVFP4_OPERAND_FORMAT_NVFP4) p = with_format(std::move(p), format, data, seed);
  if (halves) p = with_a16(std::move(p), int32_t(g.a_type), data, seed);
  if (g.a_linear != 0) p.a.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  if (g.b_linear != 0) p.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  p.pdl = int32_t(g.pdl), p.batch_invariant = g.batch_invariant != 0;
  return p;
}

EpilogueFields fields_of(const RandomGemm& g) {
  EpilogueFields f;
  if (g.off_grid != 0) {
    f.d_type = NVFP4_TYPE_F32;
    f.cd_order = int32_t(g.order), f.d_ld_gap = g.d_ld, f.d_batch_gap = g.d_batch;
    return f;
  }
  f.d_type = int32_t(g.d_type), f.c_type = int32_t(g.c_type), f.bias_type = int32_t(g.bias_type);
  f.scalar_mode = int32_t(g.scalars), f.activation = int32_t(g.activation);
  f.cd_order = int32_t(g.order), f.bias_axis = int32_t(g.axis);
  f.a_tensor_scale = g.a_scale != 0;
  f.a_tensor_scale_rows = f.a_tensor_scale && g.a_scale_rows != 0;
  f.b_tensor_scale = g.b_scale != 0;
  f.b_tensor_scale_columns = f.b_tensor_scale ? 64 * g.columns : 0;
  f.alpha = float(g.alpha) / 256;
  f.beta = f.c_type == NVFP4_TYPE_NONE ? 0 : float(g.beta) / 256;
  f.d_ld_gap = g.d_ld, f.d_batch_gap = g.d_batch;
  f.c_is_d = g.c_is_d != 0 && f.c_type == f.d_type;
  f.c_ld_gap = f.c_is_d ? g.d_ld : g.c_ld, f.c_batch_gap = f.c_is_d ? g.d_batch : g.c_batch;
  if (g.d_linear != 0) f.d_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  f.d_scale_rule = int32_t(g.d_rule), f.d_tensor_scale = g.d_scale != 0;
  f.d_amax = g.d_amax != 0, f.d_row_amax = g.d_row_amax != 0;
  return possible(f, {g.m, g.n, g.k16 * 16, g.l});
}

void check(nvfp4_status status) {
  if (status != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
}

// Those that take this problem.
std::vector<std::string> variants_of(nvfp4_gemm_desc desc, int capability) {
  std::vector<std::string> names;
  for (const std::string& name : variant_names(capability)) {
    uint64_t bytes;
    desc.variant = name.c_str();
    if (nvfp4_gemm_workspace_bytes(&desc, capability, &bytes) == NVFP4_SUCCESS) {
      names.push_back(name);
    }
  }
  if (names.empty()) throw std::runtime_error(nvfp4_last_error());
  return names;
}

// ---- memory -------------------------------------------------------------------------------------

// The arena as it is before a run: arrays between guards, each as much off the 256 bytes at which
// allocations begin as the problem says.
class Image {
 public:
  std::vector<uint8_t> bytes;

  explicit Image(CUdeviceptr base) : base_(base) {}

  size_t reserve(size_t size, size_t alignment, size_t shift) {
    const size_t at = (bytes.size() + kGuard + 255) / 256 * 256 + shift * alignment;
    bytes.resize(at + size, 0xFF);
    return at;
  }
  const void* add(const std::vector<uint8_t>& content, size_t alignment, size_t shift) {
    if (content.empty()) return nullptr;
    const size_t at = reserve(content.size(), alignment, shift);
    std::copy(content.begin(), content.end(), bytes.begin() + long(at));
    return address(at);
  }
  void* address(size_t at) const { return reinterpret_cast<void*>(base_ + at); }

 private:
  CUdeviceptr base_;
};

template <typename T>
std::vector<uint8_t> bytes_of(const T* first, size_t count) {
  std::vector<uint8_t> bytes(count * sizeof(T));
  if (count > 0) std::memcpy(bytes.data(), first, bytes.size());
  return bytes;
}

// Places everything, with the addresses in `g`; returns where D is.
size_t place(const RandomGemm& r, const GeneralProblem& p, Image& image, nvfp4_gemm_desc& g) {
  uint32_t turn = 0;
  const auto shift = [&] { return size_t(r.shift == 0 ? 0 : (r.shift + 5 * turn++) % 16); };
  const auto array = [&](const std::vector<uint8_t>& content) {
    return image.add(content, 16, shift());
  };
  const auto floats = [&](const float* first, size_t count) {
    return static_cast<const float*>(
        image.add(bytes_of(first, count), 4, size_t(r.bias_shift % 4)));
  };
  const Problem& o = p.operands;
  const EpilogueFields& f = p.fields;
  if (g.k > 0) {
    g.a = array(o.a.quantized() ? o.a.codes : bytes_of(o.a.halves.data(), o.a.halves.size()));
    g.b = array(o.b.codes);
    if (o.a.quantized()) g.a_scales = array(o.a.device_scales(0xFF, o.scales_gap_bytes));
    g.b_scales = array(o.b.device_scales(0xFF, o.scales_gap_bytes));
  }
  if (!f.c_is_d) g.c = array(p.c);
  const size_t element = size_t(std::max<int64_t>(bytes_of_type(f.bias_type), 1));
  g.bias = image.add(p.bias, element, size_t(r.bias_shift % 8));
  if (f.a_tensor_scale) g.a_tensor_scale = floats(p.a_scales.data(), p.a_scales.size());
  if (f.b_tensor_scale) g.b_tensor_scale = floats(p.b_scales.data(), p.b_scales.size());
  if (f.scalar_mode == NVFP4_SCALARS_DEVICE) {
    g.alpha_device = floats(&f.alpha, 1);
    if (!p.c.empty()) g.beta_device = floats(&f.beta, 1);
  }
  const float* const d_tensor_scale = f.d_tensor_scale ? floats(&p.d_scale, 1) : nullptr;
  const std::vector<uint8_t> d = p.d_before();
  const size_t at = image.reserve(d.size(), 16, shift());
  std::copy(d.begin(), d.end(), image.bytes.begin() + long(at));
  g.d = image.address(at);
  if (scale_block_of_d(f.d_type) != 0) {
    g.d_scales = image.address(at + p.d_scales_at());
    g.d_tensor_scale = d_tensor_scale;
  }
  float* const maxima = static_cast<float*>(image.address(at + p.d_amax_at()));
  if (f.d_amax) g.d_amax = maxima;
  if (f.d_row_amax) g.d_row_amax = maxima + 1;
  if (f.c_is_d) g.c = g.d;
  return at;
}

// ---- run ----------------------------------------------------------------------------------------

nvfp4_gemm_addresses addresses_of(const nvfp4_gemm_desc& g) {
  nvfp4_gemm_addresses x{};
  x.struct_size = sizeof x;
  x.a = g.a, x.a_scales = g.a_scales, x.a_tensor_scale = g.a_tensor_scale;
  x.b = g.b, x.b_scales = g.b_scales, x.b_tensor_scale = g.b_tensor_scale;
  x.c = g.c, x.d = g.d, x.bias = g.bias;
  x.d_scales = g.d_scales, x.d_tensor_scale = g.d_tensor_scale;
  x.d_amax = g.d_amax, x.d_row_amax = g.d_row_amax;
  x.alpha_device = g.alpha_device, x.beta_device = g.beta_device;
  x.workspace = g.workspace, x.workspace_bytes = g.workspace_bytes;
  return x;
}

template <typename T>
void move(const T*& address) {
  if (address == nullptr) return;
  address = reinterpret_cast<const T*>(reinterpret_cast<uintptr_t>(address) + kElsewhere);
}

// By a plan that was made for other addresses, each of which it must forget.
void run_plan(const nvfp4_gemm_desc& g) {
  nvfp4_gemm_desc other = g;
  for (const void** address :
       {&other.a, &other.b, &other.a_scales, &other.b_scales, &other.c, &other.bias,
        const_cast<const void**>(&other.d), const_cast<const void**>(&other.d_scales),
        const_cast<const void**>(&other.workspace)})
    move(*address);
  for (float** address : {&other.d_amax, &other.d_row_amax})
    move(*const_cast<const float**>(address));
  move(other.a_tensor_scale), move(other.b_tensor_scale), move(other.d_tensor_scale);
  move(other.alpha_device), move(other.beta_device);
  nvfp4_gemm_plan* plan = nullptr;
  check(nvfp4_gemm_plan_create(&other, &plan));
  const nvfp4_gemm_addresses x = addresses_of(g);
  const nvfp4_status status = nvfp4_gemm_plan_run(plan, &x, nullptr);
  nvfp4_gemm_plan_destroy(plan);
  check(status);
}

std::string outside_bound(const GeneralProblem& p, const std::vector<uint8_t>& d, int capability) {
  const nvfp4_gemm_desc g = p.desc(NVFP4_SCALE_LAYOUT_LINEAR);
  std::string complaint;
  std::mutex mutex;
  for_each_sum(p.operands, [&](int64_t batch, int64_t row, int64_t column, const Sum& sum) {
    float got;
    const int64_t i = p.index(batch, row, column, g.d_ld, g.d_batch_stride);
    std::memcpy(&got, &d[size_t(i) * sizeof got], sizeof got);
    const double bound = accumulation_bound(sum, g.k, capability);
    if (std::fabs(double(got) - sum.exact) <= bound) return;
    const std::lock_guard lock(mutex);
    if (!complaint.empty()) return;
    complaint = "batch " + std::to_string(batch) + ", row " + std::to_string(row) + ", column " +
                std::to_string(column) + ": got " + std::to_string(got) + ", the sum is " +
                std::to_string(sum.exact) + ", the bound " + std::to_string(bound);
  });
  return complaint;
}

// Bytes of gaps in D, once all elements are as they were before the run.
bool gaps_are_untouched(const GeneralProblem& p, std::vector<uint8_t> d) {
  const nvfp4_gemm_desc g = p.desc(NVFP4_SCALE_LAYOUT_LINEAR);
  const size_t size = size_t(bytes_of_type(p.fields.d_type));
  const Shape& s = p.operands.shape;
  const std::vector<uint8_t> before = p.d_before();
  for (int64_t batch = 0; batch < s.l; ++batch)
    for (int64_t row = 0; row < s.m; ++row)
      for (int64_t column = 0; column < s.n; ++column) {
        const size_t at = size_t(p.index(batch, row, column, g.d_ld, g.d_batch_stride)) * size;
        std::memcpy(&d[at], &before[at], size);
      }
  return d == before;
}

std::string judge(const GeneralProblem& p, const std::vector<uint8_t>& d, int capability) {
  if (p.operands.shape.k == 0 || sums_are_exact(p.operands))
    return first_difference(p, d, p.reference());
  const std::string complaint = outside_bound(p, d, capability);
  if (!complaint.empty()) return complaint;
  return gaps_are_untouched(p, d) ? "" : "a gap between the lines or batches of D was written";
}

}  // namespace

std::string to_line(const RandomGemm& problem) {
  std::string line;
  for (const Field& field : kFields) {
    if (problem.*field.value == field.simplest) continue;
    line += (line.empty() ? "" : ",") + std::string(field.name) + "=" +
            std::to_string(problem.*field.value);
  }
  return line;
}

RandomGemm from_line(const std::string& line) {
  RandomGemm problem;
  std::istringstream parts(line);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    const auto field = std::find_if(std::begin(kFields), std::end(kFields), [&](const Field& f) {
      return equals != std::string::npos && part.compare(0, equals, f.name) == 0;
    });
    if (field == std::end(kFields)) throw std::invalid_argument("no field in \"" + part + "\"");
    problem.*field->value = std::stoll(part.substr(equals + 1));
  }
  return problem;
}

namespace {

// Where both are taken, fewer problems have 16-bit tokens. Nothing else depends on the capability.
int64_t draw_a_type(Random& random, uint64_t number, int capability) {
  if (capability == 90) {
    return random.below(4) == 0 ? NVFP4_TYPE_F16 + random.below(2) : int64_t{NVFP4_TYPE_NONE};
  }
  if (capability / 10 == 10 && number % 8 != 7) return NVFP4_TYPE_NONE;
  return NVFP4_TYPE_F16 + int64_t((number + number / 8) % 2);
}

}  // namespace

// Where a kernel takes others than NVFP4.
int64_t draw_format(const RandomGemm& g, uint64_t number, int capability) {
  const bool taken = g.a_type == NVFP4_TYPE_NONE ? capability == 90 || capability / 10 == 10
                                                 : capability == 90 && g.a_type == NVFP4_TYPE_BF16;
  const auto& drawn = kScaledFormats[number / 2 % std::size(kScaledFormats)];
  return taken ? drawn.format : int64_t{NVFP4_OPERAND_FORMAT_NVFP4};
}

RandomGemm draw_gemm(uint64_t seed, uint64_t number, int capability) {
  Random random(seed * 0x9E3779B97F4A7C15u + number);
  const auto one_in = [&](uint32_t count) { return random.below(count) == 0; };
  RandomGemm g;
  g.m = draw_size(random, 300), g.n = draw_size(random, 300), g.k16 = draw_k16(random);
  if (one_in(4)) g.l = 2 + random.below(2);
  limit_work(g);
  g.a_type = draw_a_type(random, number, capability);
  g.format = draw_format(g, number, capability);
  g.off_grid = g.k16 > 0 && one_in(5);
  g.a_linear = one_in(3), g.b_linear = one_in(3);
  if (one_in(2)) g.a_ld = random.below(4), g.b_ld = random.below(4);
  if (g.l > 1) g.a_batch = random.below(4), g.b_batch = random.below(4);
  if (g.l > 1) g.scales_batch = random.below(4);
  g.pdl = random.below(3), g.batch_invariant = one_in(6), g.plan = one_in(4);
  if (one_in(2)) g.variant = 1 + random.below(64);
  draw_epilogue(g, random);
  if (one_in(2)) g.shift = 1 + random.below(15);
  if (one_in(2)) g.bias_shift = 1 + random.below(7);
  g.data = int64_t(random.below(1u << 30));
  return g;
}

GemmArena::GemmArena(const Driver& driver)
    : driver_(driver), capability_(devices(driver).at(0).compute_capability()) {
  driver.check(driver.cuMemAlloc(&base_, kArenaBytes), "cuMemAlloc");
}

GemmArena::~GemmArena() { driver_.cuMemFree(base_); }

std::string GemmArena::complaint(const RandomGemm& r) try {
  Problem operands = operands_of(r);
  GeneralProblem p(operands, fields_of(r), uint64_t(r.data) + 1);
  nvfp4_gemm_desc g = p.desc(NVFP4_SCALE_LAYOUT_UNSET);
  Image image(base_);
  const size_t d_at = place(r, p, image, g), d_bytes = p.d_before().size();
  std::string variant;
  if (r.variant != 0 && r.k16 != 0) {
    g.workspace = image.address(kArenaBytes), g.workspace_bytes = uint64_t{1} << 40;
    uint64_t planned = 0;  // refused by the planner: there are no variants to ask for
    check(nvfp4_gemm_workspace_bytes(&g, capability_, &planned));
    const std::vector<std::string> names = variants_of(g, capability_);
    variant = names.at(size_t(r.variant) % names.size());
    g.variant = variant.c_str();
  }
  uint64_t workspace = 0;
  check(nvfp4_gemm_workspace_bytes(&g, capability_, &workspace));
  const size_t end = image.reserve(0, 1, 0);
  const size_t workspace_at = image.reserve(workspace, 16, size_t(r.shift % 16));
  image.reserve(0, 1, 0);
  if (image.bytes.size() > kArenaBytes) throw std::logic_error("the arena is too small");
  g.workspace = workspace == 0 ? nullptr : image.address(workspace_at);
  g.workspace_bytes = workspace;

  driver_.check(driver_.cuMemcpyHtoD(base_, image.bytes.data(), image.bytes.size()),
                "cuMemcpyHtoD");
  if (r.plan != 0) {
    run_plan(g);
  } else {
    check(nvfp4_gemm_run(&g, nullptr));
  }
  std::vector<uint8_t> after(image.bytes.size());
  driver_.check(driver_.cuMemcpyDtoH(after.data(), base_, after.size()), "cuMemcpyDtoH");

  const std::vector<uint8_t> d(after.begin() + long(d_at), after.begin() + long(d_at + d_bytes));
  const auto restore = [&](size_t at, size_t bytes) {
    std::copy_n(image.bytes.begin() + long(at), bytes, after.begin() + long(at));
  };
  restore(d_at, d_bytes), restore(workspace_at, workspace);
  const std::string wrong = judge(p, d, capability_);
  if (!wrong.empty()) return wrong + (variant.empty() ? "" : ", by " + variant);
  if (after == image.bytes) return "";
  const size_t first =
      size_t(std::mismatch(after.begin(), after.end(), image.bytes.begin()).first - after.begin());
  return "byte " + std::to_string(first) + " was written, D has " + std::to_string(d_bytes) +
         " at " + std::to_string(d_at) + (first >= end ? ", after all arrays" : "");
} catch (const DriverError&) {
  throw;  // the context is gone
} catch (const std::runtime_error& refusal) {
  return refusal.what();
}

RandomGemm shrink(GemmArena& arena, RandomGemm failing, int runs) {
  for (bool simpler = true; simpler && runs > 0;) {
    simpler = false;
    for (const Field& field : kFields) {
      // The simplest value, then half the way to it, then one step.
      const int64_t value = failing.*field.value, away = value - field.simplest;
      for (const int64_t next : {field.simplest, field.simplest + away / 2, value - (away > 0)}) {
        if (failing.*field.value != value || next == value || runs-- <= 0) continue;
        RandomGemm candidate = failing;
        candidate.*field.value = next;
        if (!arena.complaint(candidate).empty()) failing = candidate, simpler = true;
      }
    }
  }
  return failing;
}

}  // namespace support
