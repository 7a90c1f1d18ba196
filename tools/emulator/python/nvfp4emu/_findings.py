# SPDX-License-Identifier: MIT
"""What the checks found, as objects."""
import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One report of the emulator.

    kind: "error" (hardware can show it), "formal" (the manual requires what no known hardware
    needs) or "note" (what is not about the kernel, such as a driver call that is not emulated).
    rule: the identifier of the rule that was broken, or "". lines: its places in the PTX, as
    "line:column". text: the whole report. more: 0 for a report. Of each rule and kernel a process
    reports one example; what a launch found beyond it is one more Finding, whose `more` says how
    often, and `lines` where."""
    kind: str
    rule: str
    lines: tuple
    text: str
    more: int = 0

    @classmethod
    def read(cls, text):
        """From the JSON object of a report."""
        said = json.loads(text)
        return cls(said["class"], said.get("rule", ""), tuple(said["lines"]), said["text"],
                   said.get("more", 0))

    def __str__(self):
        return self.text if self.kind == "note" else f"{self.kind}: {self.text}"


class Collector:
    """Lists that get every finding of this process's simulations, for as long as a test runs."""
    lists = []

    @classmethod
    def add(cls, findings):
        for each in cls.lists:
            each.extend(findings)
