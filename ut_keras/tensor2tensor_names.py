"""The names of tensor2tensor's variables and what of our models they stand for.

A body's variables stand under `<model>/body/<side>/universal_transformer_<recurrence type>/`, and T2T numbers what it
made there without a name: the norms of a type are `layer_prepostprocess`, `layer_prepostprocess_1`, ...
"""

_GATES_SCOPE = {"gru": "gru/", "lstm": "lstm/", "rnn": "rnn/"}


def named_variables(model, hparams):
    """Returns {T2T variable name: our variable} of a whole model; sharded tables under `.../weights`."""
    scope = hparams.model
    names = {}
    for side in ("encoder", "decoder"):
        layer = getattr(model, side, None)
        if layer is None:
            continue
        base = f"{scope}/body/{side}"
        if layer.body.final_norm is not None:
            names |= _norm_variables(layer.body.final_norm, base)
        if scope == "transformer":
            for block in layer.body.blocks:
                names |= _block_variables(block, f"{base}/{block.name}")
        else:
            inner = f"{base}/universal_transformer_{hparams.recurrence_type}"
            names |= _recurrence_variables(layer.body, inner, hparams)
        if getattr(layer, "_spaces", None) is not None:
            names[f"{scope}/body/target_space_embedding/kernel"] = layer._spaces
    return names | _embedding_variables(model, f"{scope}/symbol_modality")


def _recurrence_variables(body, base, hparams):
    core, names = getattr(body, "recurrence", body), {}
    for group in ("before", "after"):
        stack = getattr(body, group, None)
        for index, block in enumerate(stack.blocks if stack is not None else []):
            names |= _block_variables(block, f"{base}/{group}_ut_layer_{index}")
    timing = core.timing
    if timing._table is not None:
        names[f"{base}/layer_embedding"] = timing._table
    if timing._projection is not None:
        # The second dense layer without a name, where attention over depth has the first.
        names[f"{base}/dense{'_1' if hparams.recurrence_type == 'dwa' else ''}/kernel"] = timing._projection
    if core.sru is not None:
        for index, (kernel, bias) in enumerate(zip(core.sru.kernels, core.sru.biases, strict=True)):
            names |= {f"{base}/sru/kernel_{index}/kernel": kernel, f"{base}/sru/kernel_{index}/bias": bias}
    if core.halting is not None and core.halting._kernel is not None:
        unit = f"{base}/sigmoid_activation_for_pondering/dense"
        names |= {f"{unit}/kernel": core.halting._kernel, f"{unit}/bias": core.halting._bias}
    # T2T's recurrent cells have one attention unit, outside of any layer's scope.
    alone = hparams.recurrence_type in _GATES_SCOPE and core.num_blocks == 1
    for block in core.blocks:
        names |= _block_variables(block, base if alone else f"{base}/{block.name}")
    return names | _type_variables(core.type, base, hparams)


def _type_variables(kind, base, hparams):
    if hparams.recurrence_type == "dwa":
        names = {f"{base}/dense/kernel": kind._kernel, f"{base}/dense/bias": kind._bias}
        return names if kind._table is None else {**names, f"{base}/depth_embedding": kind._table}
    names = {}
    for index, norm in enumerate(getattr(kind, "norms", [])):
        names |= _norm_variables(norm, base, f"prepostprocess_{index}" if index else "prepostprocess")
    scope = f"{base}/{_GATES_SCOPE.get(hparams.recurrence_type, '')}"
    for gates in kind.all_gates():
        for gate in gates.biases:
            layers = gates.variables_of(gate)
            for number, (kernel, bias) in enumerate(layers, 1):
                name = f"{scope}{gate}" + (f"_conv{number}" if len(layers) > 1 else "")
                names |= {f"{name}/kernel": kernel, f"{name}/bias": bias}
    return names


def _block_variables(block, base):
    names = {}
    for layer, norm in zip(block.sublayers, block.norms, strict=True):
        place = "postprocess" if block.norm == "post" else "prepostprocess"
        names |= _norm_variables(norm, f"{base}/{layer.name}", place)
    for attention in block.sublayers:
        if attention is block.ffn:
            continue
        heads = f"{base}/{attention.name}/multihead_attention"
        names |= {f"{heads}/{part}/kernel": getattr(attention, f"_{part}") for part in ("q", "k", "v")}
        names[f"{heads}/output_transform/kernel"] = attention._output_transform
        if attention.max_relative_position:
            relative = f"{heads}/dot_product_attention_relative/relative_positions"
            names[f"{relative}_keys/embeddings"] = attention._relative_keys
            names[f"{relative}_values/embeddings"] = attention._relative_values
    ffn = block.ffn
    if ffn is None:
        return names
    separable = ffn.kind == "sepconv"
    for index in (1, 2):
        part = f"{base}/ffn/" + (f"sepconv_relu_sepconv/conv{index}_single" if separable else f"conv{index}")
        names[f"{part}/{'pointwise_kernel' if separable else 'kernel'}"] = getattr(ffn, f"_kernel{index}")
        names[f"{part}/bias"] = getattr(ffn, f"_bias{index}")
        if separable:
            names[f"{part}/depthwise_kernel"] = ffn._depthwise[index - 1]
    return names


def _norm_variables(norm, base, place="prepostprocess"):
    base = f"{base}/layer_{place}/layer_norm/layer_norm"
    return {f"{base}_scale": norm.scale, f"{base}_bias": norm.bias}


def _embedding_variables(model, modality):
    inputs = getattr(model, "input_embedding", None) or model.embedding
    targets = getattr(model, "target_embedding", None) or inputs
    first = f"{modality}_{inputs.vocabulary_size}_{inputs.hidden_size}"
    if model.softmax is inputs:
        return {f"{first}/shared/weights": inputs.table}
    second = f"{modality}_{targets.vocabulary_size}_{targets.hidden_size}"
    names = {f"{second}/softmax/weights": model.softmax.table}
    if targets is not inputs:
        names[f"{second}/target_emb/weights"] = targets.table
    side = "input_emb" if getattr(model, "encoder", None) is not None else "target_emb"
    return {**names, f"{first}/{side}/weights": inputs.table}
