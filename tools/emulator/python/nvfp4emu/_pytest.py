# SPDX-License-Identifier: MIT
"""The pytest plugin: the fixture `emulator`."""
import os

import pytest

from ._findings import Collector, Finding


class Emulator:
    """What the fixture gives. findings: the list of all of this test so far; a test that expects
    errors clears it, by findings.clear(). simulate: nvfp4emu.simulate."""

    def __init__(self):
        from ._simulate import simulate
        self.simulate = simulate
        self._findings = []
        self.file = os.environ.get("NVFP4EMU_REPORT", "")
        self.read_to = os.path.getsize(self.file) if os.path.exists(self.file) else 0

    @property
    def findings(self):  # a list in its place would get none of the findings that follow
        return self._findings

    def read_reports(self):
        """Those of libraries that call the driver themselves, under `nvfp4emu run`."""
        if not os.path.exists(self.file):
            return
        with open(self.file) as reports:
            reports.seek(self.read_to)
            self.findings.extend(Finding.read(line) for line in reports)
            self.read_to = reports.tell()

    @property
    def errors(self):
        return [found for found in self.findings if found.kind == "error"]


@pytest.fixture
def emulator():
    """Fails the test if the emulator's checks find an error while it runs: in nvfp4emu.simulate,
    and under `nvfp4emu run` in whatever calls the driver."""
    made = Emulator()
    Collector.lists.append(made.findings)
    yield made
    Collector.lists[:] = [each for each in Collector.lists if each is not made.findings]


# In the report, since what a fixture raises after its test is counted as an error beside a test
# that passed.
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    emulator = getattr(item, "funcargs", {}).get("emulator")
    if call.when != "call" or not isinstance(emulator, Emulator) or not report.passed:
        return
    emulator.read_reports()
    if emulator.errors:
        report.outcome = "failed"
        report.longrepr = "the emulator found errors:\n" + "\n".join(map(str, emulator.errors))
