"""The search for plugin weights and a scoring strategy that suit a cluster."""
