// SPDX-License-Identifier: MIT
// What the emulator has to say about a program: reports on stderr.
#pragma once

#include <string>

namespace emu {

// What a program that reads reports asks of one.
struct Label {
  std::string of_class = "note";  // or error, formal: the report begins with it
  std::string rule = {};          // its identifier, where there is one
};

// One report, after "emulator: ".
void tell(const std::string& report, const Label& label = {});

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
