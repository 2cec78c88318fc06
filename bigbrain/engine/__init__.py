"""The durable step machine: runs, leases, logs and their recovery, all in Redis.

The run record owns the truth; a queue only carries the news that a step is
next. This package knows JSON lines, time and names; what a step does and what
comes after it, it asks its `Program`.
"""
