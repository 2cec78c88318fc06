"""Finds the brain that a name means: `module:attribute`, as `flask --app` and `celery -A` do."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType

from bigbrain.brain import Brain
from bigbrain.errors import BrainError, WiringError
from bigbrain.settings import DEMO


def load(app: str = "") -> Brain:
    """Give the brain named `app`, imported with the current directory on the path.

    app: `module:attribute`, attribute `brain` if left out; empty: the built-in demo.
    Raises `WiringError` when there is no such module, it fails while it is imported, or it has no such brain;
    a `BrainError` that the module itself raises passes as it is.
    """
    name, _, attribute = (app or DEMO).partition(":")
    if name.endswith(".py") or "/" in name:
        raise WiringError(
            f"`{name}` is a file; name the module instead, like `{Path(name).stem}:{attribute or 'brain'}`"
        )
    return _brain(_module(name), attribute or "brain")


def _module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except BrainError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        raise WiringError(
            f"there is no module `{error.name}`, neither in `{here}` nor among the installed packages; "
            "name a brain as `module:attribute`"
        ) from error
    # A module is somebody else's program: whatever it raises means that it cannot be loaded.
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> WiringError:
    if isinstance(error, SyntaxError):
        place = f"{error.filename}, line {error.lineno}"
        return WiringError(f"module `{name}` fails while it is imported: {error.msg} ({place})")
    frame = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {error}"
    return WiringError(f"module `{name}` fails while it is imported: {what} ({frame.filename}, line {frame.lineno})")


def _brain(module: ModuleType, attribute: str) -> Brain:
    found = getattr(module, attribute, None)
    if isinstance(found, Brain):
        return found
    brains = [f"`{module.__name__}:{name}`" for name, value in vars(module).items() if isinstance(value, Brain)]
    instead = f"it has {', '.join(brains)}" if brains else "it has no brain at all; write `brain = Brain(…)` in it"
    if found is None:
        raise WiringError(f"module `{module.__name__}` has no `{attribute}`; {instead}")
    raise WiringError(f"`{module.__name__}:{attribute}` is a {type(found).__name__}, not a Brain; {instead}")
