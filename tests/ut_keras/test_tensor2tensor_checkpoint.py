"""Where a checkpoint of tensor2tensor's is, and what is read of it."""

import numpy as np
import pytest

from tests.trainer import t2t_files
from ut_keras.errors import UserError
from ut_keras.tensor2tensor import read_checkpoint
from ut_keras.tensor2tensor_checkpoint import T2tCheckpoint, find_checkpoint, join_shards

TABLE = "universal_transformer/symbol_modality_5_2/shared/weights"


def save(path, **others):
    path.mkdir(parents=True, exist_ok=True)
    table = {f"{TABLE}_{index}": np.full([2 - index, 2], index, np.float32) for index in range(2)}
    return t2t_files.save(path / "model.ckpt-12", {**table, **others})


@pytest.mark.parametrize("ending", ["", ".index", ".data-00000-of-00001", ".meta"])
def test_any_of_its_files_names_a_checkpoint(tmp_path, ending):
    save(tmp_path)
    assert find_checkpoint(f"{tmp_path}/model.ckpt-12{ending}") == tmp_path / "model.ckpt-12"


def test_of_a_directory_that_was_moved_the_name_in_its_list_counts(tmp_path):
    for number in (8, 12, 100):
        (tmp_path / f"model.ckpt-{number}.index").write_text("")
    assert find_checkpoint(tmp_path).name == "model.ckpt-100"
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "/home/they/t2t_train/model.ckpt-12"\n')
    assert find_checkpoint(tmp_path) == tmp_path / "model.ckpt-12"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "holds no checkpoint of tensor2tensor's: no file checkpoint, and no"),
        (["checkpoint"], "there is no model.ckpt-9.index; name a directory, or a file as"),
    ],
)
def test_without_one_there_is_one_line(tmp_path, files, message):
    for file in files:
        (tmp_path / file).write_text('model_checkpoint_path: "model.ckpt-9"\n')
    with pytest.raises(UserError, match=message) as error:
        find_checkpoint(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("directory", ["plain", "lr[1]", "back\\slash"])
def test_a_directory_may_be_called_as_it_likes(tmp_path, directory):
    save(tmp_path / directory)
    weights = join_shards(read_checkpoint(tmp_path / directory))
    np.testing.assert_array_equal(weights[TABLE], [[0, 0], [0, 0], [1, 1]])


def test_model_and_step(tmp_path):
    save(tmp_path, global_step=np.int64(3), **{"training/beta1_power": np.float32(0.9)})
    checkpoint = T2tCheckpoint(find_checkpoint(tmp_path))
    assert (checkpoint.model, checkpoint.global_step, checkpoint.kinds()) == ("universal_transformer", 3, [])


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["lstm_seq2seq/x"], "holds lstm_seq2seq"),
        (["transformer/x", "universal_transformer/x"], "transformer, universal"),
    ],
)
def test_what_is_no_model_of_ours_is_named(tmp_path, names, found):
    t2t_files.save(tmp_path / "model.ckpt-1", {name: np.zeros([2], np.float32) for name in names})
    with pytest.raises(UserError, match=found) as error:
        T2tCheckpoint(tmp_path / "model.ckpt-1")
    assert "not the variables of one model: universal_transformer, " in str(error.value)


def cut_off(path):
    path.write_bytes(path.read_bytes()[:20])


def changed_inside(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 255
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [cut_off, changed_inside, lambda path: path.unlink()])
def test_a_damaged_file_is_one_line(tmp_path, damage):
    save(tmp_path, global_step=np.int64(3))
    damage(tmp_path / "model.ckpt-12.data-00000-of-00001")
    with pytest.raises(UserError, match="is damaged: .* cannot be read") as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value)


def test_a_step_below_zero_is_refused(tmp_path):
    save(tmp_path, global_step=np.int64(-3))
    with pytest.raises(UserError, match="is damaged: its global_step is -3"):
        read_checkpoint(tmp_path)


def test_weights_that_are_not_finite_are_refused(tmp_path):
    save(tmp_path, **{"universal_transformer/body/x": np.array([1, np.nan], np.float32)})
    with pytest.raises(UserError, match="universal_transformer/body/x is not finite"):
        read_checkpoint(tmp_path)
