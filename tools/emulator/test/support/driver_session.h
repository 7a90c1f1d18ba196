// SPDX-License-Identifier: MIT
// A driver in a process of its own. Much of what a driver does happens once per process (start,
// device, sticky errors), so each test runs its calls in a forked child that opens libcuda.so.1 as
// a program does, and checks afterwards what the child wrote down.
#pragma once

#include <cuda.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nvfp4emu.h"
#include "tools/testing/catch.h"

namespace driver_test {

// The child's side.
class Session {
 public:
  explicit Session(int out);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

// Found by cuGetProcAddress.
#define ENTRY(name) decltype(&::name) name = nullptr;
#include "tools/emulator/test/support/driver_session.def"
#undef ENTRY
  decltype(&::cuGetProcAddress) lookup = nullptr;

  void* symbol(const char* name) const;  // dlsym
  template <class F>
  F extension(const char* name) const {
    return reinterpret_cast<F>(symbol(name));
  }

  // Notes what was seen and what it should be; the parent compares.
  void is(const char* what, long long seen, long long wanted);
  void says(const char* what, const std::string& seen, const std::string& wanted_part);

  // cuInit, device 0, its primary context current.
  CUcontext start();
  // start(), a module of that text, and its functions by name.
  CUmodule load(const char* ptx);
  CUfunction function(CUmodule module, const char* name);
  // One block of one thread with one 64-bit parameter.
  CUresult launch(CUfunction f, uint64_t parameter = 0);

 private:
  void* library_ = nullptr;
  int out_;
};

using Environment = std::vector<std::pair<const char*, const char*>>;

// Runs `body` in a child, checks everything that it noted, and returns what it wrote to stderr.
std::string in_child(const Environment& environment, const std::function<void(Session&)>& body);
inline std::string in_child(const std::function<void(Session&)>& body) {
  return in_child({}, body);
}

}  // namespace driver_test

// `call` is what the report quotes.
#define IS(session, call, wanted) \
  (session).is(#call, static_cast<long long>(call), static_cast<long long>(wanted))
#define OK(session, call) (session).is(#call, static_cast<long long>(call), CUDA_SUCCESS)

// What nearly every test that includes this names.
using driver_test::in_child;
using driver_test::Session;
