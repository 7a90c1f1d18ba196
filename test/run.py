# SPDX-License-Identifier: MIT
"""run.py BUILD: the jobs of jobs.txt, as many at a time as there are cores, the longest first, with
the emulator as the driver. A line for each that ends, and all that it printed where it failed; then
the slowest tests and the total.

Each program appends "N passed, N failed, N skipped" to the file that NVFP4_TALLY names, and a line
for each test to that of NVFP4_TIMES. Both, and what was printed, stay in BUILD/jobs. JOBS=8: eight
at a time."""
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SLOW = 10  # processor seconds from which on a test is named
# There is a job for each core, so its threads would only wait for each other. What the emulator
# frees with a CTA glibc keeps for the next one: 3 to 6 % less time.
SETTINGS = {"EMU_WORKERS": "1", "OPENBLAS_NUM_THREADS": "1",
            "GLIBC_TUNABLES": "glibc.malloc.tcache_count=60000:glibc.malloc.top_pad=67108864:"
                              "glibc.malloc.mmap_threshold=1073741824:"
                              "glibc.malloc.trim_threshold=4294967296"}
TALLY = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")


class Job:
    def __init__(self, seconds, words, folder):
        self.expected = float(seconds)
        settings = [w for w in words if re.match(r"[A-Z0-9_]+=", w)]
        self.command = words[len(settings):]
        self.settings = dict(w.split("=", 1) for w in settings)
        self.name = " ".join(words)
        self.files = os.path.join(folder, re.sub(r"[^\w=.-]+", "_", self.name).strip("_"))
        self.process = None

    def start(self):
        environment = {**SETTINGS, **os.environ, **self.settings,
                       "NVFP4_TALLY": self.files + ".tally", "NVFP4_TIMES": self.files + ".times"}
        self.log = open(self.files + ".log", "wb")
        self.process = subprocess.Popen(self.command, cwd=ROOT, env=environment, stdout=self.log,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def end(self, status, usage):
        """After the process: what it said of its tests."""
        self.process.returncode = status
        self.log.close()
        self.seconds = usage.ru_utime + usage.ru_stime
        self.counts = tally_of(self.files + ".tally")
        self.broken = ""
        if self.counts is None:
            self.counts = (0, 1, 0)
            self.broken = f"ended with status {status} before its tests were done"
        elif sum(self.counts) == 0:
            self.counts, self.broken = (0, 1, 0), "executed no test"
        elif status != 0 and self.counts[1] == 0:
            self.counts = (self.counts[0], 1, self.counts[2])
            self.broken = f"ended with status {status}"

    def printed(self):
        with open(self.files + ".log", errors="replace") as text:
            return text.read()

    def times(self):
        path = self.files + ".times"
        return read_times(path) if os.path.exists(path) else []


def read_times(path):
    """(processor seconds, test) of each."""
    with open(path) as lines:
        return [(float(line[:8]), line[9:].strip()) for line in lines]


def tally_of(path):
    if not os.path.exists(path):
        return None
    with open(path) as lines:
        found = [TALLY.fullmatch(line.strip()) for line in lines]
    if not found or None in found:
        return None
    return tuple(sum(int(m[i]) for m in found) for i in (1, 2, 3))


def rest_of(words, rows):
    """The filter REST, with what else it leaves out: what no other row of the same program and
    settings takes."""
    taken = [other[-1] for _, other in rows if other[:-1] == words[:-1] and other != words]
    return "".join("~" + tag for tags in taken for tag in tags.split(",")) + words[-1][4:]


def read_jobs(build, folder):
    known = {"BUILD": build, "PYTHON": os.environ.get("PYTHON", ".venv/bin/python"),
             "KERNELS": os.environ.get("KERNELS", "nvcc")}
    rows = []
    with open(os.path.join(HERE, "jobs.txt")) as lines:
        for line in lines:
            if line.startswith("long ") and not os.environ.get("NVFP4_LONG"):
                continue
            if line.strip() and not line.startswith("#"):
                seconds, *words = shlex.split(line.removeprefix("long ").format(**known))
                rows.append((seconds, words))
    if os.environ.get("NVFP4_LONG") and os.environ.get("TORCH_PYTHON"):
        # The Python package on torch's own tensors of the CPU, by a Python that has torch.
        rows.append((60, [os.environ["TORCH_PYTHON"], "test/oracle/run.py", build,
                          "tools/python/test"]))
    jobs = []
    for seconds, words in rows:
        if words[-1].startswith("REST"):
            words = [*words[:-1], rest_of(words, rows)]
        jobs.append(Job(seconds, words, folder))
    return sorted(jobs, key=lambda job: -job.expected)


def say(job, share):
    print(f"[{share:3.0%}] {job.seconds:6.1f} s  {job.name}: "
          + "{} passed, {} failed, {} skipped".format(*job.counts))
    printed = job.printed()
    if job.counts[1]:
        print(printed + (f"{job.name} {job.broken}" if job.broken else ""))
    else:
        print("".join(f"    {line}\n" for line in printed.splitlines()
                      if re.match(r"skip(ped)?\b", line)), end="")
    sys.stdout.flush()


def run(jobs, at_once):
    waiting, running, total, done = list(jobs), {}, sum(job.expected for job in jobs), 0
    while waiting or running:
        while waiting and len(running) < at_once:
            job = waiting.pop(0)
            job.start()
            running[job.process.pid] = job
        pid, status, usage = os.wait4(-1, 0)
        if pid not in running:
            continue
        job = running.pop(pid)
        job.end(os.waitstatus_to_exitcode(status), usage)
        done += job.expected
        say(job, done / total)


def summary(jobs, began):
    """What took long, then the total."""
    tests = sorted(((seconds, f"{name}  ({job.name})") for job in jobs
                    for seconds, name in job.times()), reverse=True)
    print("\nthe slowest tests, in processor seconds:")
    for i, (seconds, name) in enumerate(tests):
        if i < 5 or seconds > SLOW:
            print(f"{seconds:8.1f}  {name}")
    print(f"{sum(job.seconds for job in jobs):.0f} processor seconds, "
          f"{time.monotonic() - began:.0f} s of wall time")
    passed, failed, skipped = (sum(job.counts[i] for job in jobs) for i in range(3))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed


def main():
    build = sys.argv[1]
    os.chdir(ROOT)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    earlier = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = os.path.abspath(build + "/emulator") + (
        ":" + earlier if earlier else "")
    folder = os.path.join(ROOT, build, "jobs")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    jobs = read_jobs(build, folder)
    began = time.monotonic()
    run(jobs, int(os.environ.get("JOBS") or len(os.sched_getaffinity(0))))
    return summary(jobs, began) > 0


if __name__ == "__main__":
    sys.exit(main())
