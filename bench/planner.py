# SPDX-License-Identifier: MIT
"""planner.py MEASURED.csv... [--predicted FILE.csv...]: how near the planner's choice is to the
best variant and split of each shape, and its microseconds to those measured, from what
`nvfp4 tune --every` wrote, or of packed weights what `nvfp4_bench packed --every` did.

--predicted: choices and predictions from these files instead, which a planner that has changed
wrote by `nvfp4 tune --candidates --every`, without a GPU; times stay those measured."""
import argparse
import csv
import math
import statistics
import sys

WORST = 10


def plans_of(cells):
    """(plan, its row) of each plan of a shape, the choice first."""
    shape = f"{'x'.join(cells[:3])} {cells[4]}"
    for number, cell in enumerate(cells[5:]):
        plan, predicted, replays, us, *_ = [*cell.split(), "0", ""]
        yield plan, {"shape": shape, "plan": plan, "chosen": "01"[number == 0],
                     "predicted_us": predicted, "replays": replays, "us": us}


def of_packed(rows):
    """(shape, plan, its row) of packed weights, from the rows of `nvfp4_bench packed --every`."""
    for cells in rows:
        if cells["packed"] == "1":
            shape = (cells["m"], cells["n"], cells["k"], "1", "packed")
            yield shape, cells["plan"], {
                "shape": f"{'x'.join(shape[:3])} packed", "plan": cells["plan"],
                "chosen": cells["chosen"], "predicted_us": cells["predicted_us"], "replays": "1",
                "us": cells["us"]}


def of_plans(rows):
    """(shape, plan, its row) from the rows of `nvfp4_bench plans`."""
    for cells in rows:
        kind = cells["a_type"] + ("" if cells["packed"] == "nothing" else f" {cells['packed']}")
        shape = (cells["m"], cells["n"], cells["k"], "1", kind)
        yield shape, cells["plan"], {
            "shape": f"{'x'.join(shape[:3])} {kind}", "plan": cells["plan"],
            "chosen": cells["chosen"], "predicted_us": cells["predicted_us"],
            "replays": "1" if cells["us"] else "0", "us": cells["us"]}


def of_tune(rows):
    """(shape, plan, its row) from the rows of `nvfp4 tune --every`."""
    for cells in rows:
        for plan, row in plans_of(cells):
            yield tuple(cells[:5]), plan, row


def read(names):
    """Rows of the files by shape, then by plan."""
    shapes = {}
    for name in names:
        with open(name, encoding="utf-8") as file:
            lines = [line for line in file if not line.startswith("#")]
        rows = (of_packed(csv.DictReader(lines)) if lines[0].startswith("m,n,k,plan,")
                else of_plans(csv.DictReader(lines)) if lines[0].startswith("m,n,k,a_type,packed,")
                else of_tune(csv.reader(line for line in lines if not line.startswith("m"))))
        for shape, plan, row in rows:
            plans = shapes.setdefault(shape, {})
            if plan in plans:
                raise ValueError(f"{name}: {'x'.join(shape[:3])} by {plan} stands twice")
            plans[plan] = row
    return shapes


def predict_anew(measured, predicted):
    """Predictions and choice of other files, beside the times there are."""
    for shape, plans in measured.items():
        if shape not in predicted:
            raise ValueError(f"{'x'.join(shape[:3])} has no prediction")
        now = predicted[shape]
        for plan in list(plans):
            if plan not in now:  # a cut that the planner no longer proposes
                plans[plan]["chosen"] = "0"
                plans[plan]["predicted_us"] = ""
        for plan, row in now.items():
            # What was not a plan of its own when times were measured has none.
            old = plans.setdefault(plan, {**row, "replays": "0", "us": ""})
            old["chosen"], old["predicted_us"] = row["chosen"], row["predicted_us"]


def judge(plans):
    """(the choice, the best), of the rows of a shape; the choice may be without a time."""
    chosen = [row for row in plans.values() if row["chosen"] == "1"]
    if len(chosen) != 1:
        raise ValueError(f"{len(chosen)} rows of a shape are chosen")
    longest = max(int(row["replays"]) for row in plans.values())
    if longest == 0:
        raise ValueError("a shape has no times")
    timed = [row for row in plans.values() if int(row["replays"]) == longest]
    if chosen[0]["us"]:
        timed.append(chosen[0])
    return chosen[0], min(timed, key=lambda row: float(row["us"]))


def at_95(values):
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def summary(name, errors):
    percent = [100 * error for error in errors]
    return (f"{name:46} {len(errors):5} {statistics.mean(percent):6.2f} %"
            f" {statistics.median(percent):6.1f} % {at_95(percent):6.1f} % {max(percent):6.1f} %")


def ratio(row):
    return float(row["predicted_us"]) / float(row["us"])


def compared(rows):
    """Of those with a time and a prediction."""
    return [row for row in rows if row["us"] and float(row["predicted_us"] or 0) > 0]


def report(shapes):
    judged = [(shape, *judge(plans)) for shape, plans in shapes.items()]
    timed = [(shape, choice, best) for shape, choice, best in judged if choice["us"]]
    for shape, choice, _ in judged:
        if not choice["us"]:
            yield f"{'x'.join(shape[:3])}: {choice['plan']}, the choice, was not measured"
    yield f"{'':46} {'rows':>5} {'mean':>8} {'median':>8} {'95 %':>8} {'worst':>8}"
    behind = [float(choice["us"]) / float(best["us"]) - 1 for _, choice, best in timed]
    choices = compared(choice for _, choice, _ in timed)
    every = compared(row for plans in shapes.values() for row in plans.values())
    yield summary("the choice is slower than the best by", behind)
    if every:
        yield summary("prediction is off, of the choice, by", [abs(ratio(r) - 1) for r in choices])
        yield summary("prediction is off, of all timed, by", [abs(ratio(r) - 1) for r in every])
    yield "\nchoices farthest behind"
    for late, (shape, choice, best) in sorted(zip(behind, timed), key=lambda x: -x[0])[:WORST]:
        yield (f"  {'x'.join(shape[:3]):16} {shape[4]:5} {100 * late:5.1f} %  {choice['plan']} "
               f"{choice['us']}, {best['plan']} {best['us']} us")
    yield "\npredictions of choices farthest off"
    for row in sorted(choices, key=lambda row: -abs(ratio(row) - 1))[:WORST]:
        yield (f"  {row['shape']} {row['plan']}: predicted "
               f"{row['predicted_us']}, measured {row['us']} us, {100 * (ratio(row) - 1):+.1f} %")
    yield "\nprediction / measured by variant, parts of K: rows, median, lowest, highest"
    kinds = {}
    for row in every:
        variant, _, split = row["plan"].partition("/")
        parts = split.partition("+")[0]
        kinds.setdefault((variant, int(parts) if parts.isdigit() else 0), []).append(ratio(row))
    for (variant, split), ratios in sorted(kinds.items()):
        yield (f"  {variant:24} /{split} {len(ratios):4} {statistics.median(ratios):6.2f} "
               f"{min(ratios):6.2f} {max(ratios):6.2f}")


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("measured", nargs="+")
    parser.add_argument("--predicted", nargs="+", default=[])
    options = parser.parse_args(arguments)
    try:
        shapes = read(options.measured)
        if options.predicted:
            predict_anew(shapes, read(options.predicted))
        for line in report(shapes):
            print(line)
    except ValueError as error:
        sys.exit(f"planner.py: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
