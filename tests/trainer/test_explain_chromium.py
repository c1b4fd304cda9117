"""The page of a real run in a real browser: its script runs, shows what it should, and answers to mouse and keys."""

import html
import json
import re

import numpy as np
import pytest

import trainer
from tests.trainer import chromium
from tests.trainer.made_explanations import made
from tests.trainer.saved_runs import algorithmic_run
from trainer.explain import explain
from trainer.explain_page import page

pytestmark = pytest.mark.skipif(bool(chromium.missing()), reason=chromium.missing())

STEPS, HEADS = 4, 2
# What the tests see of the page after they did something to it.
SEEN = """
const seen = {};
const look = (name) => { seen[name] = {
    step: element("choose-step").value, head: element("choose-head").value, map: element("choose-map").value,
    readout: element("readout").textContent, top: element("top").innerText, detail: element("detail-title").textContent,
    chosen: [...document.querySelectorAll(".token.chosen bdi")].map((one) => one.textContent),
    pressed: [...document.querySelectorAll("#overview button[aria-pressed=true]")].map((one) => one.ariaLabel),
    struck: document.querySelectorAll("#map-rows .halted").length,
}; };
const send = (where, kind, values) => where.dispatchEvent(new (values && values.key ? KeyboardEvent : Event)(kind,
    {bubbles: true, ...values}));
const finish = () => { const out = document.createElement("pre"); out.id = "seen";
    out.textContent = JSON.stringify(seen); document.body.append(out); };
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """(page of a run of strings with halting, a folder)."""
    folder = tmp_path_factory.mktemp("explain")
    algorithmic_run(folder / "run", recurrence_type="act", act_type="accumulated", act_max_steps=STEPS)
    loaded = trainer.load(folder / "run", "last")
    return explain(loaded, "2718", "8172", folder / "page.html"), folder


def after(written, script, milliseconds=1000):
    """Returns what `look` saw in {name: ...} after the script ran at the end of the page."""
    path, folder = written
    dom = chromium.dump_dom(chromium.with_script(path, SEEN + script, folder / "changed.html"), folder, milliseconds)
    assert 'id="error" role="alert" hidden' in dom
    return json.loads(html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', dom, re.DOTALL)[1]))


def test_the_script_fills_the_page_without_an_error(written):
    path, folder = written
    dom = chromium.dump_dom(path, folder)
    assert 'data-ready="true"' in dom
    assert '<p id="error" role="alert" hidden=""></p>' in dom
    steps = int(re.search(r'id="step-label">Step 1 of (\d)', dom)[1])
    assert len(re.findall(r'<button[^>]*aria-label="step \d, (?:mean of all heads|head \d)"', dom)) == steps * (
        HEADS + 1
    )
    chart = re.search(r'<div id="detail-chart">(.*?)</div>', dom, re.DOTALL)[1]
    assert "<polyline" in chart and "halting probability over steps" in chart
    assert len(re.findall("<li>", re.search(r'<ol id="top">(.*?)</ol>', dom, re.DOTALL)[1])) == 5


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (480, True)])
def test_the_picture_is_not_blank(written, width, dark):
    path, folder = written
    picture = chromium.screenshot(path, folder, width=width, dark=dark)
    assert picture.shape == (2000, width, 3)
    ground = np.median(picture.reshape(-1, 3), axis=0)
    assert (ground.max() < 0.2) if dark else (ground.min() > 0.8)
    drawn = np.abs(picture - ground).max(-1) > 0.1
    assert 0.02 < drawn.mean() < 0.9
    assert not drawn[:, -2:].any(), "nothing is wider than the page"


@pytest.mark.slow
def test_controls_choose_map_step_and_head(written):
    seen = after(
        written,
        """
        look("start");
        element("choose-map").value = "1"; send(element("choose-map"), "change");
        element("choose-step").value = "2"; send(element("choose-step"), "input");
        element("choose-head").value = "2"; send(element("choose-head"), "change");
        look("controls");
        pictures[0].button.click();
        look("overview");
        finish();
        """,
    )
    assert seen["start"]["pressed"] == ["step 1, mean of all heads"]
    assert (seen["controls"]["map"], seen["controls"]["pressed"]) == ("1", ["step 2, head 2"])
    assert (seen["overview"]["step"], seen["overview"]["head"]) == ("1", "0")


@pytest.mark.slow
def test_tokens_and_cells_are_chosen_by_mouse_and_by_keys(written):
    seen = after(
        written,
        """
        chips.encoder[2].dispatchEvent(new PointerEvent("pointerenter"));
        look("hover");
        chips.encoder[2].dispatchEvent(new PointerEvent("pointerleave"));
        look("left");
        chips.encoder[0].focus();
        send(chips.encoder[0], "keydown", {key: "ArrowRight"});
        look("focus");
        send(element("map-cells"), "keydown", {key: "ArrowDown"});
        look("cell");
        const box = element("map-cells").getBoundingClientRect();
        element("map-cells").dispatchEvent(new PointerEvent("pointermove",
            {clientX: box.right - 2, clientY: box.top + 2}));
        look("pointed");
        finish();
        """,
    )
    assert seen["hover"]["detail"] == "1, input token 3" and seen["hover"]["chosen"] == ["1"]
    assert seen["hover"]["top"].count("\n") and seen["left"]["detail"] == "2, input token 1"
    assert seen["focus"]["detail"] == "7, input token 2"
    assert re.match(r"3: 1 looks at 2: 7 with 0\.\d{3}\.", seen["cell"]["readout"])
    assert re.match(r"1: 2 looks at 5: <end> with 0\.\d{3}\.", seen["pointed"]["readout"])


@pytest.mark.slow
def test_play_goes_through_the_steps_and_strikes_out_what_has_halted(written):
    seen = after(
        written,
        'look("start"); element("play").click(); setTimeout(() => { look("end"); finish(); }, 8000);',
        milliseconds=10000,
    )
    assert seen["start"]["step"] == "1" and seen["start"]["struck"] == 0
    assert int(seen["end"]["step"]) > 1
    assert seen["end"]["pressed"] == [f"step {seen['end']['step']}, mean of all heads"]


@pytest.mark.slow
def test_an_error_of_the_script_is_seen(written):
    path, folder = written
    broken = chromium.with_script(path, "throw new Error('boom');", folder / "broken.html")
    dom = chromium.dump_dom(broken, folder)
    assert re.search(r'<p id="error" role="alert">[^<]*boom', dom)


@pytest.mark.parametrize(
    ("inputs", "targets", "changes"),
    [
        (["</script><script>fail(1)</script>", "\u05e9\u05dc\u05d5\u05dd", "a\u2028\"'"], ["<b>"], {"blocks": 2}),
        pytest.param(["where", "is"], None, {"halts": False}, marks=pytest.mark.slow),
        pytest.param(None, ["once", "upon", "a"], {}, marks=pytest.mark.slow),
        pytest.param(["a"], ["b"], {"recurrent": False}, marks=pytest.mark.slow),
    ],
    ids=["hostile", "class", "language model", "layers"],
)
def test_every_kind_of_model_and_text_is_shown(tmp_path, inputs, targets, changes):
    path = tmp_path / "page.html"
    path.write_text(page(made(inputs, targets, **changes)), encoding="utf-8")
    dom = chromium.dump_dom(path, tmp_path)
    assert 'data-ready="true"' in dom and '<p id="error" role="alert" hidden=""></p>' in dom
    unit = "Layer" if changes.get("recurrent") is False else "Step"
    assert f'id="step-label">{unit} 1 of 3<' in dom


@pytest.mark.slow
def test_a_map_that_was_too_large_says_so(tmp_path):
    explanation = made(["a"], ["b"])
    path = tmp_path / "page.html"
    left_out = [one._replace(weights=None) for one in explanation.attention]
    path.write_text(page(explanation._replace(attention=left_out)), encoding="utf-8")
    dom = chromium.dump_dom(path, tmp_path)
    assert "more weights than a page can hold" in dom and '<p id="error" role="alert" hidden=""></p>' in dom
