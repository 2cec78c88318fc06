"""The dialect of OpenAI's Chat Completions API: the names of `bigbrain.wire.Dialect`.

Requests are read in `openai_chat_requests` and written in `openai_chat_asking`; whole answers are in
`openai_chat_answers`; streams are read in `openai_chat_stream` and written in `openai_chat_frames`;
content parts and errors, which all OpenAI dialects share, in `openai_content` and `openai_errors`.
"""

from __future__ import annotations

from bigbrain.wire.openai_chat_answers import read_response as read_response
from bigbrain.wire.openai_chat_answers import write_response as write_response
from bigbrain.wire.openai_chat_asking import write_request as write_request
from bigbrain.wire.openai_chat_frames import HEARTBEAT as HEARTBEAT
from bigbrain.wire.openai_chat_frames import write_event as write_event
from bigbrain.wire.openai_chat_frames import write_heartbeat as write_heartbeat
from bigbrain.wire.openai_chat_requests import read_request as read_request
from bigbrain.wire.openai_chat_stream import read_events as read_events
from bigbrain.wire.openai_content import NAME as NAME
from bigbrain.wire.openai_errors import read_error as read_error
from bigbrain.wire.openai_errors import write_error as write_error
