"""A random walk through all that can happen to a `World`."""

from collections.abc import Sequence
from random import Random

from tests.support.followers.follow_world import Node, World


def walk(seed: int, *, steps: int = 500, world_type: type[World] = World) -> World:
    """A world after a random walk through all that can happen, and after it has become quiet."""
    random = Random(seed)
    world = world_type(random, nodes=random.randint(2, 4), partitions=random.randint(1, 6))
    harm = random.choice([0.0, 0.03, 0.1])
    for _ in range(steps):
        world.now_s += random.choice([0.0, 0.1, 1.0])
        if random.random() < harm:
            _disturb(world, random)
        awake: Sequence[Node] = [node for node in world.nodes if not node.stopped]
        if awake:
            world.act(random.choice(awake))
        if not world.rebalancing and random.random() < 0.03:
            world.publish()
    world.become_quiet()
    return world


def _disturb(world: World, random: Random) -> None:
    kinds = ["kill", "stop", "go on", "evict", "start", "assign again", "assign again", "topics", "topics"]
    what = random.choice(kinds)
    node = random.choice(world.nodes) if world.nodes else None
    if what == "start" or node is None:
        if len(world.nodes) < 5:
            world.start()
    elif what == "kill":
        world.kill(node)
    elif what in ("stop", "go on"):
        node.stopped = what == "stop"
    elif what == "evict":
        silent = [name for name, member in sorted(world.members.items()) if member.dead or member.stopped]
        if silent:
            world.evict(random.choice(silent))
    elif what == "topics":
        (world.find_topics if node.is_deaf else world.lose_topics)(node)
    elif not node.stopped:
        world.assign_again(node)
