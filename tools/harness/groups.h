// SPDX-License-Identifier: MIT
// A grouped product on the host: a problem of all rows, whose b and b2 have a matrix for each
// group, and how its rows are divided.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/harness/problem.h"

namespace support {

struct Groups {
  std::vector<int32_t>
      rows;  // ends, or with a capacity counts; not trusted, as the device reads it
  int64_t capacity = 0;
  bool b_shared = false;       // all groups use one B
  bool scales_turned = false;  // tiles of A's scales lie from the last group to the first
  bool with_alpha = false;     // each group has its own factors
  bool with_bias = false;      // and its own biases

  int64_t count() const { return int64_t(rows.size()); }
};

// A group's rows of A, C and D, clamped to those that exist.
struct GroupRows {
  int64_t begin, end;
};
std::vector<GroupRows> rows_of(const Groups& groups, int64_t m);

struct GroupedProblem : Problem {
  Groups groups;
  std::vector<float> group_alpha, group_alpha2, group_d_tensor_scale;
  int64_t bias_group_stride = 0;

  // D's memory as nvfp4_grouped_reference leaves it.
  std::vector<uint8_t> grouped_reference() const;
};

// `p` has all rows, one batch, and its fields (with_fields). `b` has as many batches as there are
// groups, or one if they share it.
GroupedProblem with_groups(Problem p, Operand b, const Groups& groups, uint64_t seed);

// The descriptors without addresses.
nvfp4_gemm_desc make_desc(const GroupedProblem& problem);
nvfp4_grouped_desc make_grouped_desc(const GroupedProblem& problem, const nvfp4_gemm_desc* gemm);

// What lies at the addresses of both descriptors.
std::vector<Input> inputs(const GroupedProblem& problem, uint8_t poison);
struct GroupInput {
  const nvfp4::Field* field;
  std::vector<uint8_t> bytes;
};
std::vector<GroupInput> group_inputs(const GroupedProblem& problem);

}  // namespace support
