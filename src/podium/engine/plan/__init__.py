"""What is kept about one kind of pod between decisions: which plugins run, and their results per node."""
