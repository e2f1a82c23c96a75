"""How this program was started, so that it can be started again: its command, its folder, PATH and
the variables that change what memory it takes. Never a secret: each is left out of the command."""

import os
import re
import sys
from collections.abc import Mapping

HIDDEN = "…"  # stands in a command where a secret was
# Among the variables: what `temposcope run` was told, as JSON.
RUN = "TEMPOSCOPE_RUN"

_VARIABLES = {
    "CUBLAS_WORKSPACE_CONFIG",
    "CUBLASLT_WORKSPACE_SIZE",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "HF_DATASETS_OFFLINE",
    "HF_HUB_OFFLINE",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "PATH",  # finds the python3 of the command, and compilers
    "PYTHONPATH",
    "TOKENIZERS_PARALLELISM",
    "TRANSFORMERS_OFFLINE",
}
_PATHS = {"PATH", "PYTHONPATH"}  # a folder may have the number of a commit in its name
_OF_LAUNCHERS = {"LOCAL_RANK", "LOCAL_WORLD_SIZE", "RANK", "WORLD_SIZE"}
# Settings of torch and NCCL: allocators, cuDNN, buffers, compilers.
_PREFIXES = ("PYTORCH_", "TORCH_", "TORCHDYNAMO_", "TORCHINDUCTOR_", "NCCL_")
_SECRETS_OF_VARIABLES = ("TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH")

# The last word of an option's or a variable's name: --hf-token, WANDB_API_KEY; not --max-tokens,
# --tokenizer, --key-dim.
_SECRET_NAME = (
    r"(?:[\w.+-]*[-_.+])?"
    r"(?:token|key|apikey|secret|password|passwd|passphrase|pwd|pass|pat|credentials?|auth|cookie)"
)
_OPTION = re.compile(rf"--?{_SECRET_NAME}", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?\d{1,9}(?:\.\d*)?")  # --pad-token 0
_ASSIGNED = re.compile(
    rf"(?<![\w.+-])((?:--?{_SECRET_NAME}[= ]|{_SECRET_NAME}=)['\"]?)([^\s'\"]+)", re.IGNORECASE
)
# What looks like one by itself: of Hugging Face, OpenAI and others, GitHub, AWS; 40 hexadecimal
# digits are a key of Weights & Biases; and the password of an address.
_SECRET = re.compile(
    r"\b(?:hf_\w{10,}|sk-[\w-]{10,}|gh[opsur]_\w{10,}|github_pat_\w{10,}|AKIA[0-9A-Z]{16}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*|xox[a-z]-[\w-]{10,}|glpat-[\w-]{10,}|npm_\w{10,}"
    r"|AIza[\w-]{30,}|[0-9a-f]{40})\b"
    r"|(?i:(?<=bearer )|(?<=basic ))[^\s'\"]+"
    r"|-----BEGIN [\s\S]*"
    r"|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"
)


def launch(command: list[str] | None = None, folder: str = "", is_rank: bool = False) -> dict:
    """The fields `command`, `folder` and `environment` of a run; without a command, those of this
    process. `is_rank`: a launcher that the command starts has told this process its rank."""
    variables = environment(os.environ)
    return {
        "command": without_secrets(command or sys.orig_argv),
        "folder": folder or _folder(),
        "environment": {n: v for n, v in variables.items() if not (is_rank and n in _OF_LAUNCHERS)},
    }


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def has_secret(command: list[str]) -> bool:
    """Whether one was left out of a command, which can then not be run again."""
    return any(HIDDEN in word for word in command)


def without_secrets(command: list[str]) -> list[str]:
    words: list[str] = []
    is_value = False  # of an option that takes a secret
    for word in command:
        if is_value and not word.startswith("-") and not _NUMBER.fullmatch(word):
            words.append(HIDDEN)
        else:
            words.append(_SECRET.sub(HIDDEN, _ASSIGNED.sub(_hide, word)))
        is_value = _OPTION.fullmatch(word) is not None
    return words


def _hide(assigned: re.Match) -> str:
    is_number = _NUMBER.fullmatch(assigned[2])
    return assigned[0] if is_number else assigned[1] + HIDDEN


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that change memory or behaviour."""
    return {
        name: value
        for name, value in sorted(_of_user(variables).items())
        if _is_of_memory(name) and (name in _PATHS or not _SECRET.search(value))
    }


def _is_of_memory(name: str) -> bool:
    is_secret = any(part in name for part in _SECRETS_OF_VARIABLES)
    is_setting = name.startswith(_PREFIXES) and not is_secret
    return name in _VARIABLES or name in _OF_LAUNCHERS or is_setting


def _of_user(variables: Mapping[str, str]) -> dict[str, str]:
    """Without the folder that `temposcope run` puts in front of PYTHONPATH."""
    own = os.path.realpath(os.path.join(os.path.dirname(__file__), "start"))
    folders = variables.get("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join(one for one in folders if one and os.path.realpath(one) != own)
    others = {name: value for name, value in variables.items() if name != "PYTHONPATH"}
    return others | ({"PYTHONPATH": path} if path else {})
