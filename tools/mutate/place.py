# SPDX-License-Identifier: MIT
"""Where a mutant's bug goes: a part of a function, found by the function's name and the code
itself. White space, and so every line break that the formatter chooses, does not count."""
import difflib
import re


class Lost(Exception):
    """The code has moved on and the mutant has to follow; says where it probably went."""


def loose(code):
    """A regular expression for this code with any white space between its words and signs."""
    words = re.findall(r'"(?:\\.|[^"\\])*"|\w+|[^\w\s]', code)
    parts = [re.escape(words[0])]
    for before, word in zip(words, words[1:]):
        both_words = re.match(r"\w", word) and re.match(r"\w", before[-1])
        parts.append((r"\s+" if both_words else r"\s*") + re.escape(word))
    return re.compile("".join(parts))


def matching(text, start, pair):
    """Just after the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] == pair[0]:
            depth += 1
        elif text[at] == pair[1]:
            depth -= 1
            if depth == 0:
                return at + 1
    return len(text)


def without_comments(text):
    """The text with comments blanked, every other character where it was."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def functions(text, name):
    """(start, end) of every definition of `name`, from its name to the brace that closes it."""
    text = without_comments(text)
    for found in re.finditer(r"(?<![\w.>])" + re.escape(name) + r"\s*\(", text):
        after = matching(text, found.end() - 1, "()")
        between = re.compile(r"[^;{}()=]*(?:\([^;{}]*\)[^;{}()=]*)?\{").match(text, after)
        if between:
            yield found.start(), matching(text, between.end() - 1, "{}")


def place(text, function, code, file):
    """(start, end) of `code`, which must stand once in the function, or in the file if that is
    None."""
    spans = [(0, len(text))] if function is None else list(functions(text, function))
    if not spans:
        names = set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", text))
        near = difflib.get_close_matches(function, names, 1)
        raise Lost(f"{file} has no function {function}" + (f"; nearest: {near[0]}" if near else ""))
    pattern = loose(code)
    found = [m.span() for start, end in spans for m in pattern.finditer(text, start, end)]
    if len(found) == 1:
        return found[0]
    inside = f" in {function}" if function else ""
    if found:
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start, _ in found)
        raise Lost(f"{file}{inside}: found {len(found)} times, in lines {lines}: {code}")
    raise Lost(f"{file}{inside}: not found: {code}\n{nearest(text, spans, code)}")


def nearest(text, spans, code):
    lines = []
    for start, end in spans:
        first = text.count("\n", 0, start) + 1
        lines += [(first + i, line.strip()) for i, line in enumerate(text[start:end].split("\n"))]
    best = max(lines, key=lambda row: difflib.SequenceMatcher(None, row[1], code).ratio())
    return f"  nearest, line {best[0]}: {best[1]}"
