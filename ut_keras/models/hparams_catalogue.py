"""All named hyperparameter sets: importing this registers them. Standard library only."""

from ut_keras.models import (  # noqa: F401  (each registers its sets)
    adaptive_configs,
    configs,
    cpu_configs,
    paper_configs,
    recurrence_configs,
    transformer_configs,
)
