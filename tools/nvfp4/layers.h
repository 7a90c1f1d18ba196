// SPDX-License-Identifier: MIT
// The NVFP4 layers of a Checkpoint: which tensors belong to each, which dialect of dialects.def it
// is, and whether names, types and shapes match the dialect. Reads no weights.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tools/nvfp4/dialects.h"
#include "tools/nvfp4/tensor_file.h"

namespace nvfp4_tool {

// Reason why a layer would not be loaded: the tensor, what it is, and what was expected.
struct Refusal {
  std::string tensor, what, expected;
};

struct Layer {
  std::string name, declared_in;  // declared_in: a file whose metadata name the layer
  const Dialect* dialect = nullptr;
  bool declared = false;  // the file says which dialect it is, not only the tensors' names
  const TensorInfo *codes = nullptr, *scales = nullptr, *tensor_scale = nullptr;
  bool by_name = false;  // nothing but names of layers says so
  std::map<Use, const TensorInfo*> beside;
  std::optional<Refusal> refusal;

  const TensorInfo* at(Use use) const;  // null if it has none
  // Sizes of the codes; 1 expert if they have two dimensions.
  int64_t experts() const, n() const, k() const;
  bool stacked() const;
};

// Sorted by name. The pointers are into the checkpoint.
std::vector<Layer> find_layers(const Checkpoint& checkpoint);

// The file to name in a message about a tensor of a layer.
std::string file_of(const Checkpoint& checkpoint, const Layer& layer, const std::string& tensor);

// Checks what a declaration says: JSON with "format": "nvfp4" and nothing that changes the values.
void check_declaration(const std::string& tensor, const std::string& json);

// Checks that the tensors of a layer have the types and shapes that shape_rows() says; throws
// Refusal.
void check_types_and_shapes(const Layer& layer);
std::string words(const std::vector<int64_t>& shape);  // "[2, 3]"

}  // namespace nvfp4_tool
