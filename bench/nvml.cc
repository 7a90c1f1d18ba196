// SPDX-License-Identifier: MIT
// The three functions and few numbers of nvml.h that it takes.
#include "bench/nvml.h"

#include <dlfcn.h>

namespace bench {
namespace {

constexpr int kClockSm = 1;
constexpr struct {
  unsigned long long bits;
  const char* name;
} kReasons[] = {{0x4, "power"}, {0x20 | 0x40, "heat"}, {0x80, "power brake"}, {0x8, "hardware"}};

template <class Function>
bool find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Nvml::Nvml(const support::Driver& driver, CUdevice device) {
  int (*init)() = nullptr;
  int (*by_bus)(const char* bus, void** device) = nullptr;
  int (*bus_of)(char* text, int bytes, CUdevice device) = nullptr;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);  // stays open
  bus_of = reinterpret_cast<decltype(bus_of)>(driver.extension("cuDeviceGetPCIBusId"));
  char bus[32];
  if (!library || !bus_of || bus_of(bus, sizeof bus, device) != 0 ||
      !find(library, init, "nvmlInit_v2") || init() != 0 ||
      !find(library, by_bus, "nvmlDeviceGetHandleByPciBusId_v2") || by_bus(bus, &device_) != 0) {
    device_ = nullptr;
    return;
  }
  find(library, clock_, "nvmlDeviceGetClockInfo");
  find(library, reasons_, "nvmlDeviceGetCurrentClocksThrottleReasons");
}

int Nvml::sm_mhz() const {
  unsigned mhz = 0;
  return device_ && clock_ && clock_(device_, kClockSm, &mhz) == 0 ? int(mhz) : 0;
}

std::string Nvml::slowed_by() const {
  unsigned long long reasons = 0;
  if (!device_ || !reasons_ || reasons_(device_, &reasons) != 0) return "";
  std::string text;
  for (const auto& [bits, name] : kReasons)
    if (reasons & bits) text += (text.empty() ? "" : "+") + std::string(name);
  return text;
}

}  // namespace bench
