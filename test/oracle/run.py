# SPDX-License-Identifier: MIT
"""run.py BUILD [FOLDER...]: the tests in Python, here, of the emulator and of the package, or those
of the folders. Ends with "N passed, N failed, N skipped", or appends that line to the file that
NVFP4_TALLY names."""
import os
import sys
import unittest

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    os.environ["NVFP4_BUILD"] = os.path.abspath(sys.argv[1])
    sys.path.insert(0, here)
    folders = sys.argv[2:] or [
        here, *(os.path.join(here, "../../tools", name, "test") for name in ("emulator", "python"))]
    suite = unittest.TestSuite(unittest.TestLoader().discover(folder, pattern="test_*.py")
                               for folder in folders)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
    failed = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    line = f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped"
    tally = os.environ.get("NVFP4_TALLY")
    if tally:
        with open(tally, "a") as out:
            print(line, file=out)
    else:
        print(line)
    sys.exit(failed > 0 or result.testsRun == 0)
