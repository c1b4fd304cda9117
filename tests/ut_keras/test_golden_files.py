"""No number of tensor2tensor's lies in tests/golden without a test that looks at it.

A test that reads one has "tensor2tensor" in its name: those are run here once more, and what they read is compared with
what there is.
"""

import importlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests import golden_files

TESTS = pathlib.Path(__file__).parents[1]
MODELS = "tests.ut_keras.test_tensor2tensor"

# Keys that no test reads: what they say, and where it is held instead.
UNREAD = {
    r"algorithmic_examples:\w+/(numpy_seed|max_length)": "how the examples were drawn, in tensor2tensor's order",
    r"presets:\w*universal_transformer\w*/num_hidden_layers": "read by the defaults of steps alone, which are compared",
}

# Kinds of keys of a model's file, and the test that compares them: all of them are parametrized over the files.
OF_A_MODEL = {
    r"(in|w)/.*|out/logits|out/(loss_xent|loss_total|act_loss)": "test_logits_and_losses",
    r"out/(encoder|decoder)/(input|step_states|pre_final_norm|output)": "test_states_of_every_step",
    r"out/(encoder|decoder)/act_steps/\w+": "test_halting_of_every_step",
    r"out/(encoder|decoder)/(ponder_times|remainders)": "test_ponder_times_and_remainders",
    r"g/.*": "test_gradient_of_every_variable",
    r"train/(lr|loss_xent|loss_total|final_w/.*)": "test_ten_adam_steps",
    r"infer/greedy/outputs": "test_greedy_outputs",
    r"infer/beam\d_a[\d.]+/(outputs|scores)": "test_beam_outputs_and_scores",
}


def test_every_file_of_a_model_is_read():
    module = importlib.import_module(MODELS)
    assert sorted(module.NAMES) == golden_files.model_names()
    assert len(module.NAMES) == 31


def test_every_kind_of_number_of_a_model_has_a_test():
    module = importlib.import_module(MODELS)
    kinds, unused = set(), set(OF_A_MODEL)
    for key in sorted(golden_files.every_key()):
        if key.startswith("models/"):
            found = [kind for kind in OF_A_MODEL if re.fullmatch(kind, key.partition(":")[2])]
            assert len(found) == 1, key
            kinds.update(found)
    assert kinds == unused
    assert all(callable(getattr(module, test)) for test in OF_A_MODEL.values())


def test_a_key_is_recorded_when_its_value_is_looked_at(monkeypatch):
    read = set()
    monkeypatch.setattr(golden_files, "_read", read)
    golden, presets = golden_files.load("metrics"), golden_files.load_json("presets")
    bleu = golden_files.load_json("bleu")["id_bleu"]
    assert "c0/logits" in golden and "labels" in golden.under("c0") and "bleu" in bleu[1]
    assert not read
    golden["c1/labels"], golden.under("c0/accuracy")["values"], bleu[1]["refs"]
    dict(presets["transformer_tiny"])
    tiny = {f"presets:transformer_tiny/{key}" for key in presets["transformer_tiny"]}
    assert read == {"metrics:c1/labels", "metrics:c0/accuracy/values", "bleu:id_bleu/1/refs", *tiny}
    assert read < golden_files.every_key()


@pytest.mark.slow
def test_every_number_beside_the_models_is_read_by_a_test(tmp_path):
    texts = {str(path): path.read_text() for path in sorted(TESTS.rglob("test_*.py"))}
    files = [path for path, text in texts.items() if "golden_files" in text and '"models/' not in text]
    record = tmp_path / "read.txt"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "", "-k", "tensor2tensor", *files]
    run = subprocess.run(command, cwd=TESTS.parent, env={**os.environ, golden_files.RECORD: str(record)}, check=False)
    assert run.returncode == 0
    keys = {key for key in golden_files.every_key() if not key.startswith("models/")}
    unread = keys - set(record.read_text().split("\n"))
    held = {key for key in unread if any(re.fullmatch(pattern, key) for pattern in UNREAD)}
    assert unread - held == set()
    assert all(any(re.fullmatch(pattern, key) for key in held) for pattern in UNREAD)
