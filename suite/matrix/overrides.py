"""What an override of a matrix may say: a field, and a value that no library evaluates, imports or opens. Pure.

RL libraries evaluate some strings of an agent's settings as Python, and import others by name. A matrix is data, so a
string is one of ``WORDS``, whatever its field: none of them runs or names any code when it is evaluated.
"""

import re
from typing import Final

WORDS: Final = frozenset(
    {
        "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs",  # torch.compile
        "elu", "selu", "relu", "crelu", "lrelu", "leaky_relu", "tanh", "sigmoid", "softplus", "softsign", "gelu",
        "swish", "mish", "identity", "lstm", "gru",  # networks
        "adam", "adamw", "sgd", "rmsprop", "mse", "huber", "scalar", "log",  # optimisers, losses, distributions
        "adaptive", "fixed", "linear", "constant", "auto", "KLAdaptiveLR", "RunningStandardScaler",
        "newton", "cg", "euler", "implicitfast", "pyramidal", "elliptic", "nxn", "sap", "explicit",  # solvers
    }
)  # fmt: skip
LONGEST: Final = 200  # characters
_NUMBER: Final = r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,3})?"
_KEY: Final = re.compile(r"(env|agent)(\.[A-Za-z][A-Za-z0-9_]*){1,20}")  # no private names, such as __class__
_VALUE: Final = re.compile(rf"(?i:true|false|null|none)|{_NUMBER}|\[ *{_NUMBER}( *, *{_NUMBER})* *\]")


def plain_override(text: str) -> str:
    """Return the override.

    Raises:
        ValueError: it is not a plain field with a plain value.
    """
    key, _, value = text.partition("=")
    if len(text) > LONGEST or not _KEY.fullmatch(key):
        raise ValueError(
            "should be env.FIELD=VALUE or agent.FIELD=VALUE, where FIELD is names with dots between them, with "
            f"{LONGEST} characters at most"
        )
    if value not in WORDS and not _VALUE.fullmatch(value):
        raise ValueError(
            "should have a number, true, false, null or a list of numbers as its value, or one of the words "
            f"{', '.join(sorted(WORDS))}; libraries run other texts as code, so set them in the code of your task"
        )
    return text
