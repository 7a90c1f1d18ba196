// SPDX-License-Identifier: MIT
// What the emulator has to say about a program: reports on stderr.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace emu {

// The fields of a report for programs that read reports.
struct Label {
  std::string of_class = "note";        // or error, formal: the report begins with it
  std::string rule = {};                // its identifier, where there is one
  uint64_t more = 0;                    // findings that are counted, after an example has been told
  std::vector<std::string> lines = {};  // the PTX lines of those; an example has them in its text
};

// Prints one report, after "emulator: ", and records it: say() and record().
void tell(const std::string& report, const Label& label = {});
// say() prints the report on stderr, after its class. record() writes it as a JSON object, to the
// object listener or as a line of the file that NVFP4EMU_REPORT names.
void say(const std::string& report, const std::string& of_class);
void record(const std::string& report, const Label& label);

// What a kernel prints, on stdout.
void print(const std::string& text);

// The function that gets the reports instead of stderr; nullptr: none. For tests that expect them.
using Listener = void (*)(const std::string& report);
void set_listener(Listener listener);
// The function that gets the JSON object of each report, instead of stderr and of the file that
// NVFP4EMU_REPORT names; nullptr: none.
using ObjectListener = void (*)(const char* object);
void set_object_listener(ObjectListener listener);
void set_reader(Listener reader);  // of what kernels print; nullptr: stdout again

}  // namespace emu
