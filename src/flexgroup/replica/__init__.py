"""Objects with a copy in every process: calls in one order, each applied once."""
