// SPDX-License-Identifier: MIT
// What was probably meant by a word that is none.
#pragma once

#include <string>
#include <vector>

namespace nvfp4_tool {

// The word that takes the fewest letters inserted, left out, exchanged or swapped with their
// neighbour; "" where that is more than two of them and more than a third.
std::string nearest(const std::string& word, const std::vector<std::string>& words);

}  // namespace nvfp4_tool
