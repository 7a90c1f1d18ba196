# SPDX-License-Identifier: MIT
"""times.py BUILD: the tests of the last `make test` that took more than 10 processor seconds, which
must be those of slow.txt, each with its reason. On an idle machine: a busy one adds a tenth."""
import glob
import os
import sys

import run


def slow_tests(build):
    """Name: the most processor seconds that a job spent on it."""
    slow = {}
    for path in glob.glob(os.path.join(build, "jobs", "*.times")):
        for seconds, name in run.read_times(path):
            if seconds > run.SLOW:
                slow[name] = max(seconds, slow.get(name, 0))
    return slow


def listed():
    with open(os.path.join(run.HERE, "slow.txt")) as lines:
        rows = [line.rstrip("\n").split(" | ") for line in lines
                if line.strip() and not line.startswith("#")]
    for row in rows:
        if len(row) != 2 or not row[1]:
            sys.exit(f"slow.txt: no reason in {' | '.join(row)!r}")
    return {name for name, _ in rows}


def main():
    if not glob.glob(os.path.join(sys.argv[1], "jobs", "*.times")):
        sys.exit(f"no times in {sys.argv[1]}/jobs: make test writes them")
    slow, known = slow_tests(sys.argv[1]), listed()
    for name in sorted(slow, key=slow.get, reverse=True):
        print(f"{slow[name]:8.1f}  {name}" + ("" if name in known else "  not in slow.txt"))
    for name in sorted(known - set(slow)):
        print(f"          {name}: in slow.txt, and not slow")
    unknown = sum(name not in known for name in slow)
    print(f"{len(slow) - unknown} passed, {unknown} failed, 0 skipped")
    return unknown > 0


if __name__ == "__main__":
    sys.exit(main())
