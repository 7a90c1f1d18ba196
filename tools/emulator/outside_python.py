# SPDX-License-Identifier: MIT
"""outside_python.py FOLDER: makes FOLDER/NAME.run of each program of test/outside/python.txt whose
packages this python has and whose file is there, and prints the packages' versions. What it cannot
make stays as it is: another python may have made it."""
import argparse
import importlib.util
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent / "test/outside"


def rows():
    for line in (HERE / "python.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.split(None, 3)


def is_there(package):
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def version(package):
    try:
        return f"{package} {metadata.version(package.replace('.', '-'))}"
    except metadata.PackageNotFoundError:
        return package


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    used, left = set(), []
    for name, device, packages, command in rows():
        words = command.split(None, 1)
        program = HERE / words[0]
        wanted = packages.split(",")
        missing = [each for each in wanted if not is_there(each)]
        source = words[1].split()[0] if "/" in command[2:] else None
        if source and not (folder / source).exists():
            missing.append(source)
        if missing:
            left.append(f"{name} ({', '.join(missing)})")
            continue
        used.update(wanted)
        run = folder / f"{name}.run"
        run.parent.mkdir(parents=True, exist_ok=True)
        arguments = " ".join(words[1:])
        run.write_text(f"#!/bin/sh\ncd '{folder}'\nEMU_DEVICE={device} exec '{sys.executable}' "
                       f"'{program}' {arguments}\n")
        run.chmod(0o755)
    print("Python programs made with " + ", ".join(map(version, sorted(used))))
    if left:
        print("not made, since this python or the folder lacks something: " + "; ".join(left))
    return 0


if __name__ == "__main__":
    sys.exit(main())
