"""What happens to pods when nodes are drained or fail."""
