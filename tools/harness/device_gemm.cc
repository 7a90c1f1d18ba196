// SPDX-License-Identifier: MIT
#include "tools/harness/device_gemm.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace support {

namespace {

std::vector<uint8_t> bytes_of(const std::vector<uint16_t>& halves) {
  std::vector<uint8_t> bytes(halves.size() * 2);
  std::memcpy(bytes.data(), halves.data(), bytes.size());
  return bytes;
}

}  // namespace

OnDevice::OnDevice(const OnDevice& other)
    : desc(other.desc), driver_(other.driver_), d_(driver_, other.d_.bytes()) {
  for (const auto& input : other.inputs_) {
    inputs_.push_back(std::make_unique<Input>(driver_, *input));
    for (const void** field : {&desc.a, &desc.b, &desc.a_scales, &desc.b_scales})
      if (*field == input->buffer.pointer()) *field = inputs_.back()->buffer.pointer();
  }
  desc.d = d_.pointer();
  if (other.workspace_) {
    workspace_ = std::make_unique<DeviceBuffer>(driver_, other.workspace_->bytes());
    desc.workspace = workspace_->pointer();
  }
}

const void* OnDevice::add(const char* name, std::vector<uint8_t> content) {
  inputs_.push_back(std::make_unique<Input>(driver_, name, std::move(content)));
  return inputs_.back()->buffer.pointer();
}

void OnDevice::add_operands(const Problem& p, uint8_t poison) {
  desc.a = add("A", p.a.quantized() ? p.a.codes : bytes_of(p.a.halves));
  desc.b = add("B", p.b.codes);
  if (p.a.quantized()) {
    desc.a_scales = add("the scales of A", p.a.device_scales(poison, p.scales_gap_bytes));
  }
  desc.b_scales = add("the scales of B", p.b.device_scales(poison, p.scales_gap_bytes));
}

void OnDevice::add_workspace() {
  uint64_t bytes = 0;
  const int capability = devices(driver_).at(0).compute_capability();
  // A problem that is refused fails at enqueue(), with the sentence.
  if (nvfp4_gemm_workspace_bytes(&desc, capability, &bytes) == NVFP4_SUCCESS && bytes > 0) {
    workspace_ = std::make_unique<DeviceBuffer>(driver_, bytes);
    desc.workspace = workspace_->pointer();
    desc.workspace_bytes = bytes;
  }
}

std::vector<uint8_t> OnDevice::bytes_of_d() const {
  driver_.check(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
  return d_.download();
}

std::string OnDevice::damage() const {
  for (const auto& input : inputs_) {
    if (!input->buffer.guards_intact())
      return std::string("the guard of ") + input->name + " was written";
    if (input->buffer.download() != *input->content)
      return std::string(input->name) + " was written";
  }
  if (!d_.guards_intact()) return "the guard of D was written";
  if (workspace_ && !workspace_->guards_intact()) return "the guard of the workspace was written";
  return "";
}

DeviceGemm::DeviceGemm(const Driver& driver, const Problem& p, uint8_t poison)
    : OnDevice(driver, make_desc(p, NVFP4_SCALE_LAYOUT_UNSET), size_t(p.d_elements()) * 2),
      shape_(p.shape),
      d_ld_(p.d_ld),
      d_batch_stride_(p.d_batch_stride) {
  add_operands(p, poison);
  add_workspace();
}

std::vector<uint16_t> DeviceGemm::d_memory() const {
  const std::vector<uint8_t> bytes = bytes_of_d();
  std::vector<uint16_t> elements(bytes.size() / 2);
  std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

std::vector<uint16_t> DeviceGemm::d() const {
  const std::vector<uint16_t> memory = d_memory();
  std::vector<uint16_t> out;
  out.reserve(size_t(shape_.l * shape_.m * shape_.n));
  for (int64_t batch = 0; batch < shape_.l; ++batch) {
    for (int64_t row = 0; row < shape_.m; ++row) {
      const auto first = memory.begin() + batch * d_batch_stride_ + row * d_ld_;
      out.insert(out.end(), first, first + shape_.n);
    }
  }
  return out;
}

std::string DeviceGemm::damage() const {
  const std::string elsewhere = OnDevice::damage();
  if (!elsewhere.empty()) return elsewhere;
  std::vector<uint16_t> memory = d_memory();
  for (int64_t batch = 0; batch < shape_.l; ++batch) {
    for (int64_t row = 0; row < shape_.m; ++row) {
      const auto first = memory.begin() + batch * d_batch_stride_ + row * d_ld_;
      std::fill(first, first + shape_.n, uint16_t(0xFFFF));
    }
  }
  for (uint16_t element : memory) {
    if (element != 0xFFFF) return "a gap between the rows or batches of D was written";
  }
  return "";
}

void Plan::require(nvfp4_status status) {
  if (status != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
}

nvfp4_gemm_addresses no_addresses() {
  nvfp4_gemm_addresses x{};
  x.struct_size = sizeof x;
  return x;
}

nvfp4_gemm_addresses addresses_of(const nvfp4_gemm_desc& g) {
  nvfp4_gemm_addresses x = no_addresses();
  x.a = g.a, x.a_scales = g.a_scales, x.a_tensor_scale = g.a_tensor_scale;
  x.b = g.b, x.b_scales = g.b_scales, x.b_tensor_scale = g.b_tensor_scale;
  x.c = g.c, x.d = g.d, x.bias = g.bias;
  x.alpha_device = g.alpha_device, x.beta_device = g.beta_device;
  x.workspace = g.workspace, x.workspace_bytes = g.workspace_bytes;
  return x;
}

std::vector<uint16_t> run_on_device(const Driver& driver, const Problem& problem, uint8_t poison) {
  const DeviceGemm gemm(driver, problem, poison);
  if (gemm.enqueue() != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
  std::vector<uint16_t> d = gemm.d();
  const std::string damage = gemm.damage();
  if (!damage.empty()) throw std::runtime_error(damage);
  return d;
}

}  // namespace support
