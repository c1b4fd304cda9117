"""The layers of the recurrent core. Import them from their modules."""

from ut_keras.backend import require_tensorflow

require_tensorflow()
