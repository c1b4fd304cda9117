"""What `explain` collects of one text, for every kind of model, and the errors of its user.

Legend: T steps, R blocks, H heads, Q queries, K keys, L positions.
"""

import numpy as np
import pytest

from tests.trainer import tiny_loaded
from trainer.explain import collect, explain
from trainer.explanation import MOST_POSITIONS
from ut_keras.errors import UserError

STORY = "Mary went to the kitchen. John took the milk. Where is Mary?"
ACT = {"recurrence_type": "act", "act_max_steps": 4}


def texts(tokens):
    return [token.text for token in tokens]


@pytest.mark.parametrize("form", ["none", "basic", "accumulated", "global", "random", "frozen"])
def test_every_halting_form_is_explained(form):
    halting = {"num_rec_steps": 4} if form == "none" else {**ACT, "act_type": form}
    loaded = tiny_loaded.reverse(**halting)
    found = collect(loaded, "314", "41")
    assert texts(found.sides["encoder"].tokens) == ["3", "1", "4", "<end>"]
    assert texts(found.sides["decoder"].tokens) == ["4", "1", "<end>"]
    assert texts(found.sides["decoder"].read) == ["<start>", "4", "1"]
    inputs, targets = np.array([[5, 3, 6, 1]]), np.array([[6, 3, 1]])
    logits, ponder = loaded.model({"inputs": inputs, "targets": targets}, return_ponder=True)
    for side, trace in ponder.items():
        shown = found.sides[side]
        np.testing.assert_array_equal(shown.ponder_times, trace.ponder_times[0])
        assert shown.limit == 4
        if form == "none":
            assert shown.probability is shown.halting_probability is shown.remainders is None
            continue
        np.testing.assert_allclose(shown.remainders, trace.remainders[0], atol=1e-6)
        np.testing.assert_allclose(shown.halting_probability, trace.halting_probability[: shown.steps, 0], atol=1e-6)
        assert shown.steps == shown.ponder_times.max()
        assert shown.probability.shape == (shown.steps, len(shown.tokens))
    probabilities = np.exp(logits[0]) / np.exp(logits[0]).sum(-1, keepdims=True)
    np.testing.assert_allclose(found.sides["decoder"].likelihood, probabilities[[0, 1, 2], targets[0]], rtol=1e-4)
    np.testing.assert_allclose(found.score, np.log(found.sides["decoder"].likelihood).sum(), rtol=1e-5)
    assert (found.chosen, found.text, found.answer) == (False, "314", "41")


def test_attention_adds_up_to_one_and_no_token_looks_ahead():
    found = collect(tiny_loaded.reverse(**ACT, num_inrecurrence_layers=2), "31", "271")
    maps = {(one.queries, one.keys): one.weights for one in found.attention}
    steps = {name: side.steps for name, side in found.sides.items()}
    assert maps["encoder", "encoder"].shape == (steps["encoder"], 2, 2, 3, 3)
    assert maps["decoder", "decoder"].shape == (steps["decoder"], 2, 2, 4, 4)
    assert maps["decoder", "encoder"].shape == (steps["decoder"], 2, 2, 4, 3)
    for weights in maps.values():
        np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
    assert np.triu(maps["decoder", "decoder"], k=1).max() == 0.0


@pytest.mark.parametrize("model", ["transformer", "transformer_encoder", "transformer_lm"])
def test_layers_of_the_plain_transformer_stand_in_the_place_of_steps(model):
    changes = {"model": model, "num_hidden_layers": 3}
    make = {"transformer": tiny_loaded.reverse, "transformer_encoder": tiny_loaded.stories}
    loaded = make.get(model, tiny_loaded.language)(**changes)
    text, target = {"transformer": ("31", "1"), "transformer_encoder": (STORY, "milk")}.get(model, ("the", "milk"))
    found = collect(loaded, text, target)
    assert not found.recurrent
    for side in found.sides.values():
        assert (side.steps, side.limit, side.ponder_times, side.halting_probability) == (3, 3, None, None)
    assert all(one.weights.shape[:3] == (3, 1, 2) for one in found.attention)
    assert dict(found.about)["depth"] == "3 different layers, no recurrence; 2 heads"


def test_tokens_of_a_story_are_its_sentences():
    found = collect(tiny_loaded.stories(), STORY)
    assert texts(found.sides["encoder"].tokens) == ["mary went to the kitchen", "john took the milk", "where is mary?"]
    assert list(found.sides) == ["encoder"]
    labels = [label for label, _ in found.classes]
    assert len(labels) == 5 and found.answer == labels[0]
    assert found.classes[0][1] == max(share for _, share in found.classes) == pytest.approx(np.exp(found.score))


@pytest.mark.parametrize("make", [tiny_loaded.stories, tiny_loaded.pointing])
def test_a_class_is_the_one_that_decode_answers(make):
    loaded = make()
    found = collect(loaded, STORY)
    assert [found.answer] == loaded.generate([STORY])
    given = collect(loaded, STORY, found.classes[1][0])
    assert (given.chosen, given.answer) == (False, found.classes[1][0])
    assert given.score == pytest.approx(np.log(found.classes[1][1]))
    assert found.score == pytest.approx(loaded.score([STORY], [found.answer])[0], abs=1e-5)


@pytest.mark.slow
def test_answer_and_score_are_those_of_decode():
    from trainer.decode import decode_lines

    loaded = tiny_loaded.reverse(**ACT)
    found = collect(loaded, "2718")
    expected = decode_lines(loaded, ["2718"])[0]
    assert (found.answer, found.chosen) == (expected.text, True)
    assert found.score == pytest.approx(expected.score, abs=1e-4)
    assert len(found.sides["decoder"].tokens) == len(expected.ids)


def test_a_language_model_shows_prompt_and_continuation_and_scores_the_latter():
    loaded = tiny_loaded.language(recurrence_type="act", act_max_steps=3)
    found = collect(loaded, "mary took", "the milk")
    side = found.sides["decoder"]
    assert texts(side.tokens) == ["mary", "took", "the", "milk", "<end>"]
    assert (side.given, side.title, list(found.sides)) == (2, "Text", ["decoder"])
    assert found.score == pytest.approx(np.log(side.likelihood[2:]).sum(), rel=1e-5)
    assert [one.title for one in found.attention] == ["text looks at text"]
    assert collect(loaded, "", "the milk").score == pytest.approx(loaded.score(["the milk"])[0], abs=1e-5)


@pytest.mark.slow  # traces a model of its own
def test_a_language_model_goes_on_as_decode_does():
    loaded = tiny_loaded.language(recurrence_type="act", act_max_steps=3)
    assert [collect(loaded, "mary took").answer] == loaded.generate(["mary took"])


def test_mixed_precision_is_explained_in_plain_numbers():
    import keras

    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    found = collect(tiny_loaded.reverse(**ACT), "314", "41")
    assert all(one.weights.dtype == np.float32 for one in found.attention)
    np.testing.assert_allclose(found.attention[0].weights.sum(-1), 1.0, atol=0.02)


def test_what_is_too_much_attention_for_a_page_is_left_out(monkeypatch):
    monkeypatch.setattr("trainer.explanation.MOST_WEIGHTS", 4 * 2 * 3 * 3 - 1)
    found = collect(tiny_loaded.reverse(num_rec_steps=4), "31", "1")
    kept = {(one.queries, one.keys): one.weights is not None for one in found.attention}
    assert kept == {("encoder", "encoder"): False, ("decoder", "decoder"): True, ("decoder", "encoder"): True}


def test_the_page_says_what_it_is_of():
    about = dict(collect(tiny_loaded.reverse(**ACT, act_type="frozen"), "3", "3").about)
    assert about["problem"] == "algorithmic_reverse_decimal40"
    assert about["model"].startswith("universal_transformer, ") and about["model"].endswith(" parameters")
    assert about["depth"] == "halting frozen, at most 4 steps; 2 heads"
    assert about["weights"] == "checkpoints/ckpt-40, training step 40"
    assert about["run"] == "runs/tiny"


def test_a_story_that_is_cut_says_so():
    found = collect(tiny_loaded.stories(), "Mary went to the kitchen. " * 80 + "Where is Mary?")
    assert len(found.sides["encoder"].tokens) == 71
    assert found.notes == ["a story of 80 statements keeps its last 70"]


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("", None, "the text is empty"),
        (" \t ", "1", "the text is empty"),
        ("3a", None, "the text: .*'a' is not one of its symbols"),
        ("3", "b", "the target: .*'b' is not one of its symbols"),
        ("3\udcff", None, "the text: '.udcff' is half of a surrogate pair, or a byte that is not UTF-8"),
        ("3", "\udcff", "the target: '.udcff' is half of a surrogate pair"),
        ("3" * MOST_POSITIONS, None, f"the text has {MOST_POSITIONS + 1} tokens; explain shows up to {MOST_POSITIONS}"),
        ("3", "1" * MOST_POSITIONS, f"the target has {MOST_POSITIONS + 1} tokens"),
    ],
)
def test_text_that_cannot_be_explained_is_refused(text, target, message):
    with pytest.raises(UserError, match=message):
        collect(tiny_loaded.reverse(), text, target)


def test_an_lstm_is_refused():
    with pytest.raises(UserError, match="lstm_seq2seq has no steps and heads"):
        collect(tiny_loaded.reverse(model="lstm_seq2seq", num_hidden_layers=1), "3")


def test_a_label_that_does_not_exist_is_refused_with_near_ones():
    with pytest.raises(UserError, match="the target: .*has no class 'kitchn'.*kitchen"):
        collect(tiny_loaded.stories(), STORY, "kitchn")


def test_weights_that_are_not_finite_are_refused():
    loaded = tiny_loaded.reverse()
    loaded.model.trainable_variables[0].assign(loaded.model.trainable_variables[0] * np.nan)
    with pytest.raises(UserError, match="not finite"):
        collect(loaded, "3", "3")


def test_the_command_prints_where_the_page_is(tmp_path, capfd):
    import trainer
    from tests.trainer.saved_runs import algorithmic_run

    algorithmic_run(tmp_path / "run", num_rec_steps=2)
    command = ["explain", f"--output_dir={tmp_path / 'run'}", "--checkpoint=last", "--text=314", "--target=413"]
    assert trainer.main([*command, f"--to={tmp_path / 'page.html'}"]) == 0
    assert capfd.readouterr().out == f"{tmp_path / 'page.html'}\n"
    assert not (tmp_path / "run" / "explain.html").exists()
    assert trainer.main(command) == 0
    assert (tmp_path / "run" / "explain.html").read_text() == (tmp_path / "page.html").read_text()


def test_the_page_is_written_where_it_is_wanted_or_into_the_run(tmp_path):
    loaded = tiny_loaded.reverse(num_rec_steps=2)
    loaded.output_dir = tmp_path
    assert explain(loaded, "3", "3") == tmp_path / "explain.html"
    page = explain(loaded, "3", "3", tmp_path / "new" / "page.html")
    assert page.read_text(encoding="utf-8") == (tmp_path / "explain.html").read_text(encoding="utf-8")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="folder: it is a directory"):
        explain(loaded, "3", "3", tmp_path / "folder")
