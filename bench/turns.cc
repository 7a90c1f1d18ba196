// SPDX-License-Identifier: MIT
#include "bench/turns.h"

#include <cstdio>

#include "bench/figures.h"
#include "bench/head.h"
#include "tools/harness/progress.h"

namespace bench {

int time_in_turns(const TurnsOptions& options, const Turns& turns) {
  const support::Driver& driver = support::Driver::get();
  const support::Context context(driver);
  const Gpu gpu(driver);
  std::vector<support::Shape> shapes;
  for (const std::string& text : options.shapes) shapes.push_back(parse_shape(text));
  if (gpu.info.emulated()) {
    for (const support::Shape& s : shapes) turns.verify(gpu, s);
    std::printf("# %s: nothing is timed in the emulator\n", gpu.info.name.c_str());
    return 0;
  }
  GpuTimer timer(driver);
  const Head head{{"date", today()},
                  {"command", options.command},
                  {"device", formatted("%s, %d SMs", gpu.info.name.c_str(), gpu.info.sms)},
                  {"library", nvfp4_build_info()}};
  std::printf(
      "# Microseconds by graph replay, cold, median of %d; replays of the %s take turns.\n%s%s\n",
      options.replays, turns.series, as_comments(head).c_str(), turns.columns);
  for (const support::Shape& s : shapes) {
    support::progress(to_string(s));
    turns.time(gpu, timer, s);
  }
  support::progress_done();
  return 0;
}

}  // namespace bench
