"""Who works at the desk: `orders`, and `shop`, which only leads on to `shop/stock` and `shop/prices`.

Names, descriptions, inputs and outputs are all that the model knows, so they are written for it.
"""

import json

from bigbrain import tool
from bigbrain.orchestrator import Agent, Field, Tool, from_tool

ORDERS = {"17": "on its way", "18": "delivered"}
GOODS = {"teapot": (12.0, 4), "cup": (4.5, 0)}
"""A thing → its price in EUR, and how many there are."""


def find_order(number: str) -> str:
    return json.dumps({"order": number, "state": ORDERS[number]}) if number in ORDERS else "there is no such order"


def cancel_order(given: dict[str, str]) -> str:
    if ORDERS.get(given["number"]) != "on its way":
        return "it cannot be cancelled any more"
    return f"order {given['number']} is cancelled: {given.get('reason', 'no reason given')}"


async def price(given: dict[str, str]) -> str:
    """May be `async def`; what it raises is told to the model, which can put it right."""
    one, _ = GOODS[given["thing"]]
    return f"{one * int(given.get('amount', 1)):.2f}"


@tool
def in_stock(thing: str) -> int:
    """Count what is there of a thing."""  # a tool of the first kind, offered to an orchestrator
    return GOODS[thing][1]


orders = Agent(
    "orders",
    "Finds and cancels orders.",
    [
        Tool("find-order", "Find an order by its number.", "The number", "JSON: `order` and `state`", find_order),
        Tool(
            "cancel-order",
            "Cancel an order that is on its way. Ask for it only when the customer wants that.",
            [Field("number", "The order's number"), Field("reason", "Why, in a few words", required=False)],
            "What became of it, in words",
            cancel_order,
        ),
    ],
)
stock = Agent("stock", "Knows what is there.", [from_tool(in_stock)])
prices = Agent(
    "prices",
    "Knows what things cost.",
    [
        Tool(
            "price",
            "Tell what some of one thing cost together.",
            [Field("thing", f"One of: {', '.join(GOODS)}"), Field("amount", "How many, 1 by default", required=False)],
            "EUR, such as 24.00",
            price,
        )
    ],
)
shop = Agent("shop", "Knows the goods: leads on to stock and prices.", sub_agents=[stock, prices])
