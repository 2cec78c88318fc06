"""What each sample is asked, in order, and what it answers: the same in every way to run it."""

from __future__ import annotations

CONVERSATIONS: dict[tuple[str, str], list[tuple[str, str]]] = {
    ("hello", "hello"): [("hello there", "At your service.")],
    ("streaming", "streaming"): [("go", "one two three\n\n4 5 6 \n\nSEVEN EIGHT")],
    ("webhook", "webhook"): [("hello", "Ring my bell.")],
    ("router", "router"): [
        ("good morning", "At your service."),
        ("turn on the light", "The light is on."),
        ("note: buy milk", "Noted: buy milk."),
    ],
    ("tools", "tools"): [
        ("how warm is it?", "The temperature is 21.5."),
        ("how loud is it?", "I have no such sensor."),
    ],
    ("forward_tools", "forward_tools"): [("what day is it?", "It is Monday.")],
    ("structured", "structured"): [
        (
            "two large pizzas without onions and a coke",
            "2 × pizza (large, without onions), 1 × coke (small)",
        )
    ],
    ("memory", "memory"): [
        ("what do you know?", "You told me nothing yet."),
        ("remember that I like tea", "Noted: I like tea."),
        ("remember that I like tea", "Noted: I like tea."),
        ("what do you know?", "You told me: I like tea."),
    ],
    ("stages", "stages"): [("go", "One moment, please.\n\nAt your service.")],
    ("durable", "durable"): [("3", "Counting to 3.\n\n1 2 3 and done.")],
    ("schedule", "schedule"): [
        ("in 10 minutes: tea", "I will remind you of tea in 10 minutes."),
        ("hello", "Of what, and in how many minutes?"),
    ],
    ("concurrency", "concurrency"): [("go", "Tea.\n\nCoffee.\n\nNow.\n\n21 degrees\n\nIt is warm: 21 degrees.")],
    ("several_brains", "chat"): [("hello", "At your service.")],
    ("several_brains", "acme/coder"): [("hello", "def answer(): return 42")],
    ("several_brains", "acme/adder"): [("1 and 2 and 39", "42")],
    ("orchestrator", "orchestrator"): [
        ("When was User 1 born?", "User 1 was born in 2001."),
        ("When was User 9 born?", "I know no such user."),
    ],
    ("desk", "desk"): [
        ("where is order 17?", "Order 17: on its way."),
        ("where is order 99?", "Order 99: there is no such order."),
        ("please cancel order 17", "Done: order 17 is cancelled: too late."),
        ("what do three teapots cost?", "3 × teapot: 36.00 EUR."),
        ("how many cups are there?", "There are 0."),
    ],
    ("marvis", "marvis"): [
        ("what do you know about me?", "You haven't told me anything to keep yet."),
        ("good morning", "At your service."),
        ("remember that I like tea", "Noted: I like tea"),
        ("what do you know about me?", "You told me: I like tea"),
        ("remember", "Remember what, exactly?"),
        ("show me the shopping list", "The shopping list is empty."),
        ("add milk to the shopping list", "Added milk to shopping (1 item)."),
        ("put bread on my shopping list", "Added bread to shopping (2 items)."),
        ("show me the shopping list", "shopping: milk, bread."),
        ("take MILK off the shopping list", "Removed milk."),
        ("remove milk from the shopping list", "milk isn't on the shopping list."),
        ("turn on the heater", "The heater is on."),
        ("how warm is it?", "The temperature is 22.5°C."),
        ("turn off the lights", "The porch light is off, the living light is off."),
        ("how humid is it?", "The humidity is 50%."),
        ("explain gravity", "Let me think about that."),
    ],
}
"""A sample and one of its flows → questions and answers."""
