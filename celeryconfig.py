"""What Celery is told, and why.

Celery carries the news that a step is next, and nothing else: messages hold ids, the
truth about a run is its record. So whatever Celery may do to a message (lose it, send
it twice, bring it late) costs a run at most some seconds, and everything that keeps
results, waits or repeats is off.
"""

from __future__ import annotations

from kombu.entity import Queue

from bigbrain import settings

broker_url = settings.broker_url(settings.Settings.read().redis_url or "redis://127.0.0.1:6379/0")
imports = ("workers.tasks", "workers.process")

# A result backend costs a third of a worker's time for an empty step and leaks a subscription
# for each message that is sent; the outcome of a step is in its run's record.
result_backend = None
task_ignore_result = True

# Messages hold ids and small numbers. Anything but JSON would let whoever reaches the broker run code.
task_serializer = "json"
accept_content = ["json"]

# Steps that wait for a model go to threads, steps that keep a processor busy to processes.
# Nothing is acknowledged: a step that is lost, with its message or without, is found by its lease or its
# grace within seconds. Acknowledging would cost two more round trips for each message; and while any message
# is unacknowledged, a worker dies with its broker's connection (kombu 5.7: restoring it on the dead
# channel raises) and a step longer than the visibility timeout runs twice.
task_queues = [Queue(name, no_ack=True) for name in ("io", "cpu")]  # type: ignore[no-untyped-call]  # kombu has no types
task_default_queue = "io"
task_acks_late = False
task_reject_on_worker_lost = False
worker_cancel_long_running_tasks_on_connection_loss = False

# A step that waits behind a long one in a busy worker would wait while others are free.
worker_prefetch_multiplier = 1
worker_disable_prefetch = True

# A broker that is away comes back; giving up would only need somebody to start the worker again.
broker_connection_retry_on_startup = True
broker_connection_max_retries = None
worker_consumer = "workers.consumer:Returning"

broker_transport_options = {
    # One list for each queue, not four for priorities that are not used: fewer keys in every BRPOP.
    "priority_steps": [0],
    "socket_keepalive": True,
    "socket_timeout": 10,
    "health_check_interval": 10,
}

# Enough for a web process whose requests all enqueue at the same moment; the default of 10 makes them wait.
broker_pool_limit = 64

# Logging is the process's own business (`bigbrain up` joins all lines into one log).
worker_hijack_root_logger = False
worker_redirect_stdouts = False

# The sender's own event costs a fifth of what a request costs the web side, and tells Flower nothing that the
# worker's events (its option -E) do not.
task_send_sent_event = False

# Beat looks itself for what is due, each second, and sends no message for it; two of them do no harm.
beat_scheduler = "workers.beat:Wakes"
beat_max_loop_interval = 1
