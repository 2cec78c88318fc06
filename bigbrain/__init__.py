"""A brain of flows and agents, served as a model: durable, live, self-hosted.

    from bigbrain import Brain, Flow, Model, agent, respond

    @agent(role="You are Jarvis: warm, brief, lightly witty.")
    def jarvis(turn, chat):
        turn.reply(chat.ask(*turn.messages))

    brain = Brain("jarvis", Flow(jarvis))
    brain.add_model(Model("gpt-4o-mini"))
    brain.serve()  # OpenAI and Anthropic at http://127.0.0.1:8080

Not in here, on purpose: tenants and billing (serve several flows, not several
owners), transcripts (they are the client's), a graph format (control flow is Python).
"""

from __future__ import annotations

from bigbrain.agents import Agent as Agent
from bigbrain.agents import agent as agent
from bigbrain.brain import Brain as Brain
from bigbrain.budgets import Budget as Budget
from bigbrain.chat import Chat as Chat
from bigbrain.checkpoints import Checkpoint as Checkpoint
from bigbrain.errors import BrainError as BrainError
from bigbrain.errors import BudgetSpent as BudgetSpent
from bigbrain.errors import ModelError as ModelError
from bigbrain.errors import SchemaError as SchemaError
from bigbrain.errors import StoreError as StoreError
from bigbrain.errors import ToolError as ToolError
from bigbrain.errors import WiringError as WiringError
from bigbrain.flows import All as All
from bigbrain.flows import Flow as Flow
from bigbrain.flows import Group as Group
from bigbrain.flows import NamedFlow as NamedFlow
from bigbrain.flows import Notify as Notify
from bigbrain.flows import One as One
from bigbrain.flows import Select as Select
from bigbrain.flows import again as again
from bigbrain.flows import respond as respond
from bigbrain.messages import File as File
from bigbrain.messages import ForcedTool as ForcedTool
from bigbrain.messages import Image as Image
from bigbrain.messages import Message as Message
from bigbrain.messages import Request as Request
from bigbrain.messages import Text as Text
from bigbrain.messages import Thinking as Thinking
from bigbrain.messages import ToolCall as ToolCall
from bigbrain.messages import ToolResult as ToolResult
from bigbrain.messages import ToolSpec as ToolSpec
from bigbrain.messages import Usage as Usage
from bigbrain.messages import assistant as assistant
from bigbrain.messages import system as system
from bigbrain.messages import user as user
from bigbrain.models import FixedModel as FixedModel
from bigbrain.models import Model as Model
from bigbrain.models import model as model
from bigbrain.replies import Reply as Reply
from bigbrain.schemas import Doc as Doc
from bigbrain.stores import FileStore as FileStore
from bigbrain.stores import MemStore as MemStore
from bigbrain.stores import RedisStore as RedisStore
from bigbrain.stores import Store as Store
from bigbrain.tools import Tool as Tool
from bigbrain.tools import tool as tool
from bigbrain.trace import JSONL as JSONL
from bigbrain.trace import TraceEvent as TraceEvent
from bigbrain.trace import Tracer as Tracer
from bigbrain.triggers.chains import Every as Every
from bigbrain.triggers.chains import Once as Once
from bigbrain.triggers.chains import Webhook as Webhook
from bigbrain.turns import Stream as Stream
from bigbrain.turns import Turn as Turn
