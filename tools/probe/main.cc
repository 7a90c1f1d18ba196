// SPDX-License-Identifier: MIT
// nvfp4_probes [NAME...]: asks the first GPU what decides defaults, all of it or what is named, a
// line each:
//
//   NAME: WORD, figures; sets PARAMETER
//
// Exit code 0 if everything that this GPU can be asked has an answer, 1 if not, 2 for a name that
// is none. Each question has a process of its own: a launch that fails leaves none to ask on.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "tools/probe/probe.h"

namespace {

// Right or wrong sums first, then what decides a parameter of the timing model.
#define PROBE(name, capability) \
  { #name, capability, probe::name }
constexpr probe::Probe kProbes[] = {
    PROBE(n_multiple_of_8, 100), PROBE(mma_before_cp, 100),  PROBE(mma_before_cp_pair, 100),
    PROBE(pair_tail, 100),       PROBE(lane_bands, 100),     PROBE(pair_scales, 100),
    PROBE(zero_groups, 100),     PROBE(alloc_beside, 100),   PROBE(clusters_at_once, 90),
    PROBE(clusters_of_4, 90),    PROBE(fence_in_flight, 90), PROBE(rows_beyond, 90),
    PROBE(empty_cta, 90),        PROBE(map_fetch, 90),       PROBE(setup, 90),
    PROBE(load_drain, 100),      PROBE(scale_copy, 100),     PROBE(port_rate, 90),
    PROBE(push_rate, 90),
};
#undef PROBE

// False if there is no answer.
bool say(const probe::Gpu& gpu, const probe::Probe& p) {
  const int capability = gpu.info.compute_capability();
  if (capability < p.capability || (p.capability == 100 && capability >= 110)) {
    printf("%s: left out, compute capability %d.%d has no tcgen05\n", p.name, gpu.info.major,
           gpu.info.minor);
    return true;
  }
  try {
    const probe::Answer a = p.ask(gpu);
    printf("%s: %s, %s; sets %s\n", p.name, a.word.empty() ? "unknown" : a.word.c_str(),
           a.figures.c_str(), a.word.empty() ? "nothing" : a.sets.c_str());
    return !a.word.empty();
  } catch (const std::exception& error) {
    printf("%s: unknown, %s; sets nothing\n", p.name, error.what());
    return false;
  }
}

int answer(const probe::Probe& p) {
  try {
    const support::Driver& driver = support::Driver::get();
    const std::vector<support::DeviceInfo> devices = support::devices(driver);
    if (devices.empty()) throw std::runtime_error("there is no device");
    const support::Context context(driver);
    return say({driver, devices[0]}, p) ? 0 : 1;
  } catch (const std::exception& error) {
    printf("%s: unknown, %s; sets nothing\n", p.name, error.what());
    return 1;
  }
}

// The driver is opened by the child alone.
bool ask(const probe::Probe& p) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const int code = answer(p);
    fflush(stdout);
    _exit(code);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return false;
  if (WIFSIGNALED(status))
    printf("%s: unknown, signal %d; sets nothing\n", p.name, WTERMSIG(status));
  return status == 0;
}

bool is_known(const char* name) {
  for (const probe::Probe& p : kProbes) {
    if (strcmp(name, p.name) == 0) return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (is_known(argv[i])) continue;
    fprintf(stderr, "nvfp4_probes: %s is no probe; there are", argv[i]);
    for (const probe::Probe& p : kProbes) fprintf(stderr, " %s", p.name);
    fprintf(stderr, "\n");
    return 2;
  }
  bool good = true;
  for (const probe::Probe& p : kProbes) {
    bool is_asked = argc == 1;
    for (int i = 1; i < argc; ++i) is_asked = is_asked || strcmp(p.name, argv[i]) == 0;
    if (is_asked) good = ask(p) && good;
  }
  return good ? 0 : 1;
}
