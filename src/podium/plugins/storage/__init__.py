"""The plugins that look at volumes, and what they derive from storage objects."""
