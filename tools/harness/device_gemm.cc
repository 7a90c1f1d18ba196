// SPDX-License-Identifier: MIT
#include "tools/harness/device_gemm.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace support {

namespace rows = nvfp4::fields;

DeviceGemm::DeviceGemm(const Driver& driver, const Problem& p, uint8_t poison)
    : desc(make_desc(p, NVFP4_SCALE_LAYOUT_UNSET)),
      driver_(driver),
      fields_(p),
      d_(driver, p.d_before()) {
  for (Input& input : inputs(p, NVFP4_SCALE_LAYOUT_UNSET, poison)) {
    inputs_.push_back(std::make_unique<Array>(driver, std::move(input)));
    rows::set<const void*>(&desc, *inputs_.back()->field, inputs_.back()->buffer.pointer());
  }
  set_results(p, d_.pointer(), desc);
  fit_workspace();
}

// Addresses that a caller has changed stay what they are.
DeviceGemm::DeviceGemm(const DeviceGemm& other)
    : desc(other.desc),
      driver_(other.driver_),
      fields_(other.fields_),
      d_(driver_, other.d_.bytes()) {
  const auto move = [&](const DeviceBuffer& from, const DeviceBuffer& to) {
    for (const GemmField& field : rows::gemm) {
      if (!is_address(field.kind)) continue;
      const auto at = reinterpret_cast<uintptr_t>(rows::address(&other.desc, field));
      if (at < from.address() || at >= from.address() + from.bytes()) continue;
      rows::set(&desc, field, reinterpret_cast<const void*>(to.address() + (at - from.address())));
    }
  };
  for (const auto& input : other.inputs_) {
    inputs_.push_back(std::make_unique<Array>(driver_, *input));
    move(input->buffer, inputs_.back()->buffer);
  }
  move(other.d_, d_);
  if (other.workspace_ == nullptr) return;
  workspace_ = std::make_unique<DeviceBuffer>(driver_, other.workspace_->bytes());
  move(*other.workspace_, *workspace_);
}

void DeviceGemm::fit_workspace() {
  uint64_t bytes = 0;
  const int capability = devices(driver_).at(0).compute_capability();
  // A problem that is refused fails at enqueue(), with the sentence.
  if (nvfp4_gemm_workspace_bytes(&desc, capability, &bytes) == NVFP4_SUCCESS && bytes > 0) {
    workspace_ = std::make_unique<DeviceBuffer>(driver_, bytes);
    desc.workspace = workspace_->pointer();
    desc.workspace_bytes = bytes;
  }
}

std::vector<uint8_t> DeviceGemm::d_bytes() const {
  driver_.check(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
  return d_.download();
}

std::vector<uint16_t> DeviceGemm::d_memory() const {
  const std::vector<uint8_t> bytes = d_bytes();
  std::vector<uint16_t> elements(bytes.size() / 2);
  std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

std::vector<uint16_t> DeviceGemm::d() const {
  const std::vector<uint16_t> memory = d_memory();
  std::vector<uint16_t> out;
  out.reserve(size_t(fields_.l * fields_.m * fields_.n));
  for (int64_t batch = 0; batch < fields_.l; ++batch) {
    for (int64_t row = 0; row < fields_.m; ++row) {
      const auto first = memory.begin() + batch * fields_.d_batch_stride + row * fields_.d_ld;
      out.insert(out.end(), first, first + fields_.n);
    }
  }
  return out;
}

std::string DeviceGemm::damage() const {
  for (const auto& input : inputs_) {
    const std::string name = input->field->name;
    if (!input->buffer.guards_intact()) return "the guard of " + name + " was written";
    if (input->buffer.download() != *input->content) return name + " was written";
  }
  if (!d_.guards_intact()) return "the guard of D was written";
  if (workspace_ && !workspace_->guards_intact()) return "the guard of the workspace was written";
  if (!gaps_are_untouched(fields_, d_bytes()))
    return "a gap between the rows or batches of D was written";
  return "";
}

void require(nvfp4_status status) {
  if (status != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
}

nvfp4_gemm_addresses no_addresses() {
  nvfp4_gemm_addresses x{};
  x.struct_size = sizeof x;
  return x;
}

nvfp4_gemm_addresses addresses_of(const nvfp4_gemm_desc& g) {
  nvfp4_gemm_addresses x = no_addresses();
  for (const nvfp4::Field& to : rows::addresses)
    for (const GemmField& from : rows::gemm)
      if (is_address(to.kind) && std::strcmp(to.name, from.name) == 0)
        rows::set(&x, to, rows::address(&g, from));
  x.workspace_bytes = g.workspace_bytes;
  return x;
}

std::vector<uint16_t> run_on_device(const Driver& driver, const Problem& problem, uint8_t poison) {
  const DeviceGemm gemm(driver, problem, poison);
  require(gemm.enqueue());
  std::vector<uint16_t> d = gemm.d();
  const std::string damage = gemm.damage();
  if (!damage.empty()) throw std::runtime_error(damage);
  return d;
}

std::vector<uint8_t> bytes_on_device(const Driver& driver, const Problem& problem) {
  const DeviceGemm gemm(driver, problem);
  require(gemm.enqueue());
  std::vector<uint8_t> d = gemm.d_bytes();
  const std::string damage = gemm.damage();
  if (!damage.empty()) throw std::runtime_error(damage);
  return d;
}

std::string difference_on_device(const Driver& driver, const Problem& problem) {
  const DeviceGemm gemm(driver, problem);
  require(gemm.enqueue());
  const std::string difference = first_difference(problem, gemm.d_bytes(), problem.reference());
  return difference.empty() ? gemm.damage() : difference;
}

}  // namespace support
