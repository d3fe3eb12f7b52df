"""A client of perceptrond, a server that learns perceptrons online.

    from perceptrond import Client

    with Client("127.0.0.1:7600") as client:
        client.create("spam", features="named", labels=["ham", "spam"])
        client.learn("spam", [{"free": 1, "now": 2}, {"lunch": 1}], ["spam", "ham"])
        print(client.predict("spam", [{"free": 1}]).labels)

AsyncClient is the same for asyncio. perceptrond.sklearn has an estimator with scikit-learn's interface; it needs
scikit-learn. perceptrond.plot draws models. perceptrond.weights takes weights to and from other programs. perceptrond.v1 has the API's messages and
stubs. Other modules may change.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .aio import AsyncClient
    from .client import Client
    from .errors import PerceptrondError, Violation
    from .progress import Progress, Transfer
    from .results import Learned, Predictions
    from .rows import Row
    from .settings import model_settings

__all__ = ["AsyncClient", "Client", "Learned", "PerceptrondError", "Predictions", "Progress", "Row", "Transfer", "Violation", "model_settings"]
__version__ = "0.1.0"

_MODULES = {"AsyncClient": "aio", "Client": "client", "Learned": "results", "PerceptrondError": "errors", "Predictions": "results",
            "Progress": "progress", "Row": "rows", "Transfer": "progress", "Violation": "errors", "model_settings": "settings"}


def __getattr__(name: str) -> Any:
    # Imported when first used: perceptrond.channels alone needs no protos.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
