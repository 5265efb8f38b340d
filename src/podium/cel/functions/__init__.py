"""The functions expressions may call, library by library."""
