"""The README's serving section: its batching file, its clients and its curl lines work as they stand there."""

import pathlib
import re
import shutil
import subprocess

import pytest

import trainer
from tests.trainer import tfs_process
from tests.trainer.saved_runs import babi_run
from trainer.export import export

ROOT = pathlib.Path(__file__).parents[2]
NAME = "ut"
LINES = ["Mary went to the kitchen. Where is Mary?", ""]

pytestmark = pytest.mark.slow  # a server with a TensorFlow of its own

if tfs_process.missing():
    pytest.skip(tfs_process.missing(), allow_module_level=True)

from tests.trainer.tfs_client import Rest  # noqa: E402


def block(marker):
    """Returns the README's block of code whose first line is the marker."""
    blocks = re.findall(r"```\w*\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    return next(code for code in blocks if code.startswith(f"{marker}\n"))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """(server, answers of `decode`) for an untrained run on bAbI, with the README's batching file."""
    path = tmp_path_factory.mktemp("readme")
    babi_run(path / "run")
    run = trainer.load(path / "run")
    export(run, path / NAME)
    (path / "batching.txt").write_text(block("# batching.txt"))
    with tfs_process.running(path / NAME, NAME, f"--batching_parameters_file={path / 'batching.txt'}") as server:
        yield server, run.decode(LINES)


def here(code, server):
    """Returns code with the ports of the README replaced by those of the server."""
    assert re.search("localhost:850[01]", code)
    ports = {"localhost:8501": server.rest_port, "localhost:8500": server.grpc_port}
    for given, port in ports.items():
        code = code.replace(given, f"127.0.0.1:{port}")
    return code


@pytest.mark.parametrize("client", ["# client_rest.py", "# client_grpc.py"])
def test_client_prints_the_answers_of_decode(served, capsys, client):
    server, expected = served
    exec(compile(here(block(client), server), client, "exec"), {"__name__": "client"})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(LINES)
    for line, answer in zip(printed, expected, strict=True):
        text, score = re.match(r"('.*?') (\S+) ", line).groups()
        assert text == repr(answer.text)
        assert float(score) == pytest.approx(answer.score, abs=1e-5)
    assert expected[0].text


def test_rest_client_says_what_is_wrong(served):
    code = here(block("# client_rest.py"), served[0]).replace('"Mary went to the kitchen. Where is Mary?"', "12")
    with pytest.raises(SystemExit, match="400: .*is not of expected type: string"):
        exec(compile(code, "client_rest.py", "exec"), {"__name__": "client"})


def test_more_lines_than_a_batch_holds_are_refused(served):
    status, answer = Rest(served[0].rest_port, NAME).call(":predict", {"instances": [""] * 33})
    assert status == 400
    assert "Task size 33 is larger than maximum input batch size 32" in answer["error"]


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
def test_curl_lines_give_status_and_answer(served):
    server, expected = served
    done = subprocess.run(["bash", "-c", here(block("# by curl"), server)], capture_output=True, text=True, check=True)
    assert '"state": "AVAILABLE"' in done.stdout
    assert f'"outputs": "{expected[0].text}"' in done.stdout
