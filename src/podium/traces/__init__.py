"""Published traces of clusters as objects and timelines: one module per format."""

from podium.traces.formats import FORMATS, Written, read_trace, write_trace
from podium.traces.trace import Trace, TraceEvent

__all__ = ["FORMATS", "Trace", "TraceEvent", "Written", "read_trace", "write_trace"]
