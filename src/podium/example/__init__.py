"""The example cluster that `podium demo` explains: a web shop on a dozen nodes in three zones."""
