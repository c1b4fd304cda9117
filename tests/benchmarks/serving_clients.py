"""Measures a served model under many clients: latency, and whether every answer is that of `decode`.

Exports a run, serves it by the stand-in server of the tests (a process of its own on loopback) and sends requests of
one to four lines from clients that each wait for their answer; every second one is REST, the others are gRPC. Answers
are compared as tests/benchmarks/same_answers.py says. Prints one line of JSON and stops by itself.

    python tests/benchmarks/serving_clients.py --clients=8 --requests=2000
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
NAME = "benchmark"


def main():
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=8, metavar="N")
    parser.add_argument("--requests", type=int, default=2000, metavar="N", help="of all clients (default: 2000)")
    parser.add_argument("--output_dir", metavar="DIR", help="a trained run (default: a tiny untrained one)")
    parser.add_argument("--lines", type=pathlib.Path, metavar="FILE", help="lines to ask (default: made up)")
    parser.add_argument("--beam_size", type=int, default=1, metavar="K")
    parser.add_argument("--batching_parameters_file", metavar="FILE", help="requests wait for each other")
    parser.add_argument("--seconds", type=float, default=240, metavar="S", help="no request starts after this time")
    arguments = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory(prefix="serving_clients_") as folder:
        print(json.dumps(measure(pathlib.Path(folder), arguments)))


def measure(folder, arguments):
    """Returns the measurement; exports into `folder`."""
    import trainer
    from tests.trainer import tfs_process
    from trainer.export import export
    from trainer.warmup import example_lines
    from ut_keras.decoding.options import DecodingOptions

    options = DecodingOptions(beam_size=arguments.beam_size)
    loaded = trainer.load(arguments.output_dir or _tiny_run(folder / "run"))
    if arguments.lines:
        lines = list(dict.fromkeys(arguments.lines.read_text(encoding="utf-8").split("\n")))
    else:
        lines = [*example_lines(loaded.problem), ""]
    decoded = loaded.decode(lines, beam_size=options.beam_size)
    expected = {line: (answer.text, answer.score) for line, answer in zip(lines, decoded, strict=True)}
    export(loaded, folder / NAME, options)
    flags = [f"--seconds={arguments.seconds + 120}"]
    if arguments.batching_parameters_file:
        flags.append(f"--batching_parameters_file={arguments.batching_parameters_file}")
    with tfs_process.running(folder / NAME, NAME, *flags) as server:
        result = ask(server, expected, arguments.clients, arguments.requests, arguments.seconds)
    return {
        "problem": loaded.problem.name,
        "beam_size": options.beam_size,
        "lines": len(lines),
        "batching": bool(arguments.batching_parameters_file),
        **result,
    }


def ask(server, expected, clients, requests, seconds):
    """Returns counts and latencies of many clients.

    Args:
        server: `tfs_process.Running`.
        expected: {line: (text, score)}.
        clients: threads, each of which waits for its answer before it asks again.
        requests: of all of them.
        seconds: no request starts after this time.
    """
    import numpy as np

    from tests.benchmarks.same_answers import SameAnswers
    from tests.trainer.tfs_client import Grpc, Rest

    rest, grpc = Rest(server.rest_port, NAME), Grpc(server.grpc_port, NAME)
    numbers, lock, lines = itertools.count(), threading.Lock(), list(expected)
    same, found = SameAnswers(), {"rest": [], "grpc": [], "errors": 0}
    start = time.monotonic()

    def work(_):
        while True:
            with lock:
                number = next(numbers)
            if number >= requests or time.monotonic() - start > seconds:
                return
            chosen = [lines[(number * 3 + i) % len(lines)] for i in range(1 + number % 4)]
            kind = ("rest", "grpc")[number % 2]
            began = time.perf_counter()
            try:
                answers = _ask_rest(rest, chosen) if kind == "rest" else _ask_grpc(grpc, chosen)
            except Exception as error:
                print(f"request {number}: {error}", file=sys.stderr)
                answers = None
            took = time.perf_counter() - began
            with lock:
                found[kind].append(took)
                found["errors"] += answers is None
                for line, answer in zip(chosen, answers or [], strict=answers is not None):
                    same.add(line, answer, expected[line])

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(clients)))
    took = time.monotonic() - start
    grpc.close()
    latencies = {"all": found["rest"] + found["grpc"], "rest": found["rest"], "grpc": found["grpc"]}
    return {
        "clients": clients,
        "requests": len(latencies["all"]),
        "errors": found["errors"],
        "answers": same.summary(),
        "requests_per_second": round(len(latencies["all"]) / took, 1),
        **{
            f"{kind}_p{percent}_ms": round(1000 * float(np.percentile(values, percent)), 1)
            for kind, values in latencies.items()
            for percent in (50, 99)
        },
    }


def _ask_rest(client, lines):
    return [(row["outputs"], row["scores"]) for row in client.predict(lines)]


def _ask_grpc(client, lines):
    found = client.predict(lines)[1]
    return [(text.decode(), float(score)) for text, score in zip(found["outputs"], found["scores"], strict=True)]


def _tiny_run(path):
    from tests.trainer.saved_runs import algorithmic_run

    algorithmic_run(path, recurrence_type="act", act_max_steps=3)
    return path


if __name__ == "__main__":
    main()
