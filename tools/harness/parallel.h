// SPDX-License-Identifier: MIT
// A loop shared out to every core, for work that is a few long items.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace support {

inline unsigned cores() {
  const unsigned count = std::thread::hardware_concurrency();
  return count ? count : 1;
}

// Told what part of a work is done, 0 to 1, from any thread.
using Progress = std::function<void(double)>;

// Calls body(0) .. body(count - 1), each once, in any order. The first exception is thrown on.
inline void parallel_for(int64_t count, const std::function<void(int64_t)>& body,
                         const Progress& progress = {}) {
  std::atomic<int64_t> next{0}, done{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (int64_t i = next++; i < count; i = next++) {
        body(i);
        if (progress) progress(double(++done) / double(count));
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < cores() && int64_t(i) < count; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace support
