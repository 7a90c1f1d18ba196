// SPDX-License-Identifier: MIT
// The bytes of a layer in one form for all dialects, and statistics about them.
#pragma once

#include <array>
#include <optional>

#include "tools/nvfp4/layers.h"

namespace nvfp4_tool {

// One matrix, of a stacked layer one expert's: the element with the lower k in the low nibble,
// linear scales of `block` elements, UE4M3 or UE8M0, a multiplier.
struct MatrixBytes {
  int64_t n = 0, k = 0, block = 16;
  std::vector<uint8_t> codes, scales;
  double tensor_scale = 1;
  bool tiles = false;  // how the scales lay in the file
  bool ue8m0 = false;
};

// Reads tensors of a checkpoint; keeps one file open.
class TensorReader {
 public:
  std::vector<uint8_t> bytes(const TensorInfo& tensor, int64_t part = 0, int64_t parts = 1);
  std::vector<double> values(const TensorInfo& tensor);

 private:
  std::string path_;
  std::optional<DataFile> file_;
};

// Throws Refusal for values that cannot be right: a scale that is negative or not finite.
MatrixBytes read_matrix(const Layer& layer, int64_t expert, TensorReader& reader);
// The tensor scale of the activations, if the checkpoint has one. Throws Refusal.
std::optional<double> read_input_scale(const Layer& layer, TensorReader& reader);
// Throws Refusal if it is not finite. Empty if there is none.
std::vector<double> read_pre_quant_scale(const Layer& layer, TensorReader& reader);

struct Statistics {
  int64_t blocks = 0;
  int64_t zero = 0;                     // of codes that are all 0
  int64_t nan_over_zeros = 0;           // their scale is NaN, and would be multiplied
  int64_t saturated = 0;                // with the largest scale, 448 or 2^127
  int64_t lost = 0;                     // scale 0 over codes that are not
  uint8_t largest = 0;                  // scale, unless it is NaN
  std::array<int64_t, 16> histogram{};  // of the scales' exponents, 2^-7 and below first
};
Statistics statistics_of(const MatrixBytes& matrix);

// Why the values cannot be a layer's, if they cannot: an inverted tensor scale, or one of 0, scales
// that are lost.
std::optional<Refusal> values_refused(const Layer& layer, const MatrixBytes& matrix,
                                      const Statistics& seen, int64_t expert);

// Whether linear scales and 128x4 tiles of a matrix have the same size.
bool same_in_both_layouts(int64_t n, int64_t k);
// How many times better rows and columns explain these scales in the other reading (128x4 tiles
// read as linear scales, or the reverse). 0 if the readings cannot be compared, because of padding
// or too few scales. See docs/integration.md.
double other_layout_ratio(const MatrixBytes& matrix, bool read_as_tiles);

// How far a quantized matrix is from its original, and how far it would be if quantized again.
struct ReferenceError {
  double error = 0, anew = 0;  // of the norm of the reference
};

// `reference` is F32, F16 or BF16 [rows, k] with at most n rows, since some dialects pad the
// matrix. Each column of the matrix is multiplied by its pre_quant_scale if there is one. Throws
// Refusal if the shapes do not fit.
ReferenceError compare_with(const MatrixBytes& matrix, const std::vector<double>& pre_quant_scale,
                            const TensorInfo& reference, int64_t expert, int64_t experts,
                            TensorReader& reader);

}  // namespace nvfp4_tool
