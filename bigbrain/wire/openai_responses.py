"""The dialect of OpenAI's Responses API: the names of `bigbrain.wire.Dialect`.

Requests are read in `openai_responses_requests` and written in `openai_responses_asking`; items of
input in `openai_responses_items`, items of output in `openai_responses_output`, tools in
`openai_responses_tools`, content parts in `openai_responses_content`; whole answers are in
`openai_responses_answers`; streams are read in `openai_responses_stream` and written in
`openai_responses_frames`; what a server stores, and how requests go on from it, in `openai_responses_chain`. Errors are those of all OpenAI dialects, in `openai_errors`.
"""

from __future__ import annotations

from bigbrain.wire.openai_content import NAME as NAME
from bigbrain.wire.openai_errors import read_error as read_error
from bigbrain.wire.openai_errors import write_error as write_error
from bigbrain.wire.openai_responses_answers import read_response as read_response
from bigbrain.wire.openai_responses_answers import reason_of as reason_of
from bigbrain.wire.openai_responses_answers import write_document as write_document
from bigbrain.wire.openai_responses_answers import write_output as write_output
from bigbrain.wire.openai_responses_answers import write_response as write_response
from bigbrain.wire.openai_responses_asking import write_items as write_items
from bigbrain.wire.openai_responses_asking import write_request as write_request
from bigbrain.wire.openai_responses_chain import chained as chained
from bigbrain.wire.openai_responses_chain import in_background as in_background
from bigbrain.wire.openai_responses_chain import is_kept as is_kept
from bigbrain.wire.openai_responses_chain import kept as kept
from bigbrain.wire.openai_responses_chain import own_messages as own_messages
from bigbrain.wire.openai_responses_chain import previous_of as previous_of
from bigbrain.wire.openai_responses_chain import stored as stored
from bigbrain.wire.openai_responses_chain import with_items as with_items
from bigbrain.wire.openai_responses_frames import HEARTBEAT as HEARTBEAT
from bigbrain.wire.openai_responses_frames import write_event as write_event
from bigbrain.wire.openai_responses_frames import write_heartbeat as write_heartbeat
from bigbrain.wire.openai_responses_requests import read_request as read_request
from bigbrain.wire.openai_responses_stream import read_events as read_events
