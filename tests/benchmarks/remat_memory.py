"""Measures the peak resident memory of a training step above its start, with and without remat, by depth.

A Universal Transformer without halting (D 256, H 8, F 1024, B 16, source and target length 128, dropout 0.1), one
child process per row. The start is taken after the step has been traced and run once on a tiny batch, so that
neither the graph nor the optimizer's slots count. The bar: T = 16 with remat takes at most 1.5 times T = 2.
Linux only (/proc). Prints one line of JSON.

    python tests/benchmarks/remat_memory.py
"""

import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

CONFIG = {"hidden_size": 256, "num_heads": 8, "filter_size": 1024, "length": 128, "batch": 16}


def main():
    """Parses the command line, measures each row in a process of its own, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, nargs="+", default=[2, 16], metavar="T", help="depths (default: 2 16)")
    parser.add_argument("--row", nargs=2, metavar=("T", "REMAT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        print(_peak(int(arguments.row[0]), arguments.row[1] == "True"))
        return
    megabytes = {}
    for remat in (True, False):
        for steps in arguments.steps:
            command = [sys.executable, __file__, "--row", str(steps), str(remat)]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            megabytes[remat, steps] = float(output.split()[-1])
    first, last = min(arguments.steps), max(arguments.steps)
    result = {"remat" if remat else "plain": {} for remat, _ in megabytes}
    for (remat, steps), value in megabytes.items():
        result["remat" if remat else "plain"][f"T={steps}"] = round(value, 1)
    result["ratio_remat"] = round(megabytes[True, last] / megabytes[True, first], 3)
    result["ratio_plain"] = round(megabytes[False, last] / megabytes[False, first], 3)
    print(json.dumps({"unit": "MB above start", **result}))


def _peak(steps, remat):
    """Returns the peak of a training step above its start, in MB."""
    from tests.benchmarks import workload

    config = {**CONFIG, "steps": steps}
    hparams = workload.hparams(config, remat=remat)
    model = workload.make_model(hparams)
    step = workload.training_step(model, hparams)
    step(workload.make_batch({**config, "batch": 1, "length": 4}))
    batch = workload.make_batch(config)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # sets the peak back to what is resident now
    start = _status("VmRSS")
    step(batch)
    return (_status("VmHWM") - start) / 1024


def _status(name):
    """Returns a line of /proc/self/status, in kB."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


if __name__ == "__main__":
    main()
