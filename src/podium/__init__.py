"""Podium decides where a Kubernetes pod goes, exactly as kube-scheduler would, and shows why."""

__version__ = "0.1.0"
