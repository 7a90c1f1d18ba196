// SPDX-License-Identifier: MIT
// Runs random programs on a driver library, in this process or in another.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/emulator/test/h200/random_program.h"

namespace h200 {

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
