// SPDX-License-Identifier: MIT
#include "tools/harness/random_gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "tools/harness/device_gemm.h"
#include "tools/harness/exact.h"
#include "tools/harness/groups.h"
#include "tools/harness/plan_info.h"

namespace support {

namespace {

constexpr size_t kArenaBytes = size_t{24} << 20;
constexpr size_t kGuard = 512;             // 0xFF between arrays
constexpr uint64_t kElsewhere = 1u << 20;  // how far a plan's own addresses are from those of a run

// What a problem is made of, as whole numbers: a row of random_gemm.def or of fields.def.
struct Part {
  const char* name;
  int64_t simplest;
  int64_t RandomGemm::*value;  // nullptr: of the field
  const GemmField* field;

  int64_t get(const RandomGemm& g) const {
    return value != nullptr ? g.*value : step_of(g.fields, *field);
  }
  void set(RandomGemm& g, int64_t to) const {
    if (value != nullptr) {
      g.*value = to;
    } else {
      set_step(g.fields, *field, to);
    }
  }
};

const std::vector<Part>& parts() {
  static const std::vector<Part> all = [] {
    std::vector<Part> made = {
#define PART(name, simplest) {#name, simplest, &RandomGemm::name, nullptr},
#include "tools/harness/random_gemm.def"
    };
    for (const GemmField* field : fields_in_steps())
      made.push_back({field->name, simplest_step(*field), nullptr, field});
    return made;
  }();
  return all;
}

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

void draw_fields(RandomGemm& g, Random& random) {
  if (random.below(3) == 0) return;  // what has a way of its own
  g.fields = random_fields({g.m, g.n, g.k16 * 16, g.l}, random);
  g.c_ld = g.fields.c_ld_gap, g.d_ld = g.fields.d_ld_gap, g.c_is_d = g.fields.c_is_d;
  g.c_batch = g.fields.c_batch_gap, g.d_batch = g.fields.d_batch_gap;
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

Problem operands_of(const RandomGemm& g) {
  const Shape shape{g.m, g.n, g.k16 * 16, g.l};
  Gaps gaps;
  gaps.a_ld = 32 * g.a_ld, gaps.b_ld = 32 * g.b_ld;
  gaps.a_batch = 32 * g.a_batch, gaps.b_batch = 32 * g.b_batch;
  gaps.scales_batch_bytes = 16 * g.scales_batch;
  const Data data = g.off_grid != 0 ? Data::random : Data::exact;
  const bool halves = g.fields.a_type != NVFP4_TYPE_NONE;
  const auto seed = uint64_t(g.data);
  Problem p = g.k16 == 0 && !halves ? make_problem(shape) : make_problem(shape, data, seed, gaps);
  const bool is_odd = g.fields.operand_format == NVFP4_OPERAND_FORMAT_MXFP4 && g.k16 % 2 != 0;
  const int32_t format = is_odd ? NVFP4_OPERAND_FORMAT_E2M1_UE8M0 : g.fields.operand_format;
  if (format != NVFP4_OPERAND_FORMAT_NVFP4) p = with_format(std::move(p), format, data, seed);
  if (halves) p = with_a16(std::move(p), g.fields.a_type, data, seed);
  p.a.layout = g.fields.a_scale_layout, p.b.layout = g.fields.b_scale_layout;
  return p;
}

Fields fields_of(const RandomGemm& g) {
  Fields f = g.fields;
  if (g.off_grid != 0) {
    f = {};
    f.d_type = NVFP4_TYPE_F32, f.cd_order = g.fields.cd_order;
    f.pdl = g.fields.pdl, f.batch_invariant = g.fields.batch_invariant;
  }
  f.c_is_d = g.off_grid == 0 && g.c_is_d != 0;
  f.c_ld_gap = g.c_ld, f.c_batch_gap = g.c_batch, f.d_ld_gap = g.d_ld, f.d_batch_gap = g.d_batch;
  return possible(f, {g.m, g.n, g.k16 * 16, g.l});
}

// Rows of groups that nothing outside may be written for.
int32_t bad_row(Random& random) {
  constexpr int32_t kBad[] = {-1, INT32_MIN, INT32_MAX, 1 << 30, 0};
  return kBad[random.below(std::size(kBad))];
}

Groups groups_of(const RandomGemm& g) {
  Random random(uint64_t(g.data) + 11);
  Groups groups;
  const int64_t room = g.m / g.groups;
  if (g.counts != 0 && room > 0) groups.capacity = room;
  for (int64_t i = 0; i < g.groups; ++i) {
    const int64_t most = groups.capacity > 0 ? room : g.m;
    groups.rows.push_back(int32_t(random.below(uint32_t(most + 1))));
  }
  if (groups.capacity == 0) std::sort(groups.rows.begin(), groups.rows.end());
  for (int32_t& rows : groups.rows)
    if (g.bad_rows != 0 && random.below(3) == 0) rows = bad_row(random);
  groups.b_shared = g.b_shared != 0;
  groups.scales_turned = g.turned != 0;
  groups.with_alpha = g.group_alpha != 0, groups.with_bias = g.group_bias != 0;
  return groups;
}

// Weights of each group, or one that all share.
Operand weights_of(const RandomGemm& g) {
  RandomGemm weights = g;
  weights.m = 1, weights.l = g.b_shared != 0 ? 1 : g.groups;
  return operands_of(weights).b;
}

GroupedProblem problem_of(const RandomGemm& g) {
  Problem p = with_fields(operands_of(g), fields_of(g), uint64_t(g.data) + 1);
  int32_t& packing = g.packed == NVFP4_PACKING_SM90_TOKENS_1 ? p.a_packing : p.b_packing;
  packing = int32_t(g.packed);
  GroupedProblem single;
  static_cast<Problem&>(single) = std::move(p);
  if (g.groups == 0) return single;
  return with_groups(std::move(single), weights_of(g), groups_of(g), uint64_t(g.data) + 1);
}

// The descriptors of a problem; that of groups belongs to none if it is a single product.
struct Descs {
  nvfp4_gemm_desc gemm;
  nvfp4_grouped_desc grouped;
  bool has_groups;

  explicit Descs(const GroupedProblem& p)
      : gemm(p.groups.count() > 0
                 ? make_desc(p)
                 : make_desc(static_cast<const Problem&>(p), NVFP4_SCALE_LAYOUT_UNSET)),
        grouped(make_grouped_desc(p, &gemm)),
        has_groups(p.groups.count() > 0) {}
  Descs(const Descs&) = delete;

  nvfp4_status workspace_bytes(int capability, uint64_t* bytes) const {
    return has_groups ? nvfp4_grouped_workspace_bytes(&grouped, capability, bytes)
                      : nvfp4_gemm_workspace_bytes(&gemm, capability, bytes);
  }
  nvfp4_status run() const {
    return has_groups ? nvfp4_grouped_run(&grouped, nullptr) : nvfp4_gemm_run(&gemm, nullptr);
  }
};

// Those that take this problem.
std::vector<std::string> variants_of(Descs& descs, int capability) {
  std::vector<std::string> names;
  for (const std::string& name : variant_names(capability)) {
    uint64_t bytes;
    descs.gemm.variant = name.c_str();
    if (descs.workspace_bytes(capability, &bytes) == NVFP4_SUCCESS) names.push_back(name);
  }
  descs.gemm.variant = nullptr;
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

// Places everything, with the addresses in `descs`; returns where D is.
size_t place(const RandomGemm& r, const GroupedProblem& p, Image& image, Descs& descs) {
  nvfp4_gemm_desc& g = descs.gemm;
  uint32_t turn = 0;
  const auto shift = [&] { return size_t(r.shift == 0 ? 0 : (r.shift + 5 * turn++) % 16); };
  for (const Input& input : inputs(p, 0xFF)) {
    const nvfp4::Kind kind = input.field->kind;
    const bool is_matrix = kind == nvfp4::Kind::input;
    const size_t alignment = is_matrix                     ? 16
                             : kind == nvfp4::Kind::vector ? size_t(bytes_of_type(p.bias_type))
                                                           : sizeof(float);
    const size_t by =
        is_matrix ? shift() : size_t(r.bias_shift % (kind == nvfp4::Kind::vector ? 8 : 4));
    nvfp4::fields::set(&g, *input.field, image.add(input.bytes, alignment, by));
  }
  for (const GroupInput& input : group_inputs(p)) {
    const void* const at = image.add(input.bytes, sizeof(float), size_t(r.bias_shift % 4));
    nvfp4::fields::set(&descs.grouped, *input.field, at);
  }
  const std::vector<uint8_t> d = p.d_before();
  const size_t at = image.reserve(d.size(), 16, shift());
  std::copy(d.begin(), d.end(), image.bytes.begin() + long(at));
  set_results(p, image.address(at), g);
  return at;
}

// ---- run ----------------------------------------------------------------------------------------

// Moves each address of a descriptor, b2 a little further than b.
template <typename Rows, typename Desc>
Desc elsewhere(const Rows& rows, const Desc& desc) {
  Desc other = desc;
  for (const auto& field : rows) {
    if (!is_address(field.kind)) continue;
    const auto at = reinterpret_cast<uintptr_t>(nvfp4::fields::address(&desc, field));
    const uint64_t further = std::strcmp(field.name, "b2") == 0 ? kGuard / 2 : 0;
    if (at != 0) nvfp4::fields::set(&other, field, at + kElsewhere + further);
  }
  return other;
}

// By a plan that was made for other addresses, each of which it must forget.
void run_plan(const Descs& descs) {
  const nvfp4_gemm_desc other = elsewhere(nvfp4::fields::gemm, descs.gemm);
  nvfp4_gemm_addresses x = addresses_of(descs.gemm);
  if (!descs.has_groups) {
    const Plan plan(other);
    return require(plan.run(x));
  }
  nvfp4_grouped_desc grouped = elsewhere(nvfp4::fields::grouped_desc, descs.grouped);
  grouped.gemm = &other;
  x.rows = descs.grouped.rows, x.scale_rows = descs.grouped.scale_rows;
  x.group_alpha = descs.grouped.group_alpha, x.group_alpha2 = descs.grouped.group_alpha2;
  x.group_d_tensor_scale = descs.grouped.group_d_tensor_scale;
  const Plan plan(grouped);
  require(plan.run(x));
}

std::string outside_bound(const Problem& p, const std::vector<uint8_t>& d, int capability) {
  std::string complaint;
  std::mutex mutex;
  for_each_sum(p, [&](int64_t batch, int64_t row, int64_t column, const Sum& sum) {
    float got;
    const int64_t i = p.index(batch, row, column, p.d_ld, p.d_batch_stride);
    std::memcpy(&got, &d[size_t(i) * sizeof got], sizeof got);
    const double bound = accumulation_bound(sum, p.k, capability);
    if (std::fabs(double(got) - sum.exact) <= bound) return;
    const std::lock_guard lock(mutex);
    if (!complaint.empty()) return;
    complaint = "batch " + std::to_string(batch) + ", row " + std::to_string(row) + ", column " +
                std::to_string(column) + ": got " + std::to_string(got) + ", the sum is " +
                std::to_string(sum.exact) + ", the bound " + std::to_string(bound);
  });
  return complaint;
}

std::string judge(const GroupedProblem& p, const std::vector<uint8_t>& d, int capability) {
  if (p.groups.count() > 0) return first_difference(p, d, p.grouped_reference());
  if (p.k == 0 || sums_are_exact(p)) return first_difference(p, d, p.reference());
  const std::string complaint = outside_bound(p, d, capability);
  if (!complaint.empty()) return complaint;
  return gaps_are_untouched(p, d) ? "" : "a gap between the lines or batches of D was written";
}

}  // namespace

std::string to_line(const RandomGemm& problem) {
  std::string line;
  for (const Part& part : parts()) {
    const int64_t value = part.get(problem);
    if (value == part.simplest) continue;
    line += (line.empty() ? "" : ",") + std::string(part.name) + "=" + std::to_string(value);
  }
  return line;
}

RandomGemm from_line(const std::string& line) {
  RandomGemm problem;
  std::istringstream words(line);
  for (std::string word; std::getline(words, word, ',');) {
    const size_t equals = std::min(word.find('='), word.size());
    const auto part = std::find_if(parts().begin(), parts().end(), [&](const Part& each) {
      return equals < word.size() && word.compare(0, equals, each.name) == 0;
    });
    if (part == parts().end()) throw std::invalid_argument("no field in \"" + word + "\"");
    part->set(problem, std::stoll(word.substr(equals + 1)));
  }
  return problem;
}

namespace {

// Where both are taken, fewer problems have 16-bit tokens. Nothing else depends on the capability.
int32_t draw_a_type(Random& random, uint64_t number, int capability) {
  if (capability == 90) {
    return random.below(4) == 0 ? NVFP4_TYPE_F16 + int32_t(random.below(2)) : NVFP4_TYPE_NONE;
  }
  if ((capability / 10 == 10 || capability / 10 == 12) && number % 8 != 7) return NVFP4_TYPE_NONE;
  return NVFP4_TYPE_F16 + int32_t((number + number / 8) % 2);
}

}  // namespace

// Where a kernel takes others than NVFP4.
int32_t draw_format(int32_t a_type, uint64_t number, int capability) {
  const bool taken = a_type == NVFP4_TYPE_NONE ? capability == 90 || capability / 10 == 10
                                               : capability == 90 && a_type == NVFP4_TYPE_BF16;
  const auto& drawn = kScaledFormats[number / 2 % std::size(kScaledFormats)];
  return taken ? drawn.format : NVFP4_OPERAND_FORMAT_NVFP4;
}

// Makes it a grouped product, if the device has kernels for its operands. On 12.x these take tokens
// in 16 bits; on 9.0 scales of tokens are linear. Sums are exact.
void draw_groups(RandomGemm& g, uint64_t number, int capability) {
  Random random(uint64_t(g.data) * 0x9E3779B97F4A7C15u + number);
  const auto one_in = [&](uint32_t count) { return random.below(count) == 0; };
  Fields& f = g.fields;
  const bool halves = capability / 10 == 8 || capability / 10 == 12;
  if (halves && f.a_type == NVFP4_TYPE_NONE) f.a_type = NVFP4_TYPE_BF16;
  if (f.a_type == NVFP4_TYPE_NONE && capability == 90) f.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  if (f.a_type != NVFP4_TYPE_NONE) f.operand_format = NVFP4_OPERAND_FORMAT_NVFP4;
  if (f.a_type == NVFP4_TYPE_BF16 && one_in(3)) f.operand_format = NVFP4_OPERAND_FORMAT_MXFP4;
  g.b_batch = random.below(4), g.scales_batch = random.below(4);
  g.l = 1, g.off_grid = 0, g.variant = 0;
  g.groups = 1 + random.below(one_in(3) ? 40 : 6);
  if (g.k16 > 0 && one_in(3)) {
    const Fields was = f;
    f = random_gated_fields({g.m, g.n, g.k16 * 16, 1}, random);
    f.a_type = was.a_type, f.operand_format = was.operand_format, f.pdl = was.pdl;
    f.a_scale_layout = was.a_scale_layout, f.b_scale_layout = was.b_scale_layout;
    // Gated products of 4-bit tokens have 128x4 scales of weights on 10.x.
    if (capability / 10 == 10 && f.a_type == NVFP4_TYPE_NONE)
      f.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    g.c_is_d = 0;
  }
  if (capability == 90 && scale_block_of_d(f.d_type) != 0)
    f.d_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  g.counts = one_in(2), g.bad_rows = one_in(4);
  g.group_alpha = one_in(2), g.group_bias = one_in(2);
  g.turned = one_in(2), g.b_shared = one_in(6);
}

RandomGemm draw_gemm(uint64_t seed, uint64_t number, int capability) {
  Random random(seed * 0x9E3779B97F4A7C15u + number);
  const auto one_in = [&](uint32_t count) { return random.below(count) == 0; };
  RandomGemm g;
  g.m = draw_size(random, 300), g.n = draw_size(random, 300), g.k16 = draw_k16(random);
  if (one_in(4)) g.l = 2 + random.below(2);
  limit_work(g);
  draw_fields(g, random);
  g.fields.a_type = draw_a_type(random, number, capability);
  g.fields.operand_format = draw_format(g.fields.a_type, number, capability);
  g.off_grid = g.k16 > 0 && one_in(5);
  if (one_in(3)) g.fields.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  if (one_in(3)) g.fields.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  if (one_in(2)) g.a_ld = random.below(4), g.b_ld = random.below(4);
  if (g.l > 1) g.a_batch = random.below(4), g.b_batch = random.below(4);
  if (g.l > 1) g.scales_batch = random.below(4);
  g.fields.pdl = int32_t(random.below(3)), g.fields.batch_invariant = one_in(6);
  g.plan = one_in(4);
  if (one_in(2)) g.variant = 1 + random.below(64);
  if (one_in(2)) g.shift = 1 + random.below(15);
  if (one_in(2)) g.bias_shift = 1 + random.below(7);
  g.data = int64_t(random.below(1u << 30));
  if (Random(~seed * 0x9E3779B97F4A7C15u + number).below(4) == 0)
    draw_groups(g, number, capability);
  const bool halves = g.fields.a_type != NVFP4_TYPE_NONE;
  const bool packs = number / 3 % 2 != 0;
  if (packs && capability == 90 && halves) g.packed = NVFP4_PACKING_SM90_1;
  if (packs && capability / 10 == 10 && !halves) g.packed = NVFP4_PACKING_SM100_1;
  if (packs && capability == 90 && !halves && g.groups == 0 &&
      g.fields.operand_format == NVFP4_OPERAND_FORMAT_NVFP4)
    g.packed = NVFP4_PACKING_SM90_TOKENS_1;
  return g;
}

GemmArena::GemmArena(const Driver& driver)
    : driver_(driver), capability_(devices(driver).at(0).compute_capability()) {
  driver.check(driver.cuMemAlloc(&base_, kArenaBytes), "cuMemAlloc");
}

GemmArena::~GemmArena() { driver_.cuMemFree(base_); }

std::string GemmArena::complaint(const RandomGemm& r) try {
  const GroupedProblem p = problem_of(r);
  Descs descs(p);
  nvfp4_gemm_desc& g = descs.gemm;
  Image image(base_);
  const size_t d_at = place(r, p, image, descs), d_bytes = p.d_before().size();
  std::string variant;
  if (r.variant != 0 && r.k16 != 0) {
    g.workspace = image.address(kArenaBytes), g.workspace_bytes = uint64_t{1} << 40;
    uint64_t planned = 0;  // refused by the planner: there are no variants to ask for
    require(descs.workspace_bytes(capability_, &planned));
    const std::vector<std::string> names = variants_of(descs, capability_);
    variant = names.at(size_t(r.variant) % names.size());
    g.variant = variant.c_str();
  }
  uint64_t workspace = 0;
  require(descs.workspace_bytes(capability_, &workspace));
  const size_t end = image.reserve(0, 1, 0);
  const size_t workspace_at = image.reserve(workspace, 16, size_t(r.shift % 16));
  image.reserve(0, 1, 0);
  if (image.bytes.size() > kArenaBytes) throw std::logic_error("the arena is too small");
  g.workspace = workspace == 0 ? nullptr : image.address(workspace_at);
  g.workspace_bytes = workspace;

  driver_.check(driver_.cuMemcpyHtoD(base_, image.bytes.data(), image.bytes.size()),
                "cuMemcpyHtoD");
  if (r.plan != 0) {
    run_plan(descs);
  } else {
    require(descs.run());
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
    for (const Part& part : parts()) {
      // The simplest value, then half the way to it, then one step.
      const int64_t value = part.get(failing), away = value - part.simplest;
      for (const int64_t next : {part.simplest, part.simplest + away / 2, value - (away > 0)}) {
        if (part.get(failing) != value || next == value || runs-- <= 0) continue;
        RandomGemm candidate = failing;
        part.set(candidate, next);
        if (!arena.complaint(candidate).empty()) failing = candidate, simpler = true;
      }
    }
  }
  return failing;
}

}  // namespace support
