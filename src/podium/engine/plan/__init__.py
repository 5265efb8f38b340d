"""Plans: which plugins run for a kind of pod, and their results per node, kept between decisions."""
