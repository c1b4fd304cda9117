"""A process that trains, evaluates, decodes and exports again and again lets go of every graph."""

import pytest

import trainer
from tests import traced_graphs

SMALL = "hidden_size=16,filter_size=32,num_heads=2,num_rec_steps=2,act_max_steps=2,train_steps=2,eval_every=2"
SIZES = "train_size=99,dev_size=9,test_size=9,long_size=2"


@pytest.mark.slow  # a training, a decoding and an export of each
@pytest.mark.parametrize(
    "changes, flags",
    [
        ("", []),
        (",recurrence_type=act,act_type=frozen,add_sru=True", ["--remat=true", "--steps_per_execution=2"]),
    ],
)
def test_nothing_that_was_traced_stays(tmp_path, capsys, changes, flags):
    run, data = f"--output_dir={tmp_path / 'run'}", f"--data_dir={tmp_path / 'data'}"
    (tmp_path / "in").write_text("0 1 1\n")
    with traced_graphs.gone():
        train = ["--problem=tiny_algo", run, data, f"--problem_args={SIZES}", f"--hparams={SMALL}{changes}", *flags]
        assert trainer.main(train) == 0
        assert trainer.main(["evaluate", run, data, "--split=test", "--limit=8"]) == 0
        files = [f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'out'}"]
        assert trainer.main(["decode", run, *files]) == 0
        assert trainer.main(["export", run]) == 0
