"""Loads a SavedModel the way a model server does: TensorFlow's C++ loader, through the C API in the wheel.

`run(directory, lines)` compiles a small C program (gcc, once per process), feeds all lines as one batch of
strings to `serving_default` and returns its outputs. Nothing of Python's own loader is used.
"""

import functools
import importlib.util
import os
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np

_PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tensorflow/c/c_api.h"

/* usage: loader DIRECTORY INPUT NUMBER_OF_OUTPUTS OUTPUT... LIBRARY...
   Tensors are named operation:index. Standard input: int32 number of lines, then each as int32 size and bytes.
   Standard output, per output: int32 type, int32 rank, int64 sizes, int64 number of bytes, content (strings as
   above). */

static void check(TF_Status* status, const char* what) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s: %s\n", what, TF_Message(status));
  exit(1);
}

static TF_Output find(TF_Graph* graph, const char* tensor) {
  char name[512];
  snprintf(name, sizeof name, "%s", tensor);
  char* colon = strrchr(name, ':');
  *colon = 0;
  TF_Output output = {TF_GraphOperationByName(graph, name), atoi(colon + 1)};
  if (!output.oper) { fprintf(stderr, "no operation %s\n", name); exit(1); }
  return output;
}

static int32_t read_size(void) {
  int32_t size = 0;
  if (fread(&size, sizeof size, 1, stdin) != 1) { fprintf(stderr, "input ends early\n"); exit(1); }
  return size;
}

static void free_tensor(void* data, size_t size, void* unused) { free(data); }

int main(int argc, char** argv) {
  TF_Status* status = TF_NewStatus();
  int outputs = atoi(argv[3]);
  for (int i = 4 + outputs; i < argc; i++) { TF_LoadLibrary(argv[i], status); check(status, argv[i]); }
  const char* tags[] = {"serve"};
  TF_Graph* graph = TF_NewGraph();
  TF_Session* session =
      TF_LoadSessionFromSavedModel(TF_NewSessionOptions(), NULL, argv[1], tags, 1, graph, NULL, status);
  check(status, "load");

  int64_t lines = read_size();
  TF_TString* strings = calloc(lines ? lines : 1, sizeof(TF_TString));
  for (int64_t i = 0; i < lines; i++) {
    int32_t size = read_size();
    char* text = malloc(size + 1);
    if (fread(text, 1, size, stdin) != (size_t)size) { fprintf(stderr, "input ends early\n"); return 1; }
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], text, size);
    free(text);
  }
  TF_Tensor* fed = TF_NewTensor(TF_STRING, &lines, 1, strings, lines * sizeof(TF_TString), free_tensor, NULL);
  TF_Output input = find(graph, argv[2]);
  TF_Output* wanted = malloc(outputs * sizeof *wanted);
  TF_Tensor** found = calloc(outputs, sizeof *found);
  for (int i = 0; i < outputs; i++) wanted[i] = find(graph, argv[4 + i]);
  TF_SessionRun(session, NULL, &input, &fed, 1, wanted, found, outputs, NULL, 0, NULL, status);
  check(status, "run");

  for (int i = 0; i < outputs; i++) {
    int32_t head[2] = {TF_TensorType(found[i]), TF_NumDims(found[i])};
    fwrite(head, sizeof(int32_t), 2, stdout);
    for (int d = 0; d < head[1]; d++) {
      int64_t size = TF_Dim(found[i], d);
      fwrite(&size, sizeof size, 1, stdout);
    }
    int64_t bytes = TF_TensorByteSize(found[i]);
    fwrite(&bytes, sizeof bytes, 1, stdout);
    if (head[0] != TF_STRING) { fwrite(TF_TensorData(found[i]), 1, bytes, stdout); continue; }
    TF_TString* texts = TF_TensorData(found[i]);
    for (int64_t j = 0; j < TF_TensorElementCount(found[i]); j++) {
      int32_t size = TF_StringGetSize(&texts[j]);
      fwrite(&size, sizeof size, 1, stdout);
      fwrite(TF_StringGetDataPointer(&texts[j]), 1, size, stdout);
    }
  }
  return 0;
}
"""
_FLOAT, _STRING = 1, 7  # TF_DataType
_TOKENIZERS = ("_sentencepiece_tokenizer.so", "_wordpiece_tokenizer.so")  # a model server has all of them


def missing():
    """Returns why the loader cannot be built here, or None."""
    return None if shutil.which("gcc") else "no C compiler (gcc)"


@functools.cache
def _compiled():
    folder = tempfile.TemporaryDirectory(prefix="c_loader_")
    source, program = pathlib.Path(folder.name) / "loader.c", pathlib.Path(folder.name) / "loader"
    source.write_text(_PROGRAM)
    wheel = _folder("tensorflow")
    libraries = [f"{wheel}/libtensorflow_cc.so.2", f"{wheel}/libtensorflow_framework.so.2"]
    subprocess.run(
        ["gcc", str(source), "-o", str(program), f"-I{wheel}/include", *libraries, f"-Wl,-rpath,{wheel}"], check=True
    )
    return folder, program


def _folder(package):
    return os.path.dirname(importlib.util.find_spec(package).origin)


def run(directory, lines, text_operations=False):
    """Runs a batch of lines through an exported model.

    Args:
        directory: the version's directory, with saved_model.pb.
        lines: list of strings.
        text_operations: load tensorflow-text's tokenizer first, which the stock server has built in; without it only
            TensorFlow's own operations are there.

    Returns:
        {name of the output: numpy array, of str objects or float32}.

    Raises:
        RuntimeError: the loader refused the model or the batch; its message.
    """
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((pathlib.Path(directory) / "saved_model.pb").read_bytes())
    signature = saved.meta_graphs[0].signature_def["serving_default"]
    names = sorted(signature.outputs)
    tensors = [signature.outputs[name].name for name in names]
    folder = _folder("tensorflow_text") if text_operations else ""
    libraries = [f"{folder}/python/ops/{name}" for name in _TOKENIZERS] if text_operations else []
    command = [str(_compiled()[1]), str(directory), signature.inputs["inputs"].name, str(len(names)), *tensors]
    fed = np.int32(len(lines)).tobytes()
    for line in lines:
        text = line.encode()
        fed += np.int32(len(text)).tobytes() + text
    done = subprocess.run(
        command + libraries,
        input=fed,
        capture_output=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace").strip())
    return dict(zip(names, _parse(done.stdout, len(names)), strict=True))


def _parse(content, outputs):
    at = 0

    def take(dtype, count):
        nonlocal at
        values = np.frombuffer(content, dtype, count, at)
        at += values.nbytes
        return values

    arrays = []
    for _ in range(outputs):
        kind, rank = take(np.int32, 2)
        shape = tuple(int(size) for size in take(np.int64, rank))
        size = int(take(np.int64, 1)[0])
        if kind == _FLOAT:
            arrays.append(take(np.float32, size // 4).reshape(shape))
        elif kind == _STRING:
            texts = [take(np.uint8, int(take(np.int32, 1)[0])).tobytes().decode() for _ in range(int(np.prod(shape)))]
            arrays.append(np.array(texts, object).reshape(shape))
        else:
            raise ValueError(f"output of type {kind}")
    return arrays
