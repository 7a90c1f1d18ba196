// SPDX-License-Identifier: MIT
// Single-token mutants of PTX statements, judged by the front end and by ptxas.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tools/emulator/test/support/ptx_judge.h"

namespace ptx_test {

// Statements that are right in a frame.
struct Corpus {
  Frame frame;
  std::vector<std::string> statements;
};

// One statement and more per row of opcodes.def.
Corpus row_corpus(std::mt19937& random);
// The statements of each entry of a PTX file; an inline-asm scope is one statement.
std::vector<Corpus> file_corpora(const std::string& path);

// The statement with one token lost, doubled, exchanged with its neighbour or for another.
std::string token_mutant(const std::string& statement, std::mt19937& random);

struct Score {
  size_t mutants = 0, both_accept = 0, both_refuse = 0;
  std::vector<std::string> too_lenient;      // we accept, ptxas refuses
  std::map<std::string, size_t> too_strict;  // we refuse with this reason, ptxas accepts
  std::vector<std::string> strict_examples;  // one for each of those
  void add(const Score& other);
};

// Draws `count` mutants of the corpus and asks both.
Score judge(const Corpus& corpus, size_t count, uint32_t seed);
// The same for whole modules, one token of each mutant changed anywhere.
Score judge_modules(const std::vector<std::string>& modules, size_t count, uint32_t seed);

// Small modules with one of everything that stands outside of statements.
std::vector<std::string> sample_modules();

}  // namespace ptx_test
