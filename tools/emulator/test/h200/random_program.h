// SPDX-License-Identifier: MIT
// Random straight-line programs: 8 registers of 32 bits, 4 of 64, 4 predicates and a shared line of
// 32 words, for one warp. A program is a function of its number, and so are the values it begins
// with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace h200 {

struct RandomProgram {
  uint64_t number = 0;
  std::vector<std::string> steps;
};
// From kSingles on programs have one step each, every row of random.def in turn.
constexpr uint64_t kSingles = uint64_t(1) << 32;
RandomProgram random_program(uint64_t number);

// 8 + 2 * 4 + 1 words for each lane, and 32 of the line.
constexpr uint32_t kRandomWords = 17, kRandomResults = 32 * kRandomWords + 32;
// What the registers of a program begin with, for each lane.
std::vector<uint32_t> random_values(uint64_t number);

// One entry for each program: (values, results, 0), of all programs of the
// module.
std::string entry_name(size_t program);
std::string random_module(const std::vector<RandomProgram>& programs);

uint64_t hash_of(const uint32_t* words);  // of kRandomResults

}  // namespace h200
