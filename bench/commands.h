// SPDX-License-Identifier: MIT
// The halves of build/nvfp4_bench.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/harness/problem.h"

namespace bench {

bool verify();  // the problems of `host`, on the device or the emulator: the reference's bits?
bool time_emulator();  // launches in the emulator, whose results must be right; CSV to stdout
void time_host();      // each function on the idle driver; CSV to stdout

struct GpuOptions {
  std::vector<std::string> shapes;  // "MxNxK"; empty: kPairs with each of kTokens
  std::string layers;  // a file like bench/layers.csv: each layer with each of `tokens`
  std::vector<int64_t> tokens;
  std::pair<int, int> slice{1, 1};  // of the layers: the first of how many, and so on
  std::vector<std::string> variants;
  int32_t a_type = NVFP4_TYPE_NONE;  // of A: quantized, or NVFP4_TYPE_F16, _BF16
  int replays = 15;
  int candidates = 8;  // of cuBLASLt's heuristic
  bool a16 = false;    // beside quantized tokens those of fp16 and bf16
  std::string peer;    // a library as peer_library.h says, or none; wants a16
  std::string json;    // a file for head and rows
  bool no_cublas = false, gpumode = false, batch_invariant = false;
  std::string command;  // for the head of the CSV
};
// Verified, then timed; CSV to stdout. Returns the exit code.
int time_gpu(const GpuOptions& options);

struct LayerOptions {
  int replays = 15;
  int candidates = 4;  // of cuBLASLt's heuristic
  std::string command;
};
// A decoder layer of three models as one graph; CSV to stdout. Returns the exit code.
int time_layers(const LayerOptions& options);

struct ClocksOptions {
  std::vector<std::string> shapes;
  std::string variant;  // "": the planner's
  int replays = 15;
  bool pdl = false;     // NVFP4_PDL_ON_STATIC_WEIGHTS
  std::string command;  // for the head of the CSV
};
// Where the CTAs' time goes, of a library built with CLOCKS=1; CSV to stdout. Returns the exit
// code.
int time_clocks(const ClocksOptions& options);

// Launches of several kinds take turns: a row of CSV for each shape.
struct TurnsOptions {
  std::vector<std::string> shapes = {};
  int32_t a_type = NVFP4_TYPE_NONE;
  int32_t d_type = NVFP4_TYPE_NVFP4;  // of D with scales
  int replays = 15;
  std::string command = "";                // for the head of the CSV
  bool every = false;                      // other plans than the chosen ones, too
  std::vector<std::string> variants = {};  // these, too
  bool predicted = false;                  // nothing is timed; on any machine
};
// Each returns the exit code. D with scales beside D in bf16, without and with nvfp4_quantize after
// it; a gated product beside the product with the rows of b and b2, alone and with what follows it;
// fields of the descriptor over the plain product; packed weights beside the same in a checkpoint's
// order and beside cuBLASLt; every plan of products of 9.0.
int time_scaled_d(const TurnsOptions& options);
int time_gated(const TurnsOptions& options);
int time_fields(const TurnsOptions& options);
int time_packed(const TurnsOptions& options);
int time_plans(const TurnsOptions& options);

struct PeersOptions {
  std::string layers = "bench/drawn.csv";  // a file like it
  std::vector<int64_t> tokens{1, 2, 4, 8, 16, 32, 64, 96, 128, 256, 512, 1024, 2048, 4096};
  std::vector<std::string> peers;  // libraries as peer_library.h says
  int replays = 7;
  int candidates = 8;   // of cuBLASLt's heuristic
  std::string command;  // for the head of the CSV
};
// Packed weights and NVFP4 tokens beside kernels of other programs and cuBLASLt; CSV to stdout.
// Returns the exit code.
int time_peers(const PeersOptions& options);

struct GroupedOptions {
  bool packed = false;                           // a column more: packed weights
  std::string layer;                             // those whose names hold this
  std::vector<std::string> shapes;               // in their place: "EXPERTSxNxK"
  std::vector<int64_t> rows{1, 4, 16, 64, 256};  // of a group, in the mean
  int32_t a_type = NVFP4_TYPE_NONE;
  std::vector<std::string> routings;  // even, skewed, half-empty; empty: each
  std::string variant;                // of the grouped products; empty: the planner's
  int replays = 9;
  std::string command;  // for the head of the CSV
};
// Experts of public models in one launch, beside a loop of single products and one of the same
// bytes; CSV to stdout. Returns the exit code.
int time_grouped(const GroupedOptions& options);

struct QuantizeOptions {
  std::vector<std::string> shapes;  // "ROWSxK"; empty: kShapes
  double values = 1e5;              // random ones of each type to compare with the host
  int replays = 15;
  std::string command;
};
// Verified, then timed, for what quantizes.
int time_quantize(const QuantizeOptions& options);

}  // namespace bench
