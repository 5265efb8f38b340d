"""The plugins for volumes, and data derived from storage objects."""
