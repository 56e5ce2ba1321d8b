"""Writes checkpoints of tiny BERTs by the programs that wrote the published ones, with what those programs compute.

Runs by the Python of `.venv-tensorflow`: `python tensorflow_bert.py FOLDER`; with `--small` it writes those of
`tests/golden/tensorflow`. Each folder in FOLDER has a checkpoint, `shapes.json` (what TensorFlow itself says is in it),
and either `outputs.npz` (what the network computes for eight sentences with padding and segments) with
`bert_config.json`, or `values.npz` (what was saved).
"""

import json
import os
import sys
import types
from pathlib import Path

os.environ |= {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
SMALL = "--small" in sys.argv
VOCABULARY, HIDDEN, LAYERS, HEADS = (20, 4, 1, 2) if SMALL else (60, 32, 2, 4)
CONFIG = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 2 * HIDDEN,
    "hidden_act": "gelu",
    "max_position_embeddings": 24,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "initializer_range": 0.02,
}
random = np.random.default_rng(0)
LENGTHS = (12, 3, 9, 12, 4, 2, 11, 7)
"""Tokens of each of the eight sentences, of which the second half is the second segment."""
MASK = np.array([[position < length for position in range(12)] for length in LENGTHS], np.int32)
SEGMENTS = np.array([[length // 2 <= position < length for position in range(12)] for length in LENGTHS], np.int32)
POSITIONS = np.array([[0, length - 1] for length in LENGTHS], np.int32)
"""Of two predictions in each sentence: there are the only tokens with the id 4."""
IDS = random.integers(5, VOCABULARY, (8, 12)).astype(np.int32) * MASK
np.put_along_axis(IDS, POSITIONS, 4, axis=1)


def weights(variables):
    """Random values that let no mistake pass: none is 0 or 1, and each matrix is far from its transpose."""
    return [random.normal(0, 0.3, variable.shape).astype(np.float32) for variable in variables]


def layer_norm(inputs, begin_norm_axis, begin_params_axis, scope):
    """What `tf.contrib.layers.layer_norm` is in TensorFlow 1, which version 2 does not have."""
    with v1.variable_scope(scope or "LayerNorm"):
        beta = v1.get_variable("beta", inputs.shape[-1:], initializer=v1.zeros_initializer())
        gamma = v1.get_variable("gamma", inputs.shape[-1:], initializer=v1.ones_initializer())
    mean, variance = tf.nn.moments(inputs, [begin_norm_axis], keepdims=True)
    return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)


def google():
    """Import the program of 2018."""
    contrib, layers = types.ModuleType("tensorflow.contrib"), types.ModuleType("tensorflow.contrib.layers")
    contrib.layers, layers.layer_norm = layers, layer_norm
    sys.modules |= {"tensorflow.contrib": contrib, "tensorflow.contrib.layers": layers}
    from bert import modeling, optimization, run_pretraining

    return modeling, optimization, run_pretraining


def write_google(folder, exact=True, partitions=0, devices=1):
    """Build and save the network of a pre-training with its optimizer, after one step."""
    modeling, optimization, run_pretraining = google()
    # The first versions of the program have the function of the paper, later ones approximate it like this.
    modeling.gelu = lambda x: tf.nn.gelu(x, approximate=not exact)
    # As in TensorFlow 1: a saver writes a file for each device that has such variables.
    scope = v1.variable_scope("", partitioner=partitioner_of(partitions), use_resource=False)
    with tf.Graph().as_default(), scope, v1.device(cpus(devices)):
        config = modeling.BertConfig.from_dict(CONFIG)
        model = modeling.BertModel(config, False, *map(tf.constant, (IDS, MASK, SEGMENTS)))
        table = tf.convert_to_tensor(model.get_embedding_table())
        targets = tf.constant(IDS[:, :2]), tf.ones([8, 2])
        heads = {
            "masked": run_pretraining.get_masked_lm_output(
                config, model.get_sequence_output(), table, tf.constant(POSITIONS), *targets
            ),
            "next": run_pretraining.get_next_sentence_output(
                config, model.get_pooled_output(), tf.zeros([8, 1], tf.int32)
            ),
        }
        loss = heads["masked"][0] + heads["next"][0]
        step = optimization.create_optimizer(loss, 1e-3, 10, 2, False) if not partitions else tf.no_op()
        outputs = {"hidden": model.get_sequence_output(), "pooled": model.get_pooled_output()}
        outputs |= {name: log_probs for name, (_, _, log_probs) in heads.items()}
        saver = v1.train.Saver(sharded=devices > 1)
        with v1.Session(config=v1.ConfigProto(device_count={"CPU": devices})) as session:
            session.run(v1.global_variables_initializer())
            for variable, value in zip(v1.trainable_variables(), weights(v1.trainable_variables()), strict=True):
                variable.load(value, session)
            session.run(step)
            saver.save(session, str(folder / "bert_model.ckpt"), write_meta_graph=False)
            np.savez(folder / "outputs.npz", **session.run(outputs))
    describe(folder / "bert_model.ckpt")


def partitioner_of(partitions):
    """Split variables along their first dimension, but for the table of tokens: TensorFlow would look up its rows in
    another order ("mod") than that in which it multiplies with them."""
    split = v1.fixed_size_partitioner(partitions)
    table = (VOCABULARY, HIDDEN)
    return (
        None
        if not partitions
        else (lambda shape, dtype: [1, 1] if tuple(shape) == table else split(shape=shape, dtype=dtype))
    )


def cpus(devices):
    """Put variables on each of several devices in turn."""
    count = iter(range(10**6))
    return lambda op: f"/cpu:{next(count) % devices}" if op.type in ("VariableV2", "VarHandleOp") else "/cpu:0"


def write_garden(folder, numbered, whole):
    """Save the Model Garden's encoder, of which older ones number their layers, or all of a pre-training."""
    from official.nlp.modeling import layers, models, networks

    size = {"vocab_size": VOCABULARY, "hidden_size": HIDDEN, "num_layers": LAYERS, "num_attention_heads": HEADS}
    size |= {"max_sequence_length": 24, "type_vocab_size": 2}
    if numbered:
        encoder = networks.BertEncoder(intermediate_size=2 * HIDDEN, dict_outputs=True, activation=tf.nn.gelu, **size)
    else:
        encoder = networks.BertEncoderV2(inner_dim=2 * HIDDEN, inner_activation=tf.nn.gelu, **size)
    given = dict(zip(("input_word_ids", "input_mask", "input_type_ids"), (IDS, MASK, SEGMENTS), strict=True))
    if not whole:
        encoder(given)
        encoder.set_weights(weights(encoder.weights))
        found = encoder(given)
        outputs = {"hidden": found["sequence_output"], "pooled": found["pooled_output"]}
        tf.train.Checkpoint(model=encoder).save(str(folder / "ckpt"))
    else:
        head = layers.ClassificationHead(inner_dim=HIDDEN, num_classes=2, name="next_sentence")
        model = models.BertPretrainerV2(encoder, mlm_activation=tf.nn.gelu, classification_heads=[head])
        given["masked_lm_positions"] = POSITIONS
        model(given)
        model.set_weights(weights(model.weights))
        found = model(given)
        outputs = {"hidden": found["sequence_output"], "next": tf.nn.log_softmax(found["next_sentence"])}
        outputs["masked"] = tf.reshape(tf.nn.log_softmax(found["mlm_logits"]), [16, -1])
        optimizer = tf.keras.optimizers.Adam()
        optimizer.build([] if SMALL else model.trainable_variables)
        tf.train.Checkpoint(model=model, optimizer=optimizer).save(str(folder / "ckpt"))
    np.savez(folder / "outputs.npz", **outputs)
    describe(folder / "ckpt-1")


def write_dtypes(folder):
    """Save a variable of each dtype, and as many as to need several blocks in the index."""
    many, values = random.normal(size=10 if SMALL else 15_000), {}
    for dtype in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool"):
        values[f"of-{dtype}"] = random.integers(-100, 100, (3, 5)).astype(dtype)
    values["bits"] = np.array([0, -0.0, np.nan, np.inf, 1e-45, -3.4e38], np.float32)
    values["scalar"] = np.array(7, np.int64)
    tensors = [tf.constant(value) for value in values.values()]
    tensors += [tf.constant(value) for value in many]
    brain = tf.cast(tf.constant(random.normal(size=(4, 3))), tf.bfloat16)
    names = [*values, *(f"many/{number:05d}" for number in range(len(many))), "of-bfloat16", "text"]
    tensors += [brain, tf.constant(["a", "bc"])]
    tf.raw_ops.SaveV2(prefix=str(folder / "x"), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)
    # numpy has no bfloat16.
    values["of-bfloat16"] = tf.bitcast(brain, tf.uint16).numpy()
    np.savez(folder / "values.npz", **values, many=many)
    describe(folder / "x")


def write_slices(folder):
    """Save parts of variables: rows, columns, both, of long ones, and all of some dimensions."""
    table, cube = random.normal(size=(130, 3)).astype(np.float32), random.normal(size=(4, 6, 5))
    parts = {
        "rows": (table, ["130 3 0,64:0,3", "130 3 64,16:0,3", "130 3 80,50:0,3"]),
        "columns": (table, ["130 3 -:0,2", "130 3 -:2,1"]),
        "tiles": (table, [f"130 3 {row}:{columns}" for row in ("0,65", "65,65") for columns in ("0,1", "1,2")]),
        "odd\x00name\xff": (cube, ["4 6 5 -:2,4:-", "4 6 5 -:0,2:-"]),
    }
    if not SMALL:
        table = random.normal(size=(9000, 1)).astype(np.float32)
        parts["long"] = (table, [f"9000 1 {start},{size}:-" for start, size in ((0, 8300), (8300, 700))])
    names = [name for name, (_, specs) in parts.items() for _ in specs]
    specs = [spec for _, some in parts.values() for spec in some]
    tensors = [tf.constant(value[where(spec)]) for value, some in parts.values() for spec in some]
    tf.raw_ops.SaveV2(
        prefix=str(folder / "x"),
        tensor_names=[name.encode() for name in names],
        shape_and_slices=specs,
        tensors=tensors,
    )
    np.savez(folder / "values.npz", table=parts["rows"][0], cube=cube, long=parts.get("long", [0])[0])


def where(spec):
    """The part of an array that TensorFlow's description of a slice names."""
    extents = (part.split(",") for part in spec.split()[-1].split(":"))
    return tuple(slice(None) if part == ["-"] else slice(int(part[0]), int(part[0]) + int(part[1])) for part in extents)


def write_old(folder):
    """Save in format V1."""
    with tf.Graph().as_default(), v1.Session() as session:
        v1.get_variable("bert/embeddings/LayerNorm/beta", [4])
        session.run(v1.global_variables_initializer())
        saver = v1.train.Saver(write_version=v1.train.SaverDef.V1)
        saver.save(session, str(folder / "bert_model.ckpt"), write_meta_graph=False)


def describe(prefix):
    """Write what TensorFlow reads of a checkpoint, and the network's configuration."""
    reader = tf.train.load_checkpoint(str(prefix))
    dtypes = reader.get_variable_to_dtype_map()
    shapes = {name: [dtypes[name].name, shape] for name, shape in reader.get_variable_to_shape_map().items()}
    if not SMALL:
        (prefix.parent / "shapes.json").write_text(json.dumps(shapes))
    if (prefix.parent / "outputs.npz").is_file():
        (prefix.parent / "bert_config.json").write_text(json.dumps(CONFIG))


WRITERS = {
    "google": write_google,
    "tanh": lambda folder: write_google(folder, exact=False),
    "partitioned": lambda folder: write_google(folder, partitions=3),
    "sharded": lambda folder: write_google(folder, devices=3),
    "numbered": lambda folder: write_garden(folder, numbered=True, whole=False),
    "encoder": lambda folder: write_garden(folder, numbered=False, whole=False),
    "numbered-whole": lambda folder: write_garden(folder, numbered=True, whole=True),
    "whole": lambda folder: write_garden(folder, numbered=False, whole=True),
    "dtypes": write_dtypes,
    "slices": write_slices,
    "old": write_old,
}

if __name__ == "__main__":
    for _name in ("google", "whole", "dtypes", "slices", "old") if SMALL else WRITERS:
        _folder = Path(sys.argv[1], _name)
        _folder.mkdir(parents=True)
        WRITERS[_name](_folder)
    np.savez(Path(sys.argv[1], "inputs.npz"), ids=IDS, mask=MASK, segments=SEGMENTS)
