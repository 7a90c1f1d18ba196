// SPDX-License-Identifier: MIT
// The sub-commands of build/nvfp4.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/harness/problem.h"

namespace nvfp4_tool {

// Exit codes of the program.
enum { kPassed = 0, kFailed = 1, kBadArguments = 2 };

// Bad arguments that only show after parsing, for example an .npy file of another shape.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct InfoOptions {
  bool require_device = false;  // fail unless a device runs the kernels
  bool json = false;
};
int info(const InfoOptions& options);

// A stride that no option gives: rows and batches are contiguous.
constexpr int64_t kContiguous = INT64_MIN;

struct RunOptions {
  RunOptions();
  support::Fields product;  // as the options say it, without its gaps, alpha and variant
  support::Shape shape() const { return product.shape(); }
  void set_shape(const support::Shape& shape);

  support::Data data = support::Data::gpumode;
  uint64_t seed = 1;
  std::optional<float> alpha;  // instead of the data set's
  std::string variant;         // "": the planner chooses
  struct RowsOfGroups {
    int64_t rows, groups;
  };
  std::vector<RowsOfGroups> groups;  // rows of each so many: a grouped product
  int64_t capacity = 0;              // rows that each group has room for; 0: no room between them
  int64_t rows_hint = 0;             // rows of a usual group, for the planner
  bool b_shared = false;             // all groups use one B
  bool group_alpha = false, group_bias = false, scale_rows = false;  // of each group
  int device = 0;
  std::string a_path, b_path, out_path;
  std::string a_quantized, b_quantized;  // prefixes of the files that quantize wrote
  bool headline = false;
  std::string trace_path;  // in the emulator: where the time line goes
  bool counters = false;   // in the emulator: print them
  bool json = false;
  bool allow_unproven = false;  // take a B200's variant where no plan takes one unasked
};
int run(const RunOptions& options);

struct ExplainOptions {
  RunOptions problem;                     // its product, alpha and variant are used
  std::optional<std::string> capability;  // instead of the GPU's
  std::string gpu = "B200";
  std::optional<int32_t> sms;  // instead of the GPU's
  bool json = false;
};
int explain(const ExplainOptions& options);

struct BenchOptions {
  std::vector<std::string> shapes;  // MxNxK or MxNxKxL; none: the task's three
  std::string list;                 // a file of shapes, one per line
  bool csv = false, json = false;
  bool alone = false;  // without the times of other libraries
};
int bench(const BenchOptions& options);

struct TuneOptions {
  std::vector<std::string> shapes;  // MxNxK or MxNxKxL
  std::string list;                 // a file of shapes, one per line
  std::string out;                  // destination of the table
  std::string every;                // destination of each variant's time, instead of that table
  int32_t a_type = NVFP4_TYPE_NONE;
  bool any_bits = false;    // also time variants that add in another order
  bool candidates = false;  // only list the variants and which give the same bits
  bool json = false;
};
int tune(const TuneOptions& options);

struct QuantizeOptions {
  std::string path, out;
  int32_t layout = 1;  // NVFP4_SCALE_LAYOUT_128X4
  std::optional<float> tensor_scale;
  bool rows = false;       // a tensor scale for each row
  int32_t scale_rule = 0;  // an NVFP4_SCALE_RULE
  int32_t packing = 0;     // an NVFP4_PACKING
};
int quantize(const QuantizeOptions& options);

struct CheckOptions {
  std::string path;       // a safetensors or GGUF file, or a folder of them
  std::string reference;  // the same model in 16 or 32 bits
  bool json = false;
};
int check(const CheckOptions& options);

}  // namespace nvfp4_tool
