# SPDX-License-Identifier: MIT
"""What simulate raises beside TypeError and ValueError for its own arguments."""


class Error(Exception):
    """The emulator could not do what was asked, for example find its library or take a launch."""


class PtxError(Error):
    """A kernel's PTX was refused when it was loaded; the text has line, column and reason."""


class KernelError(Error):
    """The checks found an error, or a formal finding stopped the launch. `run` is the nvfp4emu.Run
    with all findings."""

    def __init__(self, run):
        super().__init__("\n".join(found.text for found in run.errors or run.formal))
        self.run = run
