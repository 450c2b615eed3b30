"""Measured latencies between the regions of a cloud, for the `wan` network.

Between regions: the files `latency_aws/2020_06_05/*.dat` of the GitHub repository
`vitorenesduarte/fantoch` (Apache 2.0 or MIT; added in commit 67c91e83, June 5, 2020),
the framework that evaluated the protocol Tempo (V. Enes, C. Baquero, A. Gotsman and
P. Sutra, "Efficient Replication via Timestamp Stability", EuroSys 2021). One virtual
machine in each of 19 regions of Amazon EC2 ran `ping` to every other; its settings at
that commit say for half an hour. The averages between eight of the regions are copied
here. The first five are the ones that the framework names as used in its experiments,
so that up to five processes are placed as there.

Within a region: those files hold only what a machine measures to itself. The figure
here is the average round trip between availability zones of eu-west-1 over five
minutes, 0.82 to 0.83 ms, by L. Liesis, "What is AWS EC2 cross availability zones
network lag vs inside same zone?", Medium, November 29, 2022. It stands for all regions.

Such figures drift and differ by source. The same authors measured the first five
regions again (`latency_aws/2021_02_13`) and found up to 17 ms less; between zones of
one region others saw 0.25 to 3.37 ms ("Measuring AWS Region and AZ Latency", xkyle.com,
best of 50 pings). One date and one source for all pairs of regions keep the proportions
between them real. A ping tells the round trip alone: each way is taken to be half of it.
"""

from __future__ import annotations

REGIONS: tuple[str, ...] = (
    "eu-west-1",
    "us-west-1",
    "ap-southeast-1",
    "ca-central-1",
    "sa-east-1",
    "us-east-1",
    "ap-northeast-1",
    "ap-southeast-2",
)

_NEAR = 0.83

# fmt: off
MEASURED_ROUND_TRIP_MS: tuple[tuple[float, ...], ...] = (
    (  _NEAR, 141.142, 186.585,  72.380, 183.620,  70.501, 204.431, 253.657),
    (141.152,   _NEAR, 181.314,  78.381, 190.180,  59.912, 111.696, 137.107),
    (186.593, 181.314,   _NEAR, 221.262, 338.122, 235.752,  77.040,  90.468),
    ( 72.375,  78.375, 221.262,   _NEAR, 123.867,  15.116, 154.744, 195.684),
    (183.620, 190.192, 338.124, 123.864,   _NEAR, 113.027, 267.882, 308.804),
    ( 70.508,  59.911, 235.767,  15.118, 113.022,   _NEAR, 152.425, 198.034),
    (204.446, 111.696,  77.029, 154.750, 267.884, 152.424,   _NEAR, 104.074),
    (253.654, 137.104,  90.457, 195.688, 308.820, 198.031, 104.075,   _NEAR),
)
# fmt: on
"""Row: the region that sent the ping; column: the one that answered."""


def round_trip_ms(a: int, b: int) -> float:
    """The time from region `a` to `b` and back: the mean of what either end measured."""
    return (MEASURED_ROUND_TRIP_MS[a][b] + MEASURED_ROUND_TRIP_MS[b][a]) / 2


def one_way_ns(a: int, b: int) -> int:
    """The time from region `a` to `b`, in whole nanoseconds of the simulator's clock."""
    return round(round_trip_ms(a, b) * 1_000_000 / 2)
