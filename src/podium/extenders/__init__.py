"""Calls to HTTP scheduler extenders, as kube-scheduler makes them.

    Extender     what the engine asks: filter, prioritize, preempt, bind
    messages     the requests and answers of the extender protocol
    wire         Go's JSON conventions, which the protocol inherits
    transport    one connection-reusing HTTP client per extender
    tls          the TLS settings of that client

The HTTP client is imported when the first `Extender` is made, not before.
"""

from podium.extenders.extender import Extender
from podium.extenders.messages import FilterResult, Victims

__all__ = ["Extender", "FilterResult", "Victims"]
