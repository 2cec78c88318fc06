"""The Celery application: carries steps of runs to the processes that execute them."""

from __future__ import annotations

from celery import Celery

app = Celery("bigbrain")
app.config_from_object("celeryconfig")
