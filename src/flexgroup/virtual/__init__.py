"""Servers and clients in virtual time: the code that users run, on a world made of numbers.

Every process has an event loop of its own (`loop`). All loops share one clock, one queue of what
is to happen, and one source of chance (`world`); connections between them are modelled after TCP
(`tcp`, `internet`) on a network that can be slow or cut (`network`). A seed fixes everything that
happens.
"""
