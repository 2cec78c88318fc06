"""The test kit: what an author, and this project itself, tests a brain with.

    from bigbrain import Brain, Flow, Model
    from bigbrain.testing import Client, ScriptedModel

    def test_jarvis_says_good_evening():
        model = ScriptedModel("Good evening.")

        with Client(Brain("jarvis", Flow(model=Model("gpt-4o-mini"))), models=model) as client:
            answer = client.chat("hello")

        assert answer.text == "Good evening."
        assert model.last.messages[-1].text == "hello"

The brain runs in this process on the same engine as anywhere else, with a Redis of its
own that is gone at the end. Nothing is patched: a test says from outside what answers
for the models, what time it is and where a worker dies. `docs/testing.md` tells more.

Nothing else in `bigbrain` imports this package.
"""

from __future__ import annotations

from bigbrain.testing.answers import Answer as Answer
from bigbrain.testing.answers import AnswerFailed as AnswerFailed
from bigbrain.testing.client import Client as Client
from bigbrain.testing.clock import Clock as Clock
from bigbrain.testing.scripted import Breaks as Breaks
from bigbrain.testing.scripted import Says as Says
from bigbrain.testing.scripted import Script as Script
from bigbrain.testing.scripted import ScriptedModel as ScriptedModel
