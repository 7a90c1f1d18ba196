// SPDX-License-Identifier: MIT
// ptxas as the judge of what PTX is.
#pragma once

#include <string>
#include <vector>

namespace ptx_test {

bool have_ptxas();

// The text in front of the statements to be judged. After them only a closing brace is missing. Its
// labels and registers are known in every statement.
struct Frame {
  std::string text;
};
// An entry around ptx_test::declarations() and the label L.
Frame plain_frame();

// The same for a target and a .version of 7.0 and later (87 = 8.7).
Frame frame_at(const std::string& target, int version);
// The same with the registers alone that the statement names.
Frame frame_for(const std::string& statement, const std::string& target, int version);

// What ptxas says against each statement, a line of its own in `frame`; empty = accepted. One run
// judges many. What ptxas finds only when it generates code is said of the statements for which
// `to_code` is true, and of those beyond its end.
std::vector<std::string> ptxas_verdicts(const std::vector<std::string>& statements,
                                        const Frame& frame = plain_frame(),
                                        const std::vector<bool>& to_code = {});
// The same with ptxas's parser only: for one target, without generating code. A refusal may be due
// to a neighbouring statement.
std::vector<std::string> parser_verdicts(const std::vector<std::string>& statements,
                                         const Frame& frame);
// What ptxas says against a whole module.
std::string ptxas_verdict(const std::string& module);
inline bool ptxas_accepts(const std::string& module) { return ptxas_verdict(module).empty(); }

// The front end's verdict on a statement: empty = accepted. What it refuses as "not supported" is
// right PTX.
std::string our_verdict(const std::string& statement, const Frame& frame = plain_frame());

}  // namespace ptx_test
