// SPDX-License-Identifier: MIT
// The CUDA driver: libcuda.so.1 is opened at first use, and its entry points are written once into
// a table.
#pragma once

#include "host/base/status.h"
#include "host/cuda/driver.h"

namespace nvfp4 {

struct Driver {
  int version;  // CUDA version that it supports, as cuDriverGetVersion counts
#define ENTRY(name, version) decltype(&::name) name;
#include "host/driver/driver.def"
#undef ENTRY
};

// The started driver, or the reason why there is none. A failure is not remembered: the next call
// tries again. `oldest` returns the oldest CUDA version that the caller can use; it is called once,
// on opening.
nvfp4_status open_driver(int (*oldest)(), const Driver** driver);

// While it exists, the calling thread may make calls that stream capture forbids. Loading code may
// wait for the device but touches no work of the stream, so a first use can be captured. If the
// driver does not change the mode it refuses to load, and the caller gets that error.
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

// "13.0" for 13000, as cuDriverGetVersion counts.
struct CudaText {
  char text[16];
};
CudaText cuda_text(int version);

// `needs` says who needs the `oldest` driver, for example "this library needs".
nvfp4_status refuse_driver(int version, const char* needs, int oldest);

// Turns a failed driver call into a status and a message. `call` is its name. `otherwise` is the
// status unless the result itself names a better one (context, memory, earlier work).
nvfp4_status driver_failure(const Driver& driver, const char* call, CUresult result,
                            nvfp4_status otherwise = NVFP4_STATUS_DRIVER_ERROR);

// The status for a driver result, whichever call returned it; `otherwise` if none fits.
nvfp4_status status_of(CUresult result, nvfp4_status otherwise);

}  // namespace nvfp4
