"""The program: trains, evaluates, decodes and exports what `problems` and `ut_keras` define.

    import trainer
    trainer.main(["--problem=babi_qa_sentence_task1_1k", "--output_dir=runs/task1"])     # returns an exit code
    trainer.load("runs/task1").generate(["Mary went to the kitchen. Where is Mary?"])

Nothing is imported until it is used: `import trainer` costs milliseconds.
"""

import importlib

_EXPORTS = {
    "main": "trainer.cli",
    "load": "trainer.loaded",
    "RunDir": "trainer.run_dir",
}

__all__ = list(_EXPORTS)


def __getattr__(name):
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'trainer' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
