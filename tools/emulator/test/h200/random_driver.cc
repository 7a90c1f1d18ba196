// SPDX-License-Identifier: MIT
// See random_program.h.
#include "tools/emulator/test/h200/random_program.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tools/emulator/test/h200/device.h"

namespace h200 {

#define RANDOM_CALL(call, ...) check(entry<decltype(&::call)>(H200_NAME(call))(__VA_ARGS__), #call)

template <class F>
F RandomDriver::entry(const char* name) const {
  void* const found = dlsym(library_, name);
  if (!found) throw std::runtime_error(std::string("the driver has no ") + name);
  return reinterpret_cast<F>(found);
}

RandomDriver::RandomDriver(const std::string& library)
    : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!library_) throw std::runtime_error(dlerror());
  char name[256] = "";
  CUdevice device = 0;
  RANDOM_CALL(cuInit, 0);
  RANDOM_CALL(cuDeviceGet, &device, 0);
  RANDOM_CALL(cuDeviceGetName, name, sizeof name, device);
  RANDOM_CALL(cuDevicePrimaryCtxRetain, &context_, device);
  device_ = name;
}

namespace {

// Compiled by the ptxas on PATH: that of driver 580 ends its process on some of these programs.
// Empty: it cannot compile them either.
std::string compiled(const std::string& text, const std::string& target, int level) {
  char folder[] = "/tmp/random_XXXXXX";
  if (!mkdtemp(folder)) throw std::runtime_error("no folder in /tmp");
  const std::string at = folder, source = at + "/k.ptx", object = at + "/k.cubin";
  std::ofstream(source) << text;
  const std::string command = "ptxas -arch=" + target + " -O" + std::to_string(level) + " -o " +
                              object + " " + source + " >/dev/null 2>&1";
  const bool done = std::system(command.c_str()) == 0;
  std::ifstream in(object, std::ios::binary);
  std::string image;
  if (done) image.assign(std::istreambuf_iterator<char>(in), {});
  unlink(source.c_str());
  unlink(object.c_str());
  rmdir(folder);
  return image;
}

}  // namespace

std::vector<uint32_t> RandomDriver::run(const std::vector<RandomProgram>& programs,
                                        int level) const {
  const std::string text = random_module(programs);
  const std::string image = emulated() ? text : compiled(text, "sm_90", level);
  if (image.empty()) return {};
  std::vector<uint32_t> values;
  for (const RandomProgram& p : programs) {
    const std::vector<uint32_t> of_it = random_values(p.number);
    values.insert(values.end(), of_it.begin(), of_it.end());
  }
  static_assert(kRandomResults == 32 * kRandomWords + 32);
  std::vector<uint32_t> results(values.size());
  const size_t bytes = values.size() * sizeof values[0];
  RANDOM_CALL(cuCtxSetCurrent, context_);
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* log_values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
  CUmodule module = nullptr;
  const auto load = entry<decltype(&::cuModuleLoadDataEx)>("cuModuleLoadDataEx");
  check(load(&module, image.c_str(), 2, options, log_values), log);
  CUdeviceptr from = 0, to = 0;
  RANDOM_CALL(cuMemAlloc, &from, bytes);
  RANDOM_CALL(cuMemAlloc, &to, bytes);
  RANDOM_CALL(cuMemcpyHtoD, from, values.data(), bytes);
  RANDOM_CALL(cuMemsetD8, to, 0xFF, bytes);
  uint32_t zero = 0;
  void* arguments[] = {&from, &to, &zero};
  for (size_t i = 0; i < programs.size(); ++i) {
    CUfunction function = nullptr;
    RANDOM_CALL(cuModuleGetFunction, &function, module, entry_name(i).c_str());
    RANDOM_CALL(cuLaunchKernel, function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
  }
  RANDOM_CALL(cuCtxSynchronize);
  RANDOM_CALL(cuMemcpyDtoH, results.data(), to, bytes);
  RANDOM_CALL(cuMemFree, from);
  RANDOM_CALL(cuMemFree, to);
  RANDOM_CALL(cuModuleUnload, module);
  return results;
}

namespace {

void put(int to, const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes) {
    const ssize_t n = write(to, at, bytes);
    if (n <= 0) throw std::runtime_error("the other process is gone");
    at += n;
    bytes -= size_t(n);
  }
}

bool get(int from, void* data, size_t bytes) {
  auto* at = static_cast<char*>(data);
  while (bytes) {
    const ssize_t n = read(from, at, bytes);
    if (n <= 0) return false;
    at += n;
    bytes -= size_t(n);
  }
  return true;
}

void put_number(int to, uint64_t n) { put(to, &n, sizeof n); }
uint64_t get_number(int from) {
  uint64_t n = 0;
  if (!get(from, &n, sizeof n)) throw std::runtime_error("the other process is gone");
  return n;
}

}  // namespace

RandomProcess::RandomProcess(const std::string& library) {
  int requests[2], answers[2];
  if (pipe(requests) || pipe(answers)) throw std::runtime_error("no pipe");
  fflush(nullptr);
  child_ = fork();
  if (child_ < 0) throw std::runtime_error("no process");
  if (child_ == 0) {
    close(requests[1]);
    close(answers[0]);
    serve(library, requests[0], answers[1]);
  }
  close(requests[0]);
  close(answers[1]);
  requests_ = requests[1];
  answers_ = answers[0];
}

RandomProcess::~RandomProcess() {
  close(requests_);
  close(answers_);
  waitpid(child_, nullptr, 0);
}

// Until the other side closes its end.
void RandomProcess::serve(const std::string& library, int requests, int answers) {
  try {
    const RandomDriver driver(library);
    for (uint64_t count = 0; get(requests, &count, sizeof count);) {
      std::vector<RandomProgram> programs(count);
      for (RandomProgram& p : programs) {
        p.number = get_number(requests);
        p.steps.resize(get_number(requests));
        for (std::string& step : p.steps) {
          step.resize(get_number(requests));
          if (!get(requests, step.data(), step.size())) _exit(1);
        }
      }
      const std::vector<uint32_t> words = driver.run(programs);
      put(answers, words.data(), words.size() * sizeof words[0]);
    }
  } catch (const std::exception& e) {
    fprintf(stderr, "%s: %s\n", library.c_str(), e.what());
    _exit(1);
  }
  _exit(0);
}

std::vector<uint32_t> RandomProcess::run(const std::vector<RandomProgram>& programs) const {
  put_number(requests_, programs.size());
  for (const RandomProgram& p : programs) {
    put_number(requests_, p.number);
    put_number(requests_, p.steps.size());
    for (const std::string& step : p.steps) {
      put_number(requests_, step.size());
      put(requests_, step.data(), step.size());
    }
  }
  std::vector<uint32_t> words(programs.size() * kRandomResults);
  if (!get(answers_, words.data(), words.size() * sizeof words[0]))
    throw std::runtime_error("the other process is gone");
  return words;
}

}  // namespace h200
