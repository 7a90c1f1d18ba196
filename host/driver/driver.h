// SPDX-License-Identifier: MIT
// The CUDA driver: libcuda.so.1 opened at first use, its entry points in a table written once.
#pragma once

#include "host/base/status.h"
#include "host/cuda/driver.h"

namespace nvfp4 {

struct Driver {
  int version;  // of CUDA that it supports, as cuDriverGetVersion counts
#define ENTRY(name, version) decltype(&::name) name;
#include "host/driver/driver.def"
#undef ENTRY
};

// The started driver, or why there is none. A failure is not remembered: the next call tries again.
// `oldest` answers the oldest CUDA version that the caller can use; it is asked once, on opening.
nvfp4_status open_driver(int (*oldest)(), const Driver** driver);

// While it lives, the calling thread may make calls that the capture of a stream forbids. Loading
// code may wait for the device; it touches no work of the stream, so a first use can be captured.
// Where the driver does not change the mode, it refuses the loading, and that is what the caller is
// told.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver) : driver_(driver) { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void exchange() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }

  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// `needs`: who needs the `oldest` driver that would do: "this library needs".
nvfp4_status refuse_driver(int version, const char* needs, int oldest);

// A failed driver call as status and sentence. `call` is its name. Where the result itself says
// nothing better (context, memory, earlier work), the status is `otherwise`.
nvfp4_status driver_failure(const Driver& driver, const char* call, CUresult result,
                            nvfp4_status otherwise = NVFP4_STATUS_DRIVER_ERROR);

// The status that a result stands for, whoever returned it; `otherwise` for all others.
nvfp4_status status_of(CUresult result, nvfp4_status otherwise);

}  // namespace nvfp4
