"""A live cluster: reading, shadowing, scheduling. An extra: `pip install 'podium[live]'`."""
