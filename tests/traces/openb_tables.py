"""A small openb trace that tests write themselves."""

from __future__ import annotations

import gzip
from pathlib import Path

NODES = """sn,cpu_milli,memory_mib,gpu,model
node-a,96000,393216,8,G2
node-b,104000,524288,2,T4
node-c,32000,262144,0,
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
share,4000,8192,1,460,,LS,Running,10,110,20
whole,8000,16384,2,1000,T4|G2,LS,Running,30,90,30
plain,2000,4096,0,0,,BE,Running,40,,
"""


def write_tables(folder: Path, nodes: str = NODES, pods: str = PODS, *, packed: bool = False) -> list[str]:
    """The files of a trace."""
    paths = []
    for name, text in (("nodes.csv", nodes), ("pods.csv", pods)):
        path = folder / name
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        paths.append(str(path))
    return paths
