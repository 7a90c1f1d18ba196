// SPDX-License-Identifier: MIT
#include "tools/harness/groups.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace support {

std::vector<GroupRows> rows_of(const Groups& groups, int64_t m) {
  std::vector<GroupRows> all;
  int64_t before = 0;
  for (int64_t group = 0; group < groups.count(); ++group) {
    const int64_t given = groups.rows[size_t(group)];
    if (groups.capacity > 0) {
      const int64_t begin = group * groups.capacity;
      all.push_back({begin, begin + std::clamp<int64_t>(given, 0, groups.capacity)});
    } else {
      all.push_back({before, std::clamp(given, before, m)});
      before = all.back().end;
    }
  }
  return all;
}

namespace {

// The first row of each group's tiles of scales.
std::vector<int32_t> scale_rows_of(const GroupedProblem& p) {
  const std::vector<GroupRows> rows = rows_of(p.groups, p.m);
  std::vector<int32_t> first(rows.size());
  int64_t at = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t group = p.groups.scales_turned ? rows.size() - 1 - i : i;
    first[group] = int32_t(at);
    at += (rows[group].end - rows[group].begin + 127) / 128 * 128;
  }
  return first;
}

// Scales of some rows of A in 128x4 tiles, the first of which begins with the first row.
std::vector<uint8_t> tiles_of(const Operand& a, const GroupRows& rows, uint8_t poison) {
  Operand some = a;
  some.rows = rows.end - rows.begin, some.l = 1;
  some.scales.assign(size_t(some.scales_stride()), 0);
  for (int64_t row = rows.begin; row < rows.end; ++row)
    for (int64_t block = 0; block < a.k / a.block(); ++block)
      some.set_scale(0, row - rows.begin, block, a.scale(0, row, block));
  return some.interleaved_scales(poison);
}

// As many bytes of scales in tiles as any division of the rows can need.
size_t most_scale_bytes(const GroupedProblem& p, int64_t k, int32_t format) {
  constexpr int32_t kTiles = NVFP4_SCALE_LAYOUT_128X4;
  const int64_t room = std::max<int64_t>(p.groups.capacity, 1);
  return std::max(nvfp4_grouped_scale_bytes(p.m, p.groups.count(), k, kTiles, format),
                  size_t(p.groups.count()) * nvfp4_scale_bytes_for(room, k, kTiles, format));
}

std::vector<uint8_t> grouped_tiles(const GroupedProblem& p, uint8_t poison) {
  const Operand& a = p.a;
  const std::vector<GroupRows> rows = rows_of(p.groups, p.m);
  const std::vector<int32_t> first = scale_rows_of(p);
  const size_t of_row = size_t((a.k / a.block() + 3) / 4 * 4);
  std::vector<uint8_t> all(most_scale_bytes(p, a.k, a.format), poison);
  for (size_t group = 0; group < rows.size(); ++group) {
    if (rows[group].end == rows[group].begin) continue;
    const std::vector<uint8_t> tiles = tiles_of(a, rows[group], poison);
    std::copy(tiles.begin(), tiles.end(), all.begin() + long(size_t(first[group]) * of_row));
  }
  return all;
}

bool has_tiles(const Operand& a) { return a.quantized() && a.layout == NVFP4_SCALE_LAYOUT_128X4; }

bool has_tiles_of_d(const GroupedProblem& p) {
  return scale_block_of_d(p.d_type) != 0 && p.d_scale_layout == NVFP4_SCALE_LAYOUT_128X4;
}

// D's tiles begin where A's do.
bool has_scale_rows(const GroupedProblem& p) {
  return p.groups.scales_turned && (p.a.quantized() ? has_tiles(p.a) : has_tiles_of_d(p));
}

// Repeats a bias for each group, with its values moved on by one, and poison between the groups.
void repeat(std::vector<uint8_t>& bias, const GroupedProblem& p) {
  const size_t size = size_t(bytes_of_type(p.bias_type)), n = size_t(p.n) * size;
  const std::vector<uint8_t> one(bias.begin(), bias.begin() + long(n));
  const size_t stride = size_t(p.bias_group_stride) * size;
  bias.assign(size_t(p.groups.count() - 1) * stride + n, 0xFF);
  for (size_t group = 0; group < size_t(p.groups.count()); ++group) {
    const auto at = bias.begin() + long(group * stride);
    std::rotate_copy(one.begin(), one.begin() + long(group * size % n), one.end(), at);
  }
}

}  // namespace

GroupedProblem with_groups(Problem from, Operand b, const Groups& groups, uint64_t seed) {
  GroupedProblem p;
  static_cast<Problem&>(p) = std::move(from);
  p.groups = groups;
  b.layout = p.b.layout;
  p.b = std::move(b);
  if (p.gated()) p.b2 = with_rows_reversed(p.b);
  Random random(seed + 3);
  const auto draw = [&](std::vector<float>& factors) {
    factors.resize(size_t(groups.count()));
    for (float& one : factors) one = p.alpha * (float(random.below(400)) - 200) / 100;
  };
  if (groups.with_alpha && !p.by_pointer()) {
    draw(p.group_alpha);
    if (p.gated()) draw(p.group_alpha2);
  }
  if (groups.with_alpha && p.d_type == NVFP4_TYPE_NVFP4) {
    for (int64_t group = 0; group < groups.count(); ++group)
      p.group_d_tensor_scale.push_back(float(1 + group % 5) / 32);
  }
  if (has_tiles_of_d(p)) {
    p.d_scales_bytes = int64_t(most_scale_bytes(p, p.n, format_of_d(p.d_type)));
  }
  const bool of_columns = p.bias_type != NVFP4_TYPE_NONE && p.bias_axis == NVFP4_BIAS_AXIS_COLUMN;
  if (groups.with_bias && of_columns) {
    p.bias_group_stride = p.n + 3;
    repeat(p.bias, p);
    if (p.gated()) repeat(p.bias2, p);
  }
  return p;
}

nvfp4_gemm_desc make_desc(const GroupedProblem& p) {
  nvfp4_gemm_desc g = make_desc(p, NVFP4_SCALE_LAYOUT_UNSET);
  g.l = p.groups.count();
  if (p.groups.b_shared) g.b_batch_stride = g.b_scales_batch_stride_bytes = 0;
  return g;
}

nvfp4_grouped_desc make_grouped_desc(const GroupedProblem& p, const nvfp4_gemm_desc* gemm) {
  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
  grouped.gemm = gemm;
  grouped.rows_kind = p.groups.capacity > 0 ? NVFP4_ROWS_COUNTS : NVFP4_ROWS_ENDS;
  grouped.capacity = p.groups.capacity;
  grouped.b_shared = p.groups.b_shared;
  grouped.bias_group_stride = p.bias_group_stride;
  return grouped;
}

std::vector<Input> inputs(const GroupedProblem& p, uint8_t poison) {
  std::vector<Input> all = inputs(static_cast<const Problem&>(p), NVFP4_SCALE_LAYOUT_UNSET, poison);
  if (p.groups.count() == 0 || !has_tiles(p.a)) return all;
  for (Input& input : all) {
    if (std::strcmp(input.field->name, "a_scales") == 0) input.bytes = grouped_tiles(p, poison);
  }
  return all;
}

std::vector<GroupInput> group_inputs(const GroupedProblem& p) {
  std::vector<GroupInput> all;
  const auto add = [&](const char* name, const auto& values) {
    if (values.empty()) return;
    for (const nvfp4::Field& field : nvfp4::fields::grouped_desc)
      if (std::strcmp(field.name, name) == 0)
        all.push_back({&field, bytes_of(values.data(), values.size())});
  };
  add("rows", p.groups.rows);
  add("group_alpha", p.group_alpha);
  add("group_alpha2", p.group_alpha2);
  add("group_d_tensor_scale", p.group_d_tensor_scale);
  if (has_scale_rows(p)) add("scale_rows", scale_rows_of(p));
  return all;
}

std::vector<uint8_t> GroupedProblem::grouped_reference() const {
  std::vector<uint8_t> memory = d_before();
  nvfp4_gemm_desc g = make_desc(*this);
  g.variant = nullptr;
  const std::vector<Input> of_gemm = inputs(*this, 0xFF);
  for (const Input& input : of_gemm)
    nvfp4::fields::set<const void*>(&g, *input.field, input.bytes.data());
  set_results(*this, memory.data(), g);
  nvfp4_grouped_desc grouped = make_grouped_desc(*this, &g);
  const std::vector<GroupInput> of_groups = group_inputs(*this);
  for (const GroupInput& input : of_groups)
    nvfp4::fields::set<const void*>(&grouped, *input.field, input.bytes.data());
  if (nvfp4_grouped_reference(&grouped) != NVFP4_SUCCESS) {
    throw std::runtime_error(nvfp4_last_error());
  }
  return memory;
}

}  // namespace support
