"""Why a KIP-848 group is not poked, by what the tables or its coordinator say of it.

It imports nothing, so that both the driver's choice (`planning.life.pokes`) and the poke's process (`kafka.poke`) can.
"""

from typing import Final

NOT_KIP848: Final = "the group no longer uses group.protocol=consumer"
OTHER_MEMBERS: Final = "members to which the plan gives partitions have left"
