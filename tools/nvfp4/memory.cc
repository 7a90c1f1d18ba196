// SPDX-License-Identifier: MIT
#include "tools/nvfp4/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>

namespace nvfp4_tool {

namespace {

// Value in a file with "name: value kB" lines; -1 if there is none.
double kilobytes_of(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    double value = 0;
    if (word == name + ":" && file >> value) return value * 1024;
  }
  return -1;
}

double number_in(const char* path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? value : -1;
}

// Memory that this process may still use, by the limits of the machine, its control group and its
// own.
double free_bytes() {
  double least = std::numeric_limits<double>::infinity();
  const double machine = kilobytes_of("/proc/meminfo", "MemAvailable");
  if (machine >= 0) least = machine;
  const double group = number_in("/sys/fs/cgroup/memory.max");
  const double used = number_in("/sys/fs/cgroup/memory.current");
  if (group >= 0 && used >= 0) least = std::min(least, std::max(group - used, 0.0));
  struct rlimit limit {};
  const double mapped = kilobytes_of("/proc/self/status", "VmSize");
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && mapped >= 0) {
    least = std::min(least, std::max(double(limit.rlim_cur) - mapped, 0.0));
  }
  return least;
}

struct Sizes {
  double operands, d, dense_d, decoded;
};

Sizes sizes_of(const support::Shape& s, const support::Gaps& gaps) {
  const double m = double(s.m), n = double(s.n), k = double(s.k), l = double(s.l);
  const double row = double(support::close_ld(s.k));
  const auto span = [&](double rows, double columns, int64_t ld_gap, int64_t batch_gap) {
    const double ld = columns + double(ld_gap);
    return (l - 1) * (rows * ld + double(batch_gap)) + (rows - 1) * ld + columns;
  };
  Sizes sizes{};
  sizes.operands = span(m, row, gaps.a_ld, gaps.a_batch) / 2 +
                   span(n, row, gaps.b_ld, gaps.b_batch) / 2 + l * (m + n) * k / 16;
  sizes.d = 2 * span(m, n, gaps.d_ld, gaps.d_batch);
  sizes.dense_d = 2 * l * m * n;
  sizes.decoded = 2.2 * n * k;  // one batch of B, as the double sums use it
  return sizes;
}

}  // namespace

std::string to_bytes(double bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < sizeof units / sizeof units[0]; ++unit) bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
  return text;
}

double device_bytes(const support::Shape& shape, const support::Gaps& gaps) {
  const Sizes sizes = sizes_of(shape, gaps);
  return sizes.operands + sizes.d;
}

void require_memory(const std::string& what, double bytes) {
  const double free = free_bytes();
  if (bytes <= free) return;
  throw std::runtime_error("out of memory: " + what + " takes " + to_bytes(bytes) +
                           " of this machine's memory, of which " + to_bytes(free) + " are free");
}

void require_memory(const support::Shape& shape, const support::Gaps& gaps,
                    const support::DeviceInfo& device) {
  const Sizes sizes = sizes_of(shape, gaps);
  const double there = device_bytes(shape, gaps);
  // Operands and their references; D as read back and as checked for damage; D without gaps from
  // the device and from the reference.
  const double here = 3 * sizes.operands + 3 * sizes.d + 3 * sizes.dense_d + sizes.decoded;
  require_memory(to_string(shape), device.emulated() ? here + there : here);
  if (device.emulated() || there <= double(device.memory)) return;
  throw std::runtime_error("out of memory: " + to_string(shape) + " takes " + to_bytes(there) +
                           " of the device's memory, which has " + to_bytes(double(device.memory)));
}

}  // namespace nvfp4_tool
