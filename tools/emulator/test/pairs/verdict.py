# SPDX-License-Identifier: MIT
"""verdict.py: reads what sanitize.sh prints, passes it on, and says which programs
compute-sanitizer reports otherwise than the tables of README.md say. Exit code 0 only if there are
some and none differs."""
import os
import re
import sys

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md")
# What compute-sanitizer's last line counts; memcheck and synccheck know errors alone.
COUNTS = re.compile(r"(\d+) errors?(?:, (\d+) warnings?)?\)?$")


def expected(path=README):
    """{(name, variant): the tools that report it and how, in words}, of those that sm_90 runs"""
    found = {}
    with open(path, encoding="utf-8") as file:
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in file
                if line.startswith("| `")]
    for row in rows:
        if len(row) == 4 and row[3] != "needs sm_100a":
            found[row[0].strip("`"), "racy"] = row[3]
            found.setdefault((row[0].strip("`"), "repaired"), "silent")
        elif len(row) == 3:
            for name in re.findall(r"`(\w+)`", row[0]):
                found[name, "repaired"] = row[1]
    return found


def kind_of(summary):
    """"error", "warning" or "", by the last line of a tool; the line itself where it is no such."""
    counts = COUNTS.search(summary)
    if counts is None:
        return summary
    errors, warnings = (int(count or 0) for count in counts.groups())
    return "error" if errors else "warning" if warnings else ""


def reports(lines):
    """{(name, variant): the tools that report it and how, in words}"""
    found = {}
    for line in lines:
        name, variant, tool, summary = line.rstrip("\n").split("\t")
        kinds = found.setdefault((name, variant), [])
        kind = kind_of(summary)
        if kind:
            kinds.append(f"{tool} {kind}")
    return {program: ", ".join(sorted(kinds)) or "silent" for program, kinds in found.items()}


def main():
    lines = list(sys.stdin)
    sys.stdout.writelines(lines)
    found, known = reports(lines), expected()
    differ = sorted(program for program in found if found[program] != known.get(program))
    for name, variant in differ:
        print(f"differs: {name}, {variant}: {found[name, variant]}; README.md says "
              f"{known.get((name, variant), 'nothing')}")
    print(f"{len(found)} programs, {len(differ)} differ from tools/emulator/test/pairs/README.md")
    return 0 if found and not differ else 1


if __name__ == "__main__":
    sys.exit(main())
