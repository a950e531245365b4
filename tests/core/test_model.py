"""ModelRef, Endpoint and Usage: what is refused, and that no key is shown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit import Endpoint, ModelRef, Usage

URL = "https://api.example.com/v1"


@pytest.mark.parametrize("settings", [{"name": ""}, {"name": " "}, {"name": None}, {"name": "m", "max_tokens": 0}])
def test_a_model_that_nobody_can_ask_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"model|max_tokens"):
        ModelRef(**settings)


def test_a_model_can_be_a_key_of_a_dict() -> None:
    assert {ModelRef("m", extra={"seed": 1}): 1}[ModelRef("m", extra={"seed": 1})] == 1


@pytest.mark.parametrize("url", ["", "api.example.com", "ftp://example.com", "https://", None])
def test_an_endpoint_without_a_url_is_refused(url: Any) -> None:
    with pytest.raises(ValueError, match=r"base_url is like 'https://api\.openai\.com/v1'"):
        Endpoint(url)


@pytest.mark.parametrize("url", ["https://me:secret@example.com", "https://me@example.com"])
def test_a_url_with_a_password_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ValueError, match="user name or password") as refused:
        Endpoint(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("key", ["a\nb", "k\u00e9y", "\x00", 7])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(key: Any) -> None:
    with pytest.raises(ValueError, match="api_key is not printable ASCII") as refused:
        Endpoint(URL, key)
    assert str(key) not in str(refused.value)


def test_a_header_that_nobody_can_send_is_refused() -> None:
    with pytest.raises(ValueError, match="header x-trace is not printable ASCII"):
        Endpoint(URL, headers={"x-trace": "a\r\nb"})


def test_no_secret_is_in_a_repr() -> None:
    shown = repr(Endpoint(URL, "secret-key", {"authorization": "secret-header"}))
    assert "secret" not in shown


def test_a_slash_at_the_end_makes_no_difference() -> None:
    assert Endpoint(URL + "/") == Endpoint(URL)


@pytest.mark.parametrize("settings", [{"connect_timeout": 0}, {"read_timeout": -1}, {"max_retries": -1}])
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Endpoint"):
        Endpoint(URL, **settings)


def test_an_endpoint_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEERKIT_BASE_URL", f" {URL} ")
    monkeypatch.setenv("STEERKIT_API_KEY", "key\n")
    assert Endpoint.from_env(max_retries=0) == Endpoint(URL, "key", max_retries=0)


@pytest.mark.parametrize("value", [None, " "])
def test_an_environment_without_a_url_says_which_variable_to_set(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STEERKIT_BASE_URL", raising=False)
    if value is not None:
        monkeypatch.setenv("STEERKIT_BASE_URL", value)
    with pytest.raises(ValueError, match="STEERKIT_BASE_URL is not set"):
        Endpoint.from_env()


USAGES = st.builds(Usage, *[st.integers(0, 9)] * 4)


@given(USAGES, USAGES)
def test_usage_is_added_field_by_field(one: Usage, other: Usage) -> None:
    total = one + other
    for name in ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens"):
        assert getattr(total, name) == getattr(one, name) + getattr(other, name)


def test_nothing_but_usage_is_added_to_usage() -> None:
    with pytest.raises(TypeError):
        Usage() + 1  # type: ignore[operator]
