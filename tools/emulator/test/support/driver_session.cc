// SPDX-License-Identifier: MIT
#include "tools/emulator/test/support/driver_session.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace driver_test {

namespace {

[[noreturn]] void give_up(const char* text) {
  fprintf(stderr, "%s\n", text);
  _exit(1);
}

void write_all(int to, const std::string& text) {
  if (write(to, text.data(), text.size()) != ssize_t(text.size())) _exit(1);
}

}  // namespace

Session::Session(int out) : out_(out) {
  library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library_) give_up(dlerror());
  lookup = reinterpret_cast<decltype(lookup)>(symbol("cuGetProcAddress_v2"));
  if (!lookup) give_up("libcuda.so.1 has no cuGetProcAddress_v2");
  auto version_of = reinterpret_cast<decltype(&::cuDriverGetVersion)>(symbol("cuDriverGetVersion"));
  int version = 0;
  if (!version_of || version_of(&version)) give_up("cuDriverGetVersion fails");
  // <cuda.h> maps names to what CUDA 12.8 had: from 13.0 on cuGetProcAddress answers
  // cuCtxSynchronize and cuCtxGetDevice with their _v2 forms, which the header does not map to.
  // An old driver lacks some entries.
  constexpr int header = 12080;
#define ENTRY(name)                                                           \
  {                                                                           \
    void* address = nullptr;                                                  \
    lookup(#name, &address, version < header ? version : header, 0, nullptr); \
    this->name = reinterpret_cast<decltype(this->name)>(address);             \
  }
#include "tools/emulator/test/support/driver_session.def"
#undef ENTRY
}

void* Session::symbol(const char* name) const { return dlsym(library_, name); }

// One line per observation: wanted, seen, what; strings travel with their own mark.
void Session::is(const char* what, long long seen, long long wanted) {
  std::ostringstream line;
  line << "= " << wanted << ' ' << seen << ' ' << what << '\n';
  write_all(out_, line.str());
}

void Session::says(const char* what, const std::string& seen, const std::string& wanted_part) {
  bool found = seen.find(wanted_part) != std::string::npos;
  std::string quoted = seen.substr(0, seen.find('\n'));
  write_all(out_, std::string("= 1 ") + (found ? "1 " : "0 ") + what + " says '" + wanted_part +
                      "': " + quoted + "\n");
}

CUcontext Session::start() {
  CUcontext context = nullptr;
  OK(*this, cuInit(0));
  OK(*this, cuDevicePrimaryCtxRetain(&context, 0));
  OK(*this, cuCtxSetCurrent(context));
  return context;
}

CUmodule Session::load(const char* ptx) {
  start();
  CUmodule module = nullptr;
  OK(*this, cuModuleLoadData(&module, ptx));
  return module;
}

CUfunction Session::function(CUmodule module, const char* name) {
  CUfunction f = nullptr;
  is(name, cuModuleGetFunction(&f, module, name), CUDA_SUCCESS);
  return f;
}

CUresult Session::launch(CUfunction f, uint64_t parameter) {
  void* parameters[] = {&parameter};
  return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
}

namespace {

std::string drain(int from) {
  std::string text;
  char part[4096];
  for (ssize_t n; (n = read(from, part, sizeof part)) > 0;) text.append(part, size_t(n));
  close(from);
  return text;
}

[[noreturn]] void be_child(int out, int errors, const Environment& environment,
                           const std::function<void(Session&)>& body) {
  dup2(errors, STDERR_FILENO);
  for (auto [name, value] : environment) setenv(name, value, 1);
  alarm(60);  // a driver that hangs is a failure, not a hanging suite
  Session session(out);
  body(session);
  session.is("end of the test's body", 1, 1);
  _exit(0);
}

}  // namespace

std::string in_child(const Environment& environment, const std::function<void(Session&)>& body) {
  int out[2], errors[2];
  REQUIRE(pipe(out) == 0);
  REQUIRE(pipe(errors) == 0);
  fflush(nullptr);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) be_child(out[1], errors[1], environment, body);
  close(out[1]);
  close(errors[1]);
  std::istringstream notes(drain(out[0]));
  std::string written = drain(errors[0]);
  int status = 0;
  waitpid(child, &status, 0);
  INFO("on stderr: " << written);
  std::string last;
  for (std::string line; std::getline(notes, line);) {
    std::istringstream fields(line);
    std::string mark, what;
    long long wanted = 0, seen = 0;
    fields >> mark >> wanted >> seen >> std::ws;
    std::getline(fields, what);
    INFO(what);
    CHECK(seen == wanted);
    last = what;
  }
  INFO("after: " << last);
  CHECK(status == 0);
  return written;
}

}  // namespace driver_test
