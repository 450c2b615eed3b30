"""Byzantine processes: twins, and attackers that stand between an unmodified stack and the network.

To the world that hosts it, a liar is a stack of one layer. What it could do in one way or another
it offers to the world as a choice, so runs with liars are explored, recorded and replayed as any
others.
"""
