# SPDX-License-Identifier: MIT
"""abi.py HEADER: writes a C program that prints the binary interface of the header. abi.py
--library HEADER: a C library that has that interface, and functions that do nothing.

Constants with their values, each struct with its size and the offset, size and type of each field,
types of callbacks, prototypes. The list is read from the header itself, so that a new field cannot
be forgotten; the program ends with status 1 if the fields leave a hole that alignment does not
explain.
"""

import re
import sys


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def constants(text):
    """Names of enumerators, then of the version macros, in the header's order."""
    for body in re.findall(r"\benum\s*\{(.*?)\}", text, flags=re.S):
        for item in body.split(","):
            if item.strip():
                yield item.split("=")[0].strip()
    yield from re.findall(r"^#define (NVFP4_VERSION\w*) ", text, flags=re.M)


def structs(text):
    """(name, [(field, type), ...]) of each complete struct."""
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, flags=re.S):
        fields = []
        for declaration in body.split(";"):
            if not declaration.strip():
                continue
            # An array's size is sizeof's to tell.
            first, *others = re.sub(r"\[\d+\]", "", declaration).split(",")
            base, star, field = re.match(r"\s*(.*?)\s*(\*?)\s*(\w+)\s*$", first, re.S).groups()
            fields.append((field, base + star))
            fields += [(other.strip(" *\n"), base + "*" * other.count("*")) for other in others]
        yield name, fields


def callbacks(text):
    """Types of functions that the caller provides."""
    for declaration in re.findall(r"^typedef [^;{]*\(\*\w+\)\([^;]*;", text, flags=re.M):
        yield " ".join(declaration.split()).rstrip(";")


def prototypes(text):
    for declaration in re.findall(r"NVFP4_API\s+([a-z][^;]*);", text):
        yield " ".join(declaration.split())


def program(header):
    text = without_comments(open(header, encoding="utf-8").read())
    yield "#include <nvfp4_gemm.h>\n#include <stdio.h>\n"
    yield "int main(void) {\n  size_t end;\n  int holes = 0;"
    for name in constants(text):
        yield f'  printf("constant %-34s %ld\\n", "{name}", (long){name});'
    for name, fields in structs(text):
        yield f'  printf("struct {name} size %zu\\n", sizeof({name}));\n  end = 0;'
        for field, kind in fields:
            size = f"sizeof(((({name} *)0)->{field}))"
            yield f'  printf("  %-30s offset %4zu size %2zu {kind}\\n", "{field}",'
            yield f"         offsetof({name}, {field}), {size});"
            yield f"  holes += offsetof({name}, {field}) - end >= {size};"
            yield f"  end = offsetof({name}, {field}) + {size};"
        yield f"  holes += sizeof({name}) - end >= sizeof(void *);"
    for callback in callbacks(text):
        yield f'  printf("%s\\n", "{callback}");'
    for prototype in prototypes(text):
        yield f'  printf("%s\\n", "function {prototype}");'
    yield "  return holes != 0;\n}"


def library(header):
    text = without_comments(open(header, encoding="utf-8").read())
    yield "#include <nvfp4_gemm.h>"
    for prototype in prototypes(text):
        yield prototype + " { __builtin_trap(); }"


if __name__ == "__main__":
    print("\n".join((library if "--library" in sys.argv else program)(sys.argv[-1])))
