"""The functions that CEL expressions may call, one module per library."""
