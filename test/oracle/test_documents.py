# SPDX-License-Identifier: MIT
"""What the documents name is there: targets of make and their variables, programs with their
commands and options, tags of tests, files, settings. What README and examples tell to run is run by
test_lines."""
import functools
import glob
import os
import re
import shlex
import subprocess
import unittest

import nvfp4

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOMS = ("bench", "docs", "examples", "host", "include", "kernel", "test", "tools")
STANDS_FOR = re.compile(r"[A-Z]{3,}|\.\.|[<>*]")


def documents():
    listed = (glob.glob(os.path.join(ROOT, "**", "*.md"), recursive=True))
    return sorted(path for path in listed
                  if not re.search(r"/(build|\.venv|\.tools)/", path[len(ROOT):]))


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def codes():
    """(document, line of code) of all that stands between back quotes, or in a block of
    commands."""
    for path in documents():
        name, content = os.path.relpath(path, ROOT), text(path)
        for block in re.findall(r"(?ms)^```(?:|sh|console|shell)\n(.*?)^```", content):
            for line in block.replace("\\\n", " ").splitlines():
                yield name, re.sub(r"\s+#.*|^\$ ", "", line).strip()
        for code in re.findall(r"`([^`]+)`", re.sub(r"(?ms)^```.*?^```", "", content)):
            yield name, " ".join(code.split())


@functools.cache
def output(*command):
    """Help and lists need no driver; a test program without one says no more than that."""
    emulator = os.path.join(nvfp4.BUILD, "emulator")
    done = subprocess.run(command,
                          cwd=ROOT,
                          capture_output=True,
                          text=True,
                          stdin=subprocess.DEVNULL,
                          env={
                              **os.environ, "LD_LIBRARY_PATH": emulator,
                              "MAKEFLAGS": ""
                          })
    return done.stdout + done.stderr


@functools.cache
def makefiles():
    files = [
        os.path.join(ROOT, "Makefile"), *glob.glob(os.path.join(ROOT, "**", "*.mk"), recursive=True)
    ]
    scripts = glob.glob(os.path.join(ROOT, "tools", "**", "*.sh"), recursive=True)
    return "\n".join(map(text, files)), "\n".join(map(text, scripts))


def wrong_in_make(words):
    rules, scripts = makefiles()
    targets = set(re.findall(r"(?m)^([A-Za-z][\w/.-]*):", output("make", "-qp")))
    for word in words:
        variable, equals, _ = word.partition("=")
        if equals:
            if not re.search(rf"\b{variable}\b", rules + scripts):
                yield f"no variable {variable}"
        elif not word.startswith("-") and not STANDS_FOR.search(word) and (
                word.replace("build/clocks/", "build/") not in targets):
            yield f"no target {word}"


def wrong_in_program(program, words):
    path = os.path.join(nvfp4.BUILD, program)
    words = [word for word in words if word != "--emulate"]
    if program.endswith("test") or program.startswith("test_"):
        tags = set(re.findall(r"\[[\w-]+\]", output(path, "--list-tags").lower()))
        for tag in re.findall(r"\[[\w-]+\]", " ".join(words)):
            if tag not in tags:
                yield f"no tag {tag}"
        return
    command = [words[0]] if words and re.fullmatch(r"[a-z]+", words[0]) else []
    page = output(path, *command, "--help")
    if command and not re.search(rf"(?m)^(?:Usage: )?\S*{program} .*\b{command[0]}\b",
                                 page):
        yield f"no command {command[0]}"
        return
    for word in words:
        if re.match(r"--[a-z]", word) and not re.search(rf"{word.split('=')[0]}\b", page):
            yield f"no option {word}"


def wrong_in(code, name="README.md"):
    for command in code.split(" && "):
        yield from wrong_in_command(command, name)


def wrong_in_command(code, name):
    try:
        words = shlex.split(code, comments=True)
    except ValueError:
        return
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        setting = words.pop(0).split("=")[0]
        if setting.startswith("EMU_") and setting not in text("tools/emulator/base/settings.def"):
            yield f"no setting {setting}"
    if not words:
        return
    if words[0] == "make":
        yield from wrong_in_make(words[1:])
    elif re.fullmatch(
            r"(?:build/)?(nvfp4|nvfp4_bench|nvfp4_test|test_host|test_emulator|emulator_hw_test)",
            words[0]):
        yield from wrong_in_program(words[0].removeprefix("build/"), words[1:])
    elif re.fullmatch(rf"(?:{'|'.join(ROOMS)})/[\w./*-]*", words[0]) and "NAME" not in words[0]:
        # The emulator's documents speak from its folder.
        folders = [ROOT
                   ] + [os.path.join(ROOT, "tools/emulator")] * name.startswith("tools/emulator/")
        if not any(glob.glob(os.path.join(folder, words[0])) for folder in folders):
            yield f"no {words[0]}"


class Documents(unittest.TestCase):
    def test_what_they_name_is_there(self):
        seen, wrong = 0, []
        for name, code in codes():
            findings = list(wrong_in(code, name))
            seen += 1
            wrong += [f"{name}: `{code}`: {finding}" for finding in findings]
        self.assertGreater(seen, 500)
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_relative_links_lead_to_files(self):
        seen, wrong = 0, []
        for path in documents():
            content = re.sub(r"(?ms)^```.*?^```|`[^`]*`", "", text(path))
            for words, target in re.findall(r"\[([^\]]*)\]\(([^)#\s]+)[^)]*\)", content):
                if re.match(r"[a-z]+:", target):
                    continue
                seen += 1
                if re.fullmatch(r"[\w-]+\.\w{1,4}", words) and words != os.path.basename(target):
                    wrong.append(f"{os.path.relpath(path, ROOT)}: {words} leads to {target}")
                if not os.path.exists(os.path.join(os.path.dirname(path), target)):
                    wrong.append(f"{os.path.relpath(path, ROOT)}: {target}")
        self.assertGreater(seen, 50)
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_readme_fits_and_states_the_times_of_hacking(self):
        readme, hacking = text("README.md"), text("HACKING.md")
        self.assertLessEqual(readme.count("\n"), 140)
        words = " ".join(readme.split())
        for command, stated in (("`make run`", r"`make run` takes about (\d+) minutes"),
                                ("`make test` after it", r"about (\d+) minutes after `make run`")):
            row = re.search(rf"(?m)^\| {command}[^|]*\| (\d+) min (\d+) s ", hacking)
            minutes = int(row[1]) + (int(row[2]) > 20)
            self.assertEqual(int(re.search(stated, words)[1]), minutes, command)
        self.assertNotRegex(text("CONTRIBUTING.md"), r"\d+ (minutes|min|s)\b|half an hour")

    def test_what_is_not_there_is_found(self):
        for code, finding in [("make run tset", "no target tset"),
                              ("make run COLOUR=1", "no variable COLOUR"),
                              ("build/nvfp4 rnu --m 1", "no command rnu"),
                              ("nvfp4 run --depth 3", "no option --depth"),
                              ("EMU_SPEED=2 build/nvfp4 info", "no setting EMU_SPEED"),
                              ("build/nvfp4_test '[nosuchtag]'", "no tag [nosuchtag]"),
                              ("tools/no/such.sh build", "no tools/no/such.sh")]:
            self.assertEqual(list(wrong_in(code)), [finding])


if __name__ == "__main__":
    unittest.main()
