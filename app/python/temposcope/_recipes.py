"""Recipes by name, as the commands of temposcope know them: the ops' library has the only table."""

import torch

from ._library import load_ops


def recipes() -> dict[str, str]:
    """Every preset with a line on what it does.

    >>> temposcope.recipes()["tempo-packed"]
    'tempo with masks of one bit'
    """
    load_ops()
    return dict(torch.ops.tempo.recipe_presets())


def switches_of(recipe: str) -> dict[str, str]:
    """All switches of a recipe: {"gelu": "in_place", "layer_norm": "from_output", ...}.

    `recipe` is a preset, or switches on top of `original` or of a preset that stands first:
    "tempo", "gelu=in_place,masks=bit", "tempo,masks=bit". Also "chunked-loss", or loss=chunked
    beside others, which only programs have. Raises ValueError with a sentence that
    names the choices.
    """
    load_ops()
    return dict(torch.ops.tempo.recipe_switches(recipe))
