// SPDX-License-Identifier: MIT
// Golden tables that follow from closed forms: 19,000 rows that CuTe wrote. The source has the form
// and the hash of CuTe's text, so the rows need not be kept.
#pragma once

#include <string>

namespace unit {

// The text of the table, header line first, or "" if the table is a file. A form that departs from
// CuTe's text fails the test that asks.
std::string formed_table(const std::string& name);

}  // namespace unit
