"""Every reason of a decision and every cause of a plan's end, in one place.

A reason is one line for the operator, without a final period: the cause with its object, then, after a semicolon, what
to do, if anything. The group is that of the row. Programs may rely on the beginnings `provisional: `, `withdrawn: `,
`held back by <guard>: ` and `approval refused: `, and on nothing else.
"""

from collections.abc import Sequence

from assignor.protocol.migration import POLICY, Migration
from pipeline import shell

_SHOWN = 3
"""Members that a list names."""

NO_MEMBERS_NO_RECORD = (
    "no members: its consumers use assign() or have left, so nobody can follow a plan; "
    "consumers that call subscribe() get plans"
)
NO_MEMBERS = "no members: the group is empty; planning resumes when consumers join"
KAFKA_STREAMS = "Kafka Streams assigns tasks, and partitions follow them; only plain consumers get plans"
GENERATION_UNKNOWN = "the generation of the group is unknown; planning resumes after its next rebalance"
EXCLUDED = "[[plan.groups]] excludes the group; remove its exclude = true to get plans"
NO_TOPICS = "no partitions: none of the subscribed topics exists; create them or correct the subscription"

AT_TARGET = "the group has its target assignment"
DRY_RUN = "plan.dry_run is true, so the plan is not published; set it to false to publish plans"

NOW_PINNED = "partitions that the plan moves are pinned now"
MAY_MOVE_PINNED = "lagwise's tables do not have the plan, and it may move partitions that are pinned"
OTHER_PLAN_PUBLISHED = "the control topic holds a different plan"
GROUP_CHANGED = "the members or the partitions of the group have changed"
REBALANCED_BEFORE_ACCEPTED = "the group rebalanced before any member accepted the plan"
EXPIRED = "the plan expired (plan.valid_for_s)"
EXPIRED_UNSEEN = "the plan expired (plan.valid_for_s) while lagwise could not look at the group"
NOTHING_WAITS = "no plan of the group waits for approval"
OVERTAKEN = "the group is following another plan"
EXPIRED_WAITING = "the plan expired before it was approved (plan.valid_for_s)"
CALM_NO_MORE = "the plan gave partitions back while nothing was behind, and that is over"
REBALANCED_WAITING = "the group rebalanced after the plan was made"
NOT_APPLIED = "the plan was not applied"
NOT_SEEN = "lagwise did not look at the group for more than ten minutes"
REBALANCED_SINCE = "the group rebalanced after the plan was applied"
ARRIVALS_CHANGED = "arrivals changed by more than a fifth, or the members concerned left"
NOTHING_ARRIVES = "nothing arrives in what the members concerned hold"
NOBODY_WAS_BEHIND = "no member lost ground, and none that gave something was behind at its commits before"
NO_EFFECT_SEEN = "no member lost ground, and the group is no less behind half an hour later"
OTHERWISE_AT_TARGET = "the group is where it should be, and the published plan has it otherwise"
PRICE_UNSEEN = "price: a member has been behind since a plan gave it partitions, and may recover in minutes"
HELPS_NO_LONGER = "the group was rebalanced, and by its own figures the target helps no longer"


def provisional(cause: str) -> str:
    """The stored state of the group may be incomplete, for this cause."""
    return f"provisional: {cause}"


def broker_assigns(group_type: str) -> str:
    """A share or streams group."""
    return f"the group is a {group_type} group, where the broker assigns partitions; only consumers get plans"


def not_consumers(protocol_type: str | None) -> str:
    """A group of Kafka Connect, for example."""
    return (
        f"the group's protocol type is {protocol_type!r}, not 'consumer'; only groups of consumers get plans"
    )


def not_stable(state: str | None) -> str:
    """The group rebalances."""
    return f"the group is not stable (state {state}); planning resumes after its rebalance"


def paused(by: str, why: str, group_id: str) -> str:
    """An operator has paused the group."""
    resume = shell.command("resume", group_id)
    return f"paused by {by}{f': {why}' if why else ''}; {resume} allows plans again"


def unreadable_subscription(member_id: str, error: str) -> str:
    """A member's subscription bytes cannot be decoded."""
    return f"the subscription of member {member_id} cannot be decoded: {error}; `lagwise quarantine` shows its bytes"


def given_to_several(partition: str, others: int, assignor: str | None) -> str:
    """The leader of a classic group gave one partition to several members."""
    return (
        f"the group's assignor {assignor} has given {_and_more(partition, others)} to several members; "
        "only groups with one owner for each partition get plans"
    )


def unlisted_topic(topic: str) -> str:
    """Members own partitions of an unknown topic."""
    return (
        f"the log offsets of topic {topic} are unknown: it is deleted, excluded or hidden from lagwise; "
        "if it exists, check source.topics_exclude and allow Describe on it"
    )


def unlisted_partition(partition: str, topic: str, last: int) -> str:
    """The topic was extended a moment ago, or created again with fewer partitions."""
    return (
        f"a member owns {partition}, and the last partition of topic {topic} that brokers list is {last}; "
        "planning resumes when brokers and members agree"
    )


def log_end_unknown(partition: str, others: int) -> str:
    """No broker has ever reported the log end."""
    return f"the log end offset of {_and_more(partition, others)} is unknown; planning resumes when a broker reports it"


def log_offsets_stale(partition: str, others: int, limit_s: int) -> str:
    """The newest answer of a broker is too old."""
    return (
        f"the log offsets of {_and_more(partition, others)} are older than plan.max_staleness_s ({limit_s} s); "
        "check the brokers, and how long batches take"
    )


def log_offsets_unanswered(partition: str, others: int, error: str) -> str:
    """The newest question had no answer."""
    return f"no broker returned the log offsets of {_and_more(partition, others)}: {error}"


def commit_of_deleted_topic(partition: str, others: int) -> str:
    """The topic was deleted and created again after the commit, or its log was cut."""
    return (
        f"the lag of {_and_more(partition, others)} is unknown: the last commit belongs to a deleted topic of the same "
        "name, or is beyond the log end; planning resumes when the group commits again"
    )


def lag_unknown(partition: str) -> str:
    """A partition without a commit counts from its log start, which is unknown."""
    return (
        f"the lag of {partition} is unknown: the group has no commit there, and the log start offset is unknown; "
        "planning resumes when a broker reports it"
    )


def partitions_not_contiguous(topic: str) -> str:
    """Numbers are missing among a topic's partitions."""
    return (
        f"the partition numbers of topic {topic} are not contiguous: it is being created or deleted; "
        "planning resumes when all its partitions are listed"
    )


def planning_failed(error: Exception) -> str:
    """A fault in lagwise itself."""
    return f"planning failed because of a fault in lagwise: {type(error).__name__}: {error}; please report it"


def task_failed(times: int) -> str:
    """The task that plans the group, and others with it, has come to its last attempt."""
    return (
        f"the task that plans the group has failed {times} times: the planner ended its process, or the tables could "
        "not be read; planning is tried again in its next turn"
    )


def withdrawn(cause: str) -> str:
    """The published plan is taken back."""
    return f"withdrawn: {cause}"


def waiting(epoch: int, is_adopted: bool, made: int, moves: int) -> str:
    """Members are making the plan's moves, or have not begun."""
    if is_adopted:
        return f"plan epoch {epoch} is under way: {made} of {moves} moves are made"
    return f"{still_current(epoch)}, and no member has accepted it yet"


def still_current(epoch: int) -> str:
    """The published plan is what would be published now."""
    return f"plan epoch {epoch} is still current"


def held_back(guard_and_cause: str) -> str:
    """A guard speaks against the plan; see the functions below for what follows."""
    return f"held back by {guard_and_cause}"


def guard_settle(generation: int | None, age_ms: int, limit_ms: int) -> str:
    """The generation is young."""
    return f"settle: generation {generation} is {_s(age_ms)} old, less than settle_s = {_s(limit_ms)}"


def guard_lag(lag: int, limit: int) -> str:
    """There is little lag."""
    return f"lag: the group's lag of {lag} records is below min_lag = {limit}"


def guard_lag_seconds(lag_s: float | None, limit_ms: int) -> str:
    """The lag is young, or of unknown age."""
    if lag_s is None:
        return f"lag: the age of the oldest unread record is unknown, and min_lag_s = {_s(limit_ms)} needs it"
    return f"lag: no partition is more than {lag_s:.0f} s behind or will be, less than min_lag_s = {_s(limit_ms)}"


def guard_price(price_s: float, lasted_ms: int, least_ms: int) -> str:
    """Moves are expensive, and the cause of the plan has not lasted long enough to justify them."""
    return f"price: a move costs {price_s:.0f} s of arrivals, and the lag has lasted {_s(lasted_ms)} of {_s(least_ms)}"


def guard_moves(moves: int, partitions: int, most: int, share: float) -> str:
    """The plan moves much."""
    return (
        f"moves: the plan moves {moves} of {partitions} partitions; {most} may move (moves_share = {share:g})"
    )


def guard_improvement(least: float) -> str:
    """The plan helps little."""
    return f"improvement: the plan gains less than min_improvement = {least:.0%}"


def guard_cooldown(left_ms: int, length_ms: int, unclear: int) -> str:
    """The last plan is young, or plans in a row had no clear effect."""
    longer = f"longer than {_s(length_ms)} since it is unclear whether the last {unclear} plans helped"
    rest = f"remain, {longer}" if unclear else f"of the {_s(length_ms)} after the last plan remain"
    return f"cooldown: {_s(left_ms)} {rest}"


def guard_headroom(lost: float) -> str:
    """The lag drains without a plan, and the plan would leave less headroom for the next backlog."""
    return (
        "headroom: the lag drains within minutes by itself, "
        f"and the plan takes {lost:.0%} of its capacity from what the busiest member has to spare"
    )


def guard_probation(left_ms: int, hurts: int) -> str:
    """A plan hurt."""
    plans = "the last plan" if hurts <= 1 else f"{hurts} plans"
    return f"probation: {plans} hurt, so no plan for another {_s(left_ms)}; `lagwise resume` ends it"


def guard_effect(epoch: int) -> str:
    """A member has lost ground since the last plan, and may continue to."""
    return f"effect: a member has lost ground since plan epoch {epoch}; its next commits show whether the plan hurts"


def guard_effect_works(epoch: int) -> str:
    """The newest plan works: members that are behind catch up under it."""
    return f"effect: members that are behind catch up within minutes under plan epoch {epoch}"


def guard_effect_unseen(epoch: int) -> str:
    """Plans that no commit calls for come one by one."""
    return (
        "effect: no member that gives something is behind at its commits, as before plan epoch "
        f"{epoch}, of which nothing can be seen yet"
    )


def guard_effect_hurt(left_ms: int) -> str:
    """A plan that no commit called for hurt."""
    return (
        "effect: no member that gives something is behind at its commits, and a plan like this one hurt; none for "
        f"another {_s(left_ms)}, unless `lagwise resume` ends that"
    )


def guard_effect_rests(epoch: int, left_ms: int) -> str:
    """The pause between needless plans doubles."""
    return (
        f"effect: no member that gives something is behind at its commits, as before plan epoch {epoch}, which changed "
        f"nothing that can be seen; no other plan like it for another {_s(left_ms)}"
    )


def loses_ground(member_id: str, lags: Sequence[int]) -> str:
    """The cause of a plan's being judged to hurt."""
    at_commits = ", ".join(f"{lag:,}" for lag in lags)
    return f"member {member_id} kept up before and loses ground since: {at_commits} records behind at its commits"


def less_behind(before: int, after: int) -> str:
    """The cause of a plan's being judged to have helped."""
    return f"{before:,} records behind when it was published, {after:,} since, and no member loses ground"


def taken_back(epoch: int, why: str) -> str:
    """The remark of a target that undoes a plan."""
    return f"takes plan epoch {epoch} back, which hurt: {why}"


def brought_home(moves: int, calm_s: int | None) -> str:
    """The remark on a target that undoes plans that are no longer needed, or for which moves are too expensive."""
    why = "moves are expensive" if calm_s is None else f"nothing has been behind for {_s(calm_s * 1000)}"
    return f"gives {moves} partition(s) back to the members that had them before plans: {why}"


def guard_confirmations(count: int, wanted: int) -> str:
    """Too few evaluations in a row have found so."""
    return f"confirmations: {count} of {wanted} evaluations in a row found that a plan is needed"


def guard_migration(migration: Migration) -> str:
    """Members refuse plans while a broker may migrate their group."""
    remedy = (
        f"set {POLICY}=disabled on every broker"
        if migration == "possible"
        else "allow DescribeConfigs on the cluster, or see which broker does not answer"
    )
    return f"migration: migration to KIP-848 is {migration}, and members refuse plans until it is disabled; {remedy}"


def all_made(moves: int) -> str:
    """Every partition is where the plan wants it."""
    return f"all {moves} moves are made"


def partly_made(made: int, moves: int, cause: str) -> str:
    """The plan ended before its target."""
    return f"{made} of {moves} moves were made; {cause}"


def refused(member_id: str, why: str | None) -> str:
    """The member's reason for refusing."""
    return f"member {member_id} refused it: {why or 'it gave no reason'}"


def replaced_by(epoch: int | None) -> str:
    """A newer plan is published."""
    return f"plan epoch {epoch} replaced it"


def fixed(pinned: int, resting: int) -> str:
    """The remark of a target that pinned or recently moved partitions may keep from being better."""
    causes = [(pinned, "pinned"), (resting, "moved recently")]
    listed = ", ".join(f"{count} {cause}" for count, cause in causes if count > 0)
    return f"{pinned + resting} partition(s) stay with their owner: {listed}"


def step(made: int, wanted: int, share: float) -> str:
    """The remark of a target that makes some moves of the strategy's."""
    if made == 0:
        return f"{wanted} moves of whole partition numbers wait for later plans or a larger moves_share ({share:g})"
    return f"a step of {made} of {wanted} moves (moves_share = {share:g}); later plans make the others"


def stays_while_old(cause: str) -> str:
    """The remark of a target around partitions whose log offsets are old."""
    return f"{cause}; they stay with their owners, and count there with the lag that was known last"


def not_answered(members: Sequence[str]) -> str:
    """The plan needs members that do not follow."""
    return f"{_names(members)} did not answer within plan.guards.settle_s, and others had accepted it"


def planned_around(members: Sequence[str]) -> str:
    """The remark of a target that leaves members as they are."""
    as_now = "stays as it is: it" if len(members) == 1 else "stay as they are: they"
    return f"{_names(members)} {as_now} did not answer a plan that others accepted"


def stands_still(members: Sequence[str]) -> str:
    """The remark of a target made while members read nothing."""
    waits = "reads nothing now and is" if len(members) == 1 else "read nothing now and are"
    return f"{_names(members)} {waits} given nothing and left everything until that is over"


def costs_more(partitions: Sequence[tuple[str, float]]) -> str:
    """The remark of a target made with unlike costs: partitions with what a record of theirs costs."""
    named = ", ".join(f"{name} costs {cost:.1f} times" for name, cost in partitions[:_SHOWN])
    others = f" and {len(partitions) - _SHOWN} more" if len(partitions) > _SHOWN else ""
    return f"{named} what others cost, whoever reads it{others}"


def optimistic(members: Sequence[str], most: str) -> str:
    """The remark of a target that rests on the capacity, a rate in words, of members that have shown none."""
    shown, each = (
        ("has not shown its limit", "") if len(members) == 1 else ("have not shown their limits", " each")
    )
    return f"{_names(members)} {shown}: lagwise assumes at most {most}{each}"


def _names(members: Sequence[str]) -> str:
    if len(members) == 1:
        return f"member {members[0]}"
    others = f" and {len(members) - _SHOWN} more" if len(members) > _SHOWN else ""
    return f"members {', '.join(members[:_SHOWN])}{others}"


def _and_more(partition: str, others: int) -> str:
    return f"{partition} and {others} other partition(s)" if others else partition


def _s(time_ms: int) -> str:
    return f"{time_ms / 1000:g} s"
