// SPDX-License-Identifier: MIT
// Random straight-line programs: 8 registers of 32 bits, 4 of 64, 4 predicates and a shared line of
// 32 words, for one warp. A program is a function of its number, and so are the values it begins
// with.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <stdexcept>
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

// Runs random programs on a driver library, in this process or in another.
class RandomDriver {
 public:
  // By the path or the name of its library; throws std::runtime_error.
  explicit RandomDriver(const std::string& library);
  RandomDriver(const RandomDriver&) = delete;
  RandomDriver& operator=(const RandomDriver&) = delete;

  const std::string& device() const { return device_; }
  bool emulated() const { return device_.find("(emulated)") != std::string::npos; }

  // The results of each program, one after the other; nothing where ptxas fails. Throws with what
  // the driver says. At level 0 ptxas joins no steps; the emulator has no levels.
  std::vector<uint32_t> run(const std::vector<RandomProgram>& programs, int level = 3) const;

 private:
  template <class F>
  F entry(const char* name) const;
  void* library_ = nullptr;
  CUcontext context_ = nullptr;
  std::string device_;
};

// A driver library in a process of its own: a GPU's driver and the emulator do not share one.
class RandomProcess {
 public:
  explicit RandomProcess(const std::string& library);  // before this process loads a driver
  ~RandomProcess();
  RandomProcess(const RandomProcess&) = delete;
  RandomProcess& operator=(const RandomProcess&) = delete;
  std::vector<uint32_t> run(const std::vector<RandomProgram>& programs) const;

 private:
  [[noreturn]] static void serve(const std::string& library, int requests, int answers);
  int requests_ = -1, answers_ = -1;
  int child_ = 0;
};

}  // namespace h200
