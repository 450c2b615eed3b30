"""The library that applications use: connections to a server, groups, messages, values."""
