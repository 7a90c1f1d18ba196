// SPDX-License-Identifier: MIT
// The man page and the completion.
#include "tools/nvfp4/options.h"

#include <cstdio>
#include <sstream>

#include "nvfp4_gemm.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

namespace {

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->nonpositional(); });
}

// The words between the braces of "{man,bash}", spaces between them; "" if there are none.
std::string choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return "";
  std::string words = type.substr(open + 1, close - open - 1);
  for (char& c : words) {
    if (c == ',') c = ' ';
  }
  return words;
}

// Text as roff wants it: no line begins with a control character, no dash is a hyphen.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '-')
      out += "\\-";
    else if (c == '\\')
      out += "\\e";
    else
      out += c;
  }
  return out.rfind('.', 0) == 0 || out.rfind('\'', 0) == 0 ? "\\&" + out : out;
}

void man_option(const CLI::Option& option) {
  const bool named = option.nonpositional();
  std::printf(".TP\n\\fB%s\\fR", roff(option.get_name()).c_str());
  if (named && option.get_items_expected() > 0) {
    const std::string words = choices_of(option);
    std::printf(" \\fI%s\\fR", roff(words.empty() ? option.get_type_name() : words).c_str());
  }
  std::printf("\n%s", roff(option.get_description()).c_str());
  if (!option.get_default_str().empty()) {
    std::printf(" [%s]", roff(option.get_default_str()).c_str());
  }
  std::printf("\n");
}

// "Examples:" as a word, indented lines as they are, everything else as text.
void man_footer(const std::string& footer) {
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("  ", 0) == 0) {
      std::printf(".nf\n.RS\n%s\n.RE\n.fi\n", roff(line.substr(2)).c_str());
    } else {
      std::printf(".PP\n%s\n", roff(line).c_str());
    }
  }
}

void man_command(const CLI::App& command) {
  std::printf(".SS nvfp4 %s\n%s.\n", roff(command.get_name()).c_str(),
              roff(command.get_description()).c_str());
  for (const CLI::Option* option : command.get_options()) man_option(*option);
  man_footer(command.get_footer());
}

void man(const CLI::App& app) {
  std::printf(".\\\" From nvfp4 generate man.\n");
  std::printf(".TH NVFP4 1 \"\" \"libnvfp4gemm %d.%d.%d\" \"User Commands\"\n", NVFP4_VERSION_MAJOR,
              NVFP4_VERSION_MINOR, NVFP4_VERSION_PATCH);
  std::printf(".SH NAME\nnvfp4 \\- %s\n", roff(app.get_description()).c_str());
  std::printf(".SH SYNOPSIS\n.B nvfp4\n[\\fIOPTION\\fR] \\fICOMMAND\\fR [\\fIOPTION\\fR...]\n");
  std::printf(".SH OPTIONS\n");
  for (const CLI::Option* option : options_of(app)) man_option(*option);
  std::printf(".SH COMMANDS\n");
  for (const CLI::App* command : app.get_subcommands({})) man_command(*command);
  std::printf(
      ".SH ENVIRONMENT\n.TP\n.B NVFP4_LOG\n"
      "0 (nothing, the default), 1 (errors), 2 (a line per call), 3 (detail): what the library "
      "writes to standard error.\n"
      ".SH EXIT STATUS\n.TP\n.B 0\nThe result is right, or the question answered.\n"
      ".TP\n.B 1\nA wrong result, or none could be had.\n.TP\n.B 2\nBad arguments.\n");
}

void bash_command(const CLI::App& command) {
  std::string words, cases;
  for (const CLI::Option* option : options_of(command)) {
    words += (words.empty() ? "" : " ") + option->get_name();
    const std::string choices = choices_of(*option);
    if (choices.empty()) continue;
    cases += "        " + option->get_name() + ") words=\"" + choices + "\" ;;\n";
  }
  for (const CLI::Option* option : command.get_options()) {
    if (!option->nonpositional() && !choices_of(*option).empty()) {
      words += " " + choices_of(*option);
    }
  }
  std::printf("    %s)\n      words=\"%s\"\n      case \"$before\" in\n%s      esac ;;\n",
              command.get_name().c_str(), words.c_str(), cases.c_str());
}

void bash(const CLI::App& app) {
  std::string commands;
  for (const CLI::App* command : app.get_subcommands({})) commands += command->get_name() + " ";
  std::string options;
  for (const CLI::Option* option : options_of(app)) options += option->get_name() + " ";
  std::printf(
      "# bash completion of nvfp4, from nvfp4 generate bash.\n"
      "_nvfp4() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  local command= words= i\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    case \"${COMP_WORDS[i]}\" in -*) ;; *) command=\"${COMP_WORDS[i]}\"; break ;; esac\n"
      "  done\n"
      "  case \"$command\" in\n"
      "    '') words=\"%s%s\" ;;\n",
      commands.c_str(), options.c_str());
  for (const CLI::App* command : app.get_subcommands({})) bash_command(*command);
  std::printf(
      "  esac\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
      "}\n"
      "complete -o default -F _nvfp4 nvfp4\n");
}

}  // namespace

int generate(const CLI::App& app, const std::string& what) {
  what == "man" ? man(app) : bash(app);
  return kPassed;
}

}  // namespace nvfp4_tool
