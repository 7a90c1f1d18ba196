# SPDX-License-Identifier: MIT
"""The time line that `nvfp4 run --trace` writes: the rules of Chrome's trace event format, and that
it says what the counters say."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import nvfp4

PROGRAM = os.path.join(nvfp4.BUILD, "nvfp4")
PICTURE = os.path.join(os.path.dirname(__file__), "../../tools/emulator/trace/picture.py")


def traced(folder, *arguments, **environment):
    path = os.path.join(folder, "trace.json")
    done = subprocess.run([PROGRAM, "run", "--trace", path, *arguments], capture_output=True,
                          text=True, env={**os.environ, **environment})
    if "the driver is a GPU's" in done.stderr:
        raise unittest.SkipTest("the driver is no emulator")
    assert done.returncode == 0, done.stdout + done.stderr
    with open(path) as text:
        return json.load(text), done.stdout


def by_track(events):
    tracks = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            tracks[e["pid"], e["tid"]].append(e)
    return tracks


class Trace(unittest.TestCase):
    # Four tiles, K whole.
    SHAPE = ("--m", "65", "--n", "129", "--k", "4416", "--variant", "sm100_128x64x256",
             "--batch-invariant")

    def check_rules(self, trace):
        events = trace["traceEvents"]
        tracks = by_track(events)
        named = collections.Counter((e["pid"], e["tid"]) for e in events
                                    if e["ph"] == "M" and e["name"] == "thread_name")
        for e in events:
            self.assertIn(e["ph"], "XMsfi")
            self.assertGreater(e["pid"], 0)
            if e["ph"] != "M":
                self.assertGreaterEqual(e["ts"], 0)
        self.assertEqual(set(named.values()), {1})
        self.assertEqual(set(named), set(tracks))
        for spans in tracks.values():
            open_ends = []
            for e in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
                self.assertGreater(e["dur"], 0)
                while open_ends and open_ends[-1] <= e["ts"]:
                    open_ends.pop()
                if open_ends:  # inside what is open, never across its end
                    self.assertLessEqual(e["ts"] + e["dur"], open_ends[-1])
                open_ends.append(e["ts"] + e["dur"])
        starts = {e["id"]: e for e in events if e["ph"] == "s"}
        ends = {e["id"]: e for e in events if e["ph"] == "f"}
        self.assertEqual(starts.keys(), ends.keys())
        for identity, start in starts.items():
            end = ends[identity]
            self.assertLessEqual(start["ts"], end["ts"])
            for e in (start, end):
                self.assertTrue(any(s["ts"] <= e["ts"] < s["ts"] + s["dur"]
                                    for s in tracks[e["pid"], e["tid"]]), e)
        return events, starts

    def test_follows_the_format_and_agrees_with_the_counters(self):
        with tempfile.TemporaryDirectory() as folder:
            trace, output = traced(folder, *self.SHAPE, EMU_TRACE_BLOCKS="0-99")
        events, arrows = self.check_rules(trace)
        self.assertGreater(len(arrows), 10)
        blocks = [e for e in events if e["ph"] == "M" and e["name"] == "process_name"]
        self.assertEqual(len(blocks), 4)
        tracks = {e["args"]["name"] for e in events
                  if e["ph"] == "M" and e["name"] == "thread_name"}
        self.assertLessEqual({"warp  0 TMA", "warp  1 MMA", "warp  2 epilogue", "TMA 0",
                              "tensor core 0"}, tracks)
        counters = dict(re.findall(r"^(\w+) +(\d+)  ", output, re.M))
        counted = collections.Counter()
        for e in events:  # the asynchronous spans repeat what their instructions counted
            if e["ph"] == "X" and "lanes" in e["args"]:
                counted.update({k: v for k, v in e["args"].items() if k in counters})
        for name in ("tma_loads", "tma_bytes", "bulk_bytes", "mmas", "macs", "scale_copies",
                     "commits", "tensor_load_bytes", "global_store_bytes", "barrier_tries",
                     "cta_barriers"):
            self.assertEqual(counted[name], int(counters[name]), name)
        self.assertEqual(counted["mmas"], 4 * 69)

    def test_shows_the_blocks_that_are_named_in_every_order(self):
        for order in ("soonest", "latest", "random"):
            with tempfile.TemporaryDirectory() as folder:
                trace, _ = traced(folder, *self.SHAPE, EMU_TRACE_BLOCKS="2", EMU_ORDER=order)
            events, _ = self.check_rules(trace)
            names = [e["args"]["name"] for e in events
                     if e["ph"] == "M" and e["name"] == "process_name"]
            self.assertEqual(names, ["nvfp4_gemm_sm100_128x64_plain block (2,0,0), launch 1"])

    def test_a_picture_is_made_of_one_block(self):
        with tempfile.TemporaryDirectory() as folder:
            traced(folder, *self.SHAPE)
            picture = os.path.join(folder, "ring.svg")
            done = subprocess.run([sys.executable, PICTURE, os.path.join(folder, "trace.json"),
                                   picture, "--from", "100", "--to", "4000"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            bars = xml.etree.ElementTree.parse(picture).findall(".//{*}rect/{*}title")
        told = "\n".join(bar.text for bar in bars)
        for word in ("cp.async.bulk.tensor", "tcgen05.mma", "mbarrier.try_wait", "macs: 524288"):
            self.assertTrue(word in told, word)


if __name__ == "__main__":
    unittest.main()
