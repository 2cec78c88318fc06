"""The local Claude Code CLI as a backend: a process for each reply, the conversation kept by the CLI under a session id."""

from __future__ import annotations

from bigbrain.orchestrator.claude_code.backend import ClaudeCode as ClaudeCode
