"""Load for measurements of real clusters: closed loops, and the member processes that run them."""
