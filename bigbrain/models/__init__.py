"""Asking models: values that say which and how, a registry of them, and the calls themselves.

`Models.ladder` picks the model, `connect` makes it askable, `ask` gives the answer's
events. What a provider needs beyond its dialect (SDK, address, headers) is in the
module of its name, imported only when it is asked.
"""

from __future__ import annotations

from bigbrain.models.asks import Asks as Asks
from bigbrain.models.connection import connect as connect
from bigbrain.models.endpoints import load as load
from bigbrain.models.fixed import FixedModel as FixedModel
from bigbrain.models.registry import Askable as Askable
from bigbrain.models.registry import Models as Models
from bigbrain.models.spec import Knobs as Knobs
from bigbrain.models.spec import Model as Model
from bigbrain.models.spec import ModelRef as ModelRef
from bigbrain.models.spec import compose as compose
from bigbrain.models.spec import model as model
