// SPDX-License-Identifier: MIT
// What a layer's values and a reference say of it: whether it would give wrong results.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tools/nvfp4/layer_values.h"
#include "tools/nvfp4/report.h"

namespace nvfp4_tool {

struct Checked {
  std::string name, text;  // text: why it would give wrong results; "" if no reason is known
  Json json;
  double tensor_scale = 0;
};

// "%.6g"
std::string short_number(double value);

class Checker {
 public:
  // All layers of the checkpoint, since those that are named alike decide together.
  Checker(const Checkpoint& checkpoint, const std::vector<Layer>& layers,
          const Checkpoint* reference)
      : checkpoint_(checkpoint), layers_(layers), reference_(reference) {}

  // Throws UsageError if no layer is in the reference.
  void require_reference() const;
  // Checks all matrices of a layer.
  std::vector<Checked> check(const Layer& layer);
  std::array<int64_t, 16> histogram() const { return histogram_; }

 private:
  Checked refused(const Layer& layer, const std::string& name, const Refusal& refusal) const;
  Checked check_matrix(const Layer& layer, const std::string& name, int64_t expert);
  void add(const Layer& layer, Checked& checked, const Refusal& refusal) const;
  void judge_layout(const Layer& layer, const MatrixBytes& matrix, Checked& checked);
  bool name_proved();
  bool speaks_for_tiles(const Layer& layer);
  const TensorInfo* original_of(const Layer& layer) const;
  void compare(const Layer& layer, const MatrixBytes& matrix,
               const std::vector<double>& pre_quant_scale, int64_t expert, Checked& checked);

  const Checkpoint& checkpoint_;
  const std::vector<Layer>& layers_;
  const Checkpoint* reference_;
  TensorReader reader_, reference_reader_;
  std::array<int64_t, 16> histogram_{};
  std::optional<bool> name_proved_;
};

}  // namespace nvfp4_tool
