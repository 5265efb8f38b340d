"""Published traces of clusters as objects and timelines: one module per format."""

from podium.traces.formats import FORMATS, read_trace
from podium.traces.trace import Arrival, Trace
from podium.traces.writing import Written, write_trace

__all__ = ["FORMATS", "Arrival", "Trace", "Written", "read_trace", "write_trace"]
