"""Usage is summed over turns; an image is a steer like any other."""

from __future__ import annotations

import pytest

from steerkit import Image, ModelRef, RunFinished, Text, Usage, UsageEvent, tool, user
from steerkit.core.spec import STEER_LABEL, Spec
from steerkit.patterns import ReAct
from steerkit.runner import Runner
from steerkit.testing import ScriptedModel, call, say
from tests.conftest import Held, start, texts
from tests.steering.steered import asked, steering_at

PICTURE = Image(b"\x89PNG\r\n", "image/png")


@tool
def look() -> str:
    """Look."""
    return "seen"


def test_usage_and_steps_are_summed_over_a_continuation() -> None:  # B113
    script = [reply.using(10, 5) for reply in (call("look"), say("x"), call("look"), say("y"))]
    late = steering_at(UsageEvent, "S", number=2)
    result = start(ScriptedModel(script), tools=[look], steer_continuations=1, on_event=late).wait()
    assert (result.usage, result.steps, result.turns) == (Usage(40, 20), 4, 2)


def test_a_text_and_an_image_are_carried_in_one_user_message() -> None:  # B125
    held = Held(call("look"))
    model = ScriptedModel([held, say("x")])
    run = start(model, tools=[look])
    held.wait()
    steer = run.steer(["this one", PICTURE])
    held.go.set()
    run.wait()
    assert asked(model, 1)[-1].content == (Text(f"{STEER_LABEL}\nthis one"), PICTURE)
    assert steer.content == (Text("this one"), PICTURE)


def test_an_image_alone_is_a_steer_and_gets_a_label_of_its_own() -> None:  # B125
    held = Held(call("look"))
    model = ScriptedModel([held, say("x")])
    run = start(model, tools=[look])
    held.wait()
    run.steer(PICTURE)
    held.go.set()
    run.wait()
    assert asked(model, 1)[-1].content == (Text(STEER_LABEL), PICTURE)


def test_an_image_becomes_the_plain_message_of_a_continuation() -> None:  # B125
    held = Held(say("x"))
    model = ScriptedModel([held, say("y")])
    run = start(model, steer_continuations=1)
    held.wait()
    run.steer(PICTURE)
    held.go.set()
    run.wait()
    assert asked(model, 1)[-1].content == (PICTURE,)


def test_a_model_without_images_refuses_one_at_steer_and_strips_nothing() -> None:  # B125
    held = Held(say("x"))
    model = ScriptedModel([held])
    spec = Spec(ModelRef("text-only", images=False), "react", 3)
    run = Runner(model, [ReAct()]).start(spec, [user("Hi.")], model.endpoint)
    held.wait()
    with pytest.raises(ValueError, match="takes no images"):
        run.steer(["this one", PICTURE])
    assert run.pending_steers == ()
    held.go.set()
    run.wait()


def test_a_refused_steer_leaves_what_it_was_given_as_it_was() -> None:  # B127
    run = start(ScriptedModel([say("x")]))
    run.wait()
    content: list[str | Image] = ["this one", PICTURE]
    with pytest.raises(RunFinished) as refused:
        run.steer(content)
    assert content == ["this one", PICTURE]
    assert refused.value.content == (Text("this one"), PICTURE)


def test_a_list_that_changes_after_steer_does_not_change_the_steer() -> None:  # B127
    held = Held(call("look"))
    model = ScriptedModel([held, say("x")])
    run = start(model, tools=[look])
    held.wait()
    content: list[str | Image] = ["this one"]
    run.steer(content)
    content.append(PICTURE)
    held.go.set()
    run.wait()
    assert not asked(model, 1)[-1].has_image
    assert texts(asked(model, 1))[-1].endswith("this one")
