"""For each property, a history that only process 3 keeps from holding.

The others do what they should, whatever 3 does: deliver twice or in another order, tell everyone
something else, take part in what does not concern it.
"""

from __future__ import annotations

STORIES = {
    "integrity": """
        0 multicast 0.0 to 1,2
        1 deliver 0.0
        2 deliver 0.0
        3 deliver 0.0
        3 deliver 0.0
        3 deliver 2.7
        1 deliver 3.0
        3 multicast 3.1 to 1
        1 deliver 3.1
        2 deliver 3.1
    """,
    "validity": """
        0 multicast 0.0 to 1,3
        1 deliver 0.0
        3 multicast 3.0 to 1,2
    """,
    "agreement": """
        0 multicast 0.0 to 1,3
        1 deliver 0.0
        2 multicast 2.0 to 1,3
        1 deliver 2.0
        3 multicast 3.0 to 2,3
        3 deliver 3.0
    """,
    "uniform agreement": """
        3 multicast 3.0 to 2,3
        3 deliver 3.0
        0 multicast 0.0 to 1,3
        1 deliver 0.0
    """,
    "fifo order": """
        0 multicast 0.0 to 1,3
        0 multicast 0.1 to 1,3
        1 deliver 0.0
        1 deliver 0.1
        3 deliver 0.1
        3 multicast 3.0 to 1,2
        3 multicast 3.1 to 1,2
        1 deliver 3.1
        1 deliver 3.0
        2 deliver 3.0
        2 deliver 3.1
    """,
    "causal order": """
        0 multicast 0.0 to 1,2,3
        3 deliver 0.0
        3 multicast 3.0 to 1,2
        1 deliver 3.0
        1 deliver 0.0
        2 deliver 0.0
        2 deliver 3.0
        1 multicast 1.0 to 2,3
        3 deliver 1.0
        2 deliver 1.0
        3 multicast 3.1 to 1,2
        1 deliver 3.1
        2 deliver 3.1
    """,
    "local order": """
        0 multicast 0.0 to 1,3
        0 multicast 0.1 to 1,3
        1 deliver 0.0
        1 deliver 0.1
        3 deliver 0.1
        3 deliver 0.0
    """,
    "pairwise order": """
        0 multicast 0.0 to 1,3
        2 multicast 2.0 to 1,3
        1 deliver 0.0
        1 deliver 2.0
        3 deliver 2.0
        3 deliver 0.0
    """,
    "prefix order": """
        0 multicast 0.0 to 1,3
        2 multicast 2.0 to 1,3
        1 deliver 0.0
        1 deliver 2.0
        3 deliver 2.0
    """,
    "acyclic order": """
        0 multicast 0.0 to 1,3
        0 multicast 0.1 to 1,2
        2 multicast 2.0 to 2,3
        1 deliver 0.0
        1 deliver 0.1
        2 deliver 0.1
        2 deliver 2.0
        3 deliver 2.0
        3 deliver 0.0
    """,
    "real-time order": """
        0 multicast 0.0 to 1,2
        1 deliver 0.0
        3 multicast 3.0 to 1,2
        2 deliver 3.0
        2 deliver 0.0
        1 deliver 3.0
    """,
    "virtual synchrony": """
        0 view 1 of 0,1,3
        1 view 1 of 0,1,3
        3 view 1 of 0,1,3
        0 multicast 0.0 to 0,1,3
        0 deliver 0.0
        1 deliver 0.0
        0 view 2 of 0,1,3
        1 view 2 of 0,1,3
        3 view 2 of 0,1,3
    """,
    "minimality": """
        0 multicast 0.0 to 1
        0 send 0.0 to 1
        0 send 0.0 to 3
        3 receive 0.0 from 0
        3 send 0.0 to 2
        2 receive 0.0 from 3
        1 receive 0.0 from 0
        1 deliver 0.0
        1 send 3.0 to 2
        2 receive 3.0 from 1
    """,
}
FAULTY = (3,)
