"""Published traces of clusters as objects and timelines: one module per format."""

from podium.traces.formats import FORMATS, read_trace
from podium.traces.trace import Trace, TraceEvent
from podium.traces.writing import Written, write_trace

__all__ = ["FORMATS", "Trace", "TraceEvent", "Written", "read_trace", "write_trace"]
