"""Racks of members and of replicas."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from assignor.model.arrays import Bools, Int32s
from assignor.model.java_order import java_order

NO_RACK = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Racks:
    """R racks, numbered by name; N members and P partitions in them."""

    of_member: Int32s
    """Rack of each member, `NO_RACK` without one."""
    of_partition: Bools
    """P x R: does a replica of the partition, in sync or not, stand in the rack."""

    @classmethod
    def of(cls, *, members: Sequence[str | None], partitions: Sequence[Collection[str]]) -> "Racks":
        """From rack names of members, in member order, and of partitions, by partition index.

        An empty rack name of a member means no rack, as in Kafka.
        """
        names = {*chain.from_iterable(partitions), *filter(None, members)}
        index = {name: r for r, name in enumerate(sorted(names, key=java_order))}
        of_partition = np.zeros((len(partitions), len(index)), np.bool_)
        repeated = np.arange(len(partitions)).repeat(np.array([len(racks) for racks in partitions], np.int64))
        replicas = np.array([index[rack] for racks in partitions for rack in racks], np.int64)
        of_partition[repeated, replicas] = True
        of_member = [index[rack] if rack else NO_RACK for rack in members]
        return cls(of_member=np.array(of_member, np.int32), of_partition=of_partition)
