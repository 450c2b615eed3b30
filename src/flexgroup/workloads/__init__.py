"""Workloads: who multicasts what to whom. `docs/workloads.md` says where each comes from."""

from flexgroup.workloads.catalogue import KINDS, WorkloadKind, parse_workload
from flexgroup.workloads.workload import Workload

__all__ = ["KINDS", "Workload", "WorkloadKind", "parse_workload"]
