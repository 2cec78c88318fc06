"""The Celery application: carries steps of runs to the processes that execute them."""

from __future__ import annotations

from celery import Celery

from workers.unacknowledged import Unacknowledged

app = Celery("bigbrain")
app.config_from_object("celeryconfig")
app.steps["consumer"].add(Unacknowledged)
