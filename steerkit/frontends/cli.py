"""`steerkit`: the command. It chooses the model, the pattern and the tools; nothing else in the front ends does."""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.metadata
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

if TYPE_CHECKING:
    from steerkit.core.pattern import Pattern
    from steerkit.core.spec import Spec
    from steerkit.frontends.acp.setup import PlanMade, Setup

_SYSTEM = """You are a coding agent in a person's editor, working in the folder {cwd}.
Look at the files before you say anything about them. Keep answers short. Say what you changed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says; ends the process when that is done."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        stream=sys.stderr, level=options.log_level.upper(), format="%(levelname)s %(name)s: %(message)s"
    )
    _serve_acp(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("steerkit", description="Agents that can be steered while they work.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    acp = commands.add_parser(
        "acp",
        help="serve an agent to an editor over stdio (Agent Client Protocol)",
        description="Serve an agent to an editor over stdio (Agent Client Protocol). The model is the one of "
        "STEERKIT_BASE_URL, STEERKIT_API_KEY and STEERKIT_MODEL.",
    )
    acp.add_argument(
        "--agent",
        type=_object_path,
        metavar="MODULE:NAME",
        help="a Spec, or a function that is given the session's folder (a Path) and returns one; "
        "the default works on the files of that folder",
    )
    acp.add_argument("--pattern", choices=("react", "plan", "reflection", "rewoo"), help="instead of the agent's own")
    acp.add_argument("--approve-plan", action="store_true", help="ask before a plan is carried out (with plan)")
    acp.add_argument("--images", action="store_true", help="the model takes images")
    acp.add_argument(
        "--max-steps", type=_count, default=100, metavar="N", help="model requests of one turn (%(default)s)"
    )
    acp.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="warning")
    return parser


def _object_path(text: str) -> str:
    module, _, name = text.partition(":")
    if not module or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not like package.module:name")
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _serve_acp(options: argparse.Namespace) -> None:
    try:
        import platformdirs
    except ImportError:
        sys.exit("steerkit acp needs the package platformdirs: pip install 'steerkit-sdk[acp]'")
    from steerkit.frontends.acp import Agent, Store, serve

    store = Store(Path(platformdirs.user_data_dir("steerkit", appauthor=False)) / "sessions")
    version = importlib.metadata.version("steerkit-sdk")
    serve(Agent(functools.partial(_make_setup, options), store, version=version, images=options.images))


def _make_setup(options: argparse.Namespace, cwd: str) -> Setup:
    """What a session in the folder `cwd` runs. Imports here, so that initialize is answered at once.

    Raises:
        ValueError: with a sentence for the person at the editor.
    """
    from steerkit.core.model import Endpoint
    from steerkit.frontends.acp.setup import Setup
    from steerkit.tools.preview import preview

    if not Path(cwd).is_dir():
        raise ValueError(f"There is no folder {cwd!r}.")
    spec = _named_spec(options.agent, Path(cwd)) if options.agent else _default_spec(options, Path(cwd))
    return Setup(
        spec=evolve(spec, pattern=options.pattern or spec.pattern, model=evolve(spec.model, images=options.images)),
        endpoint=Endpoint.from_env(),
        client_for=_client,
        patterns=_patterns,
        approve_plan=options.approve_plan,
        preview=functools.partial(preview, cwd),
    )


@functools.cache
def _client(endpoint: Any) -> Any:
    """One client for all sessions: they share its connections."""
    from steerkit.models import openai_chat

    return openai_chat(endpoint)


def _patterns(plan_made: PlanMade) -> Iterable[Pattern]:
    from steerkit.patterns import Plan, ReAct, Reflection, ReWOO

    return ReAct(), Plan(approve=plan_made), Reflection(), ReWOO()


def _default_spec(options: argparse.Namespace, cwd: Path) -> Spec:
    from steerkit.core.spec import Spec
    from steerkit.tools.workspace import workspace

    model = os.environ.get("STEERKIT_MODEL", "").strip()
    if not model:
        raise ValueError("STEERKIT_MODEL is not set: set it to the name of a model of the endpoint.")
    return Spec(
        model=model,
        pattern="react",
        max_steps=options.max_steps,
        system=_SYSTEM.format(cwd=cwd),
        tools=workspace(cwd),
        approve=lambda _call: False,  # the session asks the client instead
    )


def _named_spec(path: str, cwd: Path) -> Spec:
    from steerkit.core.spec import Spec

    module, _, name = path.partition(":")
    # As `python -m` does, and a console script does not.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--agent {path} cannot be loaded: {error}") from error
    make: Callable[[Path], Any] = found
    spec = found if isinstance(found, Spec) else make(cwd) if callable(found) else found
    if not isinstance(spec, Spec):
        raise ValueError(f"--agent {path} is a {type(spec).__name__}, and not a Spec or a function that returns one.")
    return spec
