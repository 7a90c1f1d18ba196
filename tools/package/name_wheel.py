# SPDX-License-Identifier: MIT
"""name_wheel.py WHEEL [PLATFORM]: gives a wheel with a library inside the name of the oldest system
that auditwheel finds that library to run on, as in manylinux_2_34_x86_64. With PLATFORM, as in
manylinux_2_28, that is its name, and a library that needs a newer system is refused. No CPython in
particular is in the name. Prints the file's name.
name_wheel.py --check WHEEL: fails if the library needs a newer system than the wheel's name says.
"""
import json
import os
import re
import subprocess
import sys
import zipfile

from elftools.elf.elffile import ELFFile

MACHINES = {"x64": "x86_64", "AArch64": "aarch64"}


def machine_of(wheel):
    """The processor of the libraries inside."""
    found = set()
    with zipfile.ZipFile(wheel) as opened:
        for name in opened.namelist():
            if ".so" in os.path.basename(name):
                with opened.open(name) as library:
                    found.add(MACHINES[ELFFile(library).get_machine_arch()])
    machine, = found
    return machine


def said_by(*words):
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else sys.exit(done.stdout + done.stderr)


def renamed(wheel, platform):
    name = said_by("wheel", "tags", "--remove", "--platform-tag", platform, wheel)
    return os.path.join(os.path.dirname(wheel), name.strip())


def oldest(wheel):
    """The platform tag that auditwheel gives it."""
    return json.loads(said_by("auditwheel", "show", "--json", wheel))["overall_tag"]


def glibc(tag):
    """(2, 28) of manylinux_2_28_x86_64; None of linux_x86_64."""
    found = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    return tuple(map(int, found.groups())) if found else None


def check(wheel, wanted):
    """Exits with the reason if the library needs a newer system than the tag `wanted`."""
    tag = oldest(wheel)
    if glibc(tag) is None or glibc(tag) > glibc(wanted):
        sys.exit(f"{wheel}: by auditwheel its library needs {tag}, newer than {wanted}; "
                 "`auditwheel show` says by which symbols")


def main(wheel, platform=""):
    machine = machine_of(wheel)
    wheel = renamed(wheel, f"linux_{machine}")
    if platform:
        check(wheel, f"{platform}_{machine}")
    wheel = renamed(wheel, f"{platform}_{machine}" if platform else oldest(wheel))
    print(f"{wheel}, {os.path.getsize(wheel)} bytes")


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(sys.argv[2], sys.argv[2].removesuffix(".whl").rpartition("-")[2])
    else:
        main(*sys.argv[1:])
