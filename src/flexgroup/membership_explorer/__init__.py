"""Every schedule of a few servers: the membership machine and real stacks, searched exhaustively.

The explorer of stacks (`flexgroup.worlds.explorer`) moves the packets of one stack. Here the
processes are servers: each has the membership machine and the domains that a real server has, and
configurations change under the messages that are in flight.
"""
