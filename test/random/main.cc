// SPDX-License-Identifier: MIT
// check_random [--problems N] [--seed S] [--first I] | --problem LINE: random problems on the
// device that the loader finds, on all cores. Exit code 1 where one is wrong; its line makes it
// again.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/harness/parallel.h"
#include "tools/harness/progress.h"
#include "tools/harness/random_gemm.h"

using support::GemmArena;
using support::RandomGemm;

namespace {

struct Options {
  uint64_t problems = 1000, seed = 1, first = 0;
  std::string problem;
};

int usage(const char* wrong) {
  std::fprintf(stderr,
               "check_random: %s; [--problems N] [--seed S] [--first I], or --problem LINE\n",
               wrong);
  return 2;
}

bool parse(int argc, char** argv, Options& o) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--problem") {
      o.problem = argv[i + 1];
      continue;
    }
    uint64_t* const value = name == "--problems" ? &o.problems
                            : name == "--seed"   ? &o.seed
                            : name == "--first"  ? &o.first
                                                 : nullptr;
    char* end = nullptr;
    if (value == nullptr) return false;
    // strtoull would take blanks, a sign, and the largest number for a larger one.
    errno = 0;
    *value = std::strtoull(argv[i + 1], &end, 10);
    if (argv[i + 1][0] < '0' || argv[i + 1][0] > '9' || *end != '\0' || errno != 0) return false;
  }
  return argc % 2 == 1;
}

void report(GemmArena& arena, const RandomGemm& problem, const std::string& wrong) {
  constexpr int kRuns = 400;
  std::printf("wrong: %s\n  replay  check_random --problem %s\n", wrong.c_str(),
              to_line(problem).c_str());
  std::fflush(stdout);
  const RandomGemm simple = shrink(arena, problem, kRuns);
  std::printf("  shrunk  check_random --problem %s\n          %s\n", to_line(simple).c_str(),
              arena.complaint(simple).c_str());
  std::fflush(stdout);
}

int run_one(const Options& o, const support::Driver& driver) {
  GemmArena arena(driver);
  const std::string wrong = arena.complaint(support::from_line(o.problem));
  std::printf("%s\n", wrong.empty() ? "right" : wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

// A few wrong problems say as much as many.
constexpr int kMostWrong = 3;

struct Tally {
  std::atomic<uint64_t> next{0}, done{0}, off_grid{0}, linear{0}, plans{0};
  std::atomic<int> wrong{0};
  std::mutex mutex;
};

void work(const Options& o, const support::Driver& driver, CUcontext context, int capability,
          const support::Progress& progress, Tally& tally) {
  driver.check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  GemmArena arena(driver);
  for (;;) {
    const uint64_t i = tally.next++;
    if (i >= o.problems || tally.wrong >= kMostWrong) return;
    const RandomGemm problem = support::draw_gemm(o.seed, o.first + i, capability);
    const std::string wrong = arena.complaint(problem);
    if (!wrong.empty() && tally.wrong++ < kMostWrong) {
      const std::lock_guard lock(tally.mutex);
      std::printf("problem %llu of seed %llu is ", static_cast<unsigned long long>(o.first + i),
                  static_cast<unsigned long long>(o.seed));
      report(arena, problem, wrong);
    }
    tally.off_grid += problem.off_grid != 0;
    tally.linear += problem.fields.a_scale_layout == NVFP4_SCALE_LAYOUT_LINEAR ||
                    problem.fields.b_scale_layout == NVFP4_SCALE_LAYOUT_LINEAR;
    tally.plans += problem.plan != 0;
    ++tally.done;
    if (progress) progress(double(tally.done) / double(o.problems));
  }
}

int run_many(const Options& o, const support::Driver& driver, const support::DeviceInfo& device) {
  CUcontext context = nullptr;
  driver.check(driver.cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  Tally tally;
  const auto progress = support::progress_of(std::to_string(o.problems) + " random problems");
  const auto start = std::chrono::steady_clock::now();
  const auto each = [&](int64_t) {
    work(o, driver, context, device.compute_capability(), progress, tally);
  };
  support::parallel_for(support::cores(), each);
  support::progress_done();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto number = [](const std::atomic<uint64_t>& x) {
    return static_cast<unsigned long long>(x.load());
  };
  std::printf(
      "%llu problems of seed %llu on %s: %d wrong; %llu off the exact grid, %llu with "
      "linear scales, %llu by plans; %.0f s\n",
      number(tally.done), static_cast<unsigned long long>(o.seed), device.name.c_str(),
      tally.wrong.load(), number(tally.off_grid), number(tally.linear), number(tally.plans),
      seconds);
  return tally.wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  if (!parse(argc, argv, options)) return usage("unknown arguments");
  const support::Driver& driver = support::Driver::get();
  const support::DeviceInfo device = support::devices(driver).at(0);
  const support::Context context(driver);
  return options.problem.empty() ? run_many(options, driver, device) : run_one(options, driver);
} catch (const std::exception& error) {
  std::fprintf(stderr, "check_random: %s\n", error.what());
  return 1;
}
