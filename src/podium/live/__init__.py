"""A live cluster: read, shadowed, scheduled. An extra: `pip install 'podium[live]'`."""
