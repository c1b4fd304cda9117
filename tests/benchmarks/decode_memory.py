"""Measures how resident memory grows while many short lines are decoded, and how fast that is.

An untrained Universal Transformer (D 16, H 2, F 32, three steps at most, ACT) reverses strings of 1 to 20 digits: a
run directory is made, `decode` is started in a process of its own, its answers are read as they come, and the memory
of that process is read from /proc five times in a second. The bar: after the first 5 % of the answers it grows by
less than 50 MB. Linux only. Prints one line of JSON.

    python tests/benchmarks/decode_memory.py [--lines=100000] [--beam_size=4]
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

FIRST = 256  # lines of the first window
SECONDS = 0.2  # between two looks at the memory


def main():
    """Parses the command line, measures, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=100_000, metavar="N", help="(default: 100,000)")
    parser.add_argument("--beam_size", type=int, default=1, metavar="N", help="(default: 1)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(pathlib.Path(folder), arguments.lines, [f"--beam_size={arguments.beam_size}"])))


def measure(folder, lines, flags=()):
    """Decodes random strings and returns what was measured.

    Args:
        folder: an empty directory.
        lines: how many strings, more than the first window has.
        flags: more flags of `decode`.

    Returns:
        Dict: "growth_mb" of the resident memory from the first 5 % of the lines to its later maximum, "rss_mb" at the
        end, "tokens_per_second" and "lines_per_second" after the first window (without start and tracing).
    """
    make_run(folder / "run")
    source = folder / "lines"
    rng = random.Random(1)
    with open(source, "w", encoding="utf-8") as file:
        for _ in range(lines):
            file.write("".join(rng.choices("0123456789", k=rng.randint(1, 20))) + "\n")
    command = [sys.executable, "-m", "trainer", "decode", f"--output_dir={folder / 'run'}"]
    command += [f"--decode_from_file={source}", "--with_scores", "--with_ponder", *flags]
    looks, tokens, count, begun, ended = [], 0, 0, None, threading.Event()

    def look():
        while not ended.wait(SECONDS):
            megabytes = resident(process.pid)
            if megabytes:
                looks.append((count, megabytes))

    with open(folder / "log", "w+") as log:
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True) as process:
            watcher = threading.Thread(target=look)
            watcher.start()
            for line in process.stdout:
                count += 1
                tokens += len(json.loads(line)["tokens"]["decoder"])
                if count == FIRST:
                    begun = time.monotonic(), tokens
            seconds = time.monotonic() - begun[0]
            ended.set()
            watcher.join()
        if process.returncode or count != lines:
            log.seek(0)
            raise SystemExit(f"decode answered {count} of {lines} lines, code {process.returncode}:\n{log.read()}")
    later = [resident for done, resident in looks if done >= 0.05 * lines]
    return {
        "lines": lines,
        "flags": list(flags),
        "rss_mb": round(later[-1], 1),
        "growth_mb": round(max(later) - later[0], 1),
        "lines_per_second": round((count - FIRST) / seconds, 1),
        "tokens_per_second": round((tokens - begun[1]) / seconds, 1),
    }


def make_run(path):
    """Writes the run directory of an untrained model to `path`."""
    from tests.trainer.saved_runs import algorithmic_run

    algorithmic_run(path, recurrence_type="act", act_type="accumulated", act_max_steps=3)


def resident(pid):
    """Returns the resident memory of a process in MB; 0 when it has ended."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next((line for line in lines if line.startswith("VmRSS")), "_ 0").split()[1]) / 1024


if __name__ == "__main__":
    main()
