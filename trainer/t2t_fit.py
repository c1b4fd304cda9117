"""Whether a problem here is one for a checkpoint of tensor2tensor's: variables' names say. Standard library only."""

from ut_keras.errors import UserError


def refuse_other_kind(checkpoint, problem):
    """UserError where the problem has classes and the checkpoint's model gives sequences, or the other way round."""
    encoder = checkpoint.model.endswith("_encoder")
    if encoder != (problem.target == "class"):
        raise UserError(
            f"{checkpoint.path} is of {checkpoint.model}, which gives "
            f"{'one class or token for' if encoder else 'a sequence from'} its inputs; {problem.name} has "
            f"{'one class per example' if problem.target == 'class' else 'sequences'}"
        )


def refuse_misfit(checkpoint, weights, problem):
    """UserError where a problem with its vocabularies is none for a model's weights: inputs, sizes, form of inputs."""
    features, encoder = problem.features, checkpoint.model.endswith("_encoder")
    reads = any(name.startswith(f"{checkpoint.model}/body/encoder/") for name in weights)
    if reads != bool(features.input_vocabulary_size):
        has = "reads inputs, and {} has none" if reads else "is a language model, and {} has inputs"
        raise UserError(f"{checkpoint.path} {has.format(problem.name)}")
    if encoder and (features.pointer or features.words_per_sentence):
        kind = "points at a word of its inputs" if features.pointer else "reads sentences of words"
        raise UserError(f"{problem.name} {kind} here: no model of tensor2tensor's does; take a problem of lines")
    classes = features.target_vocabulary_size - 2 if encoder else None
    sizes = {"symbol": {features.input_vocabulary_size, *([] if encoder else [features.target_vocabulary_size])}}
    sizes["class_label"] = {classes, features.target_vocabulary_size} if encoder else set()
    for name in weights:
        kind, found, size = name.split("/")[1].partition("_modality_")
        size = int(size.split("_")[0]) if found else None
        if found and size not in sizes.get(kind, ()):
            ours = " and ".join(str(one) for one in sorted(one for one in sizes.get(kind, ()) if one)) or "none"
            what = "classes" if kind == "class_label" else "ids"
            brought = kind != "class_label" and "vocabulary_file" in problem.args
            way_out = "; --vocabulary=FILE names tensor2tensor's own" if brought else ""
            raise UserError(
                f"{checkpoint.path} was trained with {size:,} {what} ({name.rpartition('/')[0]}), and {problem.name} "
                f"has {ours}{way_out}"
            )


def as_in(weights, hparams):
    """Returns `hparams` with what the variables say themselves: which tables are shared, whether there are spaces."""
    tables = {name.split("/")[2] for name in weights if "/symbol_modality_" in name}
    return hparams.override(
        {
            "shared_embedding_and_softmax_weights": "shared" in tables,
            "use_target_space_embedding": any("/target_space_embedding/" in name for name in weights),
        }
    )
