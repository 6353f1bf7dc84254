"""Counters, prompts and routes without an engine."""

import pytest

from pipeline.events import Message, Prompt, Role
from pipeline.llm.dialects.openai import OpenAi
from pipeline.llm.route import Endpoint, Route


@pytest.fixture
def prompt() -> Prompt:
    return Prompt((Message(Role.USER, "Hello there"),), (), "digest", 40)


@pytest.fixture
def route() -> Route:
    return Route("test", Endpoint("http://engine:8000", "sesame"), OpenAi(), model="tiny")
