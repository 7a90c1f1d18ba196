# SPDX-License-Identifier: MIT
"""run.py BUILD [FOLDER...]: the tests in Python, here, of the emulator and of the package, or those
of the folders. Ends with "N passed, N failed, N skipped", or appends that line to the file that
NVFP4_TALLY names; where NVFP4_TIMES names one, each test's processor seconds, its children's among
them, to that."""
import os
import resource
import sys
import unittest


def cpu_seconds():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Timed(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        self.began = cpu_seconds()

    def stopTest(self, test):
        super().stopTest(test)
        if "NVFP4_TIMES" in os.environ:
            with open(os.environ["NVFP4_TIMES"], "a") as out:
                print(f"{cpu_seconds() - self.began:8.2f} {test.id()}", file=out)


def run(build, folders):
    """The tests of the folders: (their result, the line that says how many passed)."""
    os.environ["NVFP4_BUILD"] = os.path.abspath(build)
    suite = unittest.TestSuite(unittest.TestLoader().discover(folder, pattern="test_*.py")
                               for folder in folders)
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=1, resultclass=Timed)
    result = runner.run(suite)
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    return result, (f"{result.testsRun - failed - skipped} passed, {failed} failed, "
                    f"{skipped} skipped")


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    result, line = run(sys.argv[1], sys.argv[2:] or [here, *(
        os.path.join(here, "../../tools", name, "test") for name in ("emulator", "python"))])
    tally = os.environ.get("NVFP4_TALLY")
    if tally:
        with open(tally, "a") as out:
            print(line, file=out)
    else:
        print(line)
    sys.exit(not result.wasSuccessful() or result.testsRun == 0)
