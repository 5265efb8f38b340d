"""The labels of nodes that Kubernetes itself gives a meaning to, and those that Podium does."""

from __future__ import annotations

HOSTNAME = "kubernetes.io/hostname"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
"""What zone and region were called before v1.17; volumes and old nodes still have them."""

NODE_GROUP = "podium/node-group"
"""The node group that a node belongs to, where groups grow and shrink."""
PRICE_PER_HOUR = "podium/price-per-hour"
"""What a node costs, as a number."""
