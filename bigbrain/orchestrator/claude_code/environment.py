"""What the CLI finds in its environment: what it needs to run as its user, and nothing else of ours.

No key of ours reaches it but the one that was meant for it, and no variable that would
turn its behaviour, such as those of a session of Claude Code that we may run in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

LOGIN = "CLAUDE_CODE_OAUTH_TOKEN"
"""The CLI's own login, where it is not in its files; not for a server whose key is given."""

PASSED = (
    *("HOME", "USER", "LOGNAME", "PATH", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
    *("XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", LOGIN),
)
"""What is handed on: the user, the way into the network, where the CLI keeps its own state and login."""

QUIET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    # As often as our own models try again; by default it takes minutes to give up.
    "CLAUDE_CODE_MAX_RETRIES": "2",
}
"""It neither updates itself nor talks to anybody but its model."""

CLOSED = {
    # A prompt that mentions `@/etc/passwd` has that file read and sent, with all tools off.
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
}
"""Nothing but the prompt reaches the model."""

DEFAULT_PATH = os.defpath


def environment(
    ours: Mapping[str, str] = os.environ,
    *,
    api_key: str | None = None,
    server_url: str | None = None,
    max_tokens: int | None = None,
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The CLI's whole environment, made from ours; `more` has the last word."""
    own = {
        "ANTHROPIC_API_KEY": api_key,
        "ANTHROPIC_BASE_URL": server_url,
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": None if max_tokens is None else str(max_tokens),
    }
    passed = [name for name in PASSED if ours.get(name) and not (api_key and name == LOGIN)]
    return {
        "PATH": DEFAULT_PATH,
        **{name: ours[name] for name in passed},
        **QUIET,
        **CLOSED,
        **{name: value for name, value in own.items() if value},
        **(more or {}),
    }


def state_folder(env: Mapping[str, str]) -> Path:
    """Where we remember sessions: per user and not per deployment, because so does the CLI, whose environment is `env`."""
    usual = Path(env.get("HOME") or Path.home()) / ".local" / "state"
    named = Path(env.get("XDG_STATE_HOME") or usual)
    return (named if named.is_absolute() else usual) / "bigbrain" / "claude-code"
