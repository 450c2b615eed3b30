"""Clusters of real servers on this machine, and closed loops in member processes to load them."""
