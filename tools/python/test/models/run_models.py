# SPDX-License-Identifier: MIT
"""run_models.py BUILD: the tests of this folder, by the Python that `make setup-models` made. A
package of tools/setup/models.txt that is missing, or of another version, fails, and so does a test
that is skipped: nothing else runs these models."""
import importlib.metadata
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../../../..")
MOST_SECONDS = 60  # of the processor, as CI has them


def amiss():
    """What is not as it is pinned."""
    with open(os.path.join(ROOT, "tools/setup/models.txt"), encoding="utf-8") as pins:
        for name, version in re.findall(r"^([\w.-]+)==(\S+)", pins.read(), re.M):
            try:
                found = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                found = "missing"
            if found.partition("+")[0] != version:
                yield f"{name} is {found}, {version} in tools/setup/models.txt"


def main():
    wrong = list(amiss())
    for line in wrong:
        print(line)
    if wrong:
        sys.exit('"make setup-models" installs what is pinned')
    sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(ROOT, "test/oracle")]
    import run as oracle
    result, line = oracle.run(sys.argv[1], [HERE])
    for test, why in result.skipped:
        print(f"skipped: {test.id()}: {why}")
    seconds = oracle.cpu_seconds()
    print(f"{line}, {seconds:.0f} of {MOST_SECONDS} processor seconds")
    sys.exit(not result.wasSuccessful() or bool(result.skipped) or result.testsRun == 0)


if __name__ == "__main__":
    main()
