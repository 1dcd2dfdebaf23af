"""Traces of the follower's state machine, one file for each state, and `story-*.json` for whole lives.

    {"about":"…",
     "settings":{"group":"billing","static":false,"take_timeout_s":9.0,"doubt_timeout_s":6.0,"despite_migration":false},
     "begin":[<step>, …],
     "then":[{"about":"…","steps":[<step>, …]}, …]}

    step   {"at_s":0.0,"event":{…},"actions":[{…}, …],"state":{"phase":"BASE","generation":3,"tokens":{"t-0":"HELD"}}}

To replay a file: for each entry of `then` make a new state machine with the settings, feed it the events of `begin`
and then those of the entry, with `at_s` as the time of a monotonic clock, and compare its actions with `actions`, in
order. `state` is the state of lagwise's machine after the step, for debugging: phase, generation, and the mark of each
partition with a token. It need not be compared.

Events, by `type`:

    assigned      member, generation, partitions   Kafka assigned these, and no others
    revoked                                        Kafka takes everything back, and waits for it
    lost                                           the membership is over
    plan          plan                             value of the control record that is valid now; null if none is
    acks          acks                             records of the acks topic as they were read: [<ack>, …]
    looked        found                            answer to the `look` before it: of each partition what the group
                                                   has committed, {"<topic>":{"0":{"offset":70,"metadata":"…"}}};
                                                   unknown ones are left out
    committed     accepted, offsets                answer to the `commit` before it
    topics_away                                    lagwise's topics cannot be read any more
    undelivered   ack                              an acknowledgement of this member that may never be read
    tick                                           time has passed

Actions, by `type`; they are carried out in this order:

    assign        partitions, offsets              read exactly these: what is read already from where it is, the rest
                                                   from the offset, or where there is none from the group's commit
    unassign                                       read nothing
    look          partitions                       ask the coordinator what the group has committed of these
    commit        offsets, marks                   commit these; null is what the user has finished; the mark follows
                                                   the metadata that the user had committed
    write         ack                              write the acknowledgement
    rejoin                                         leave the group and join it again
    tell          change, partitions               call the user's listener: `gained`, `revoked` (may still commit),
    `lost`

The answer to a `commit` is the next event. If Kafka revokes before it has come, or the membership is lost, it is
given up: `committed` with `"accepted":false` is the next event then, before `revoked` or `lost`. The answer to a `look`
is the next event, too, and never comes if one of `revoked`, `lost` and `assigned` does before.

An <ack> is {"key":{…},"value":{…}}, `partitions` is {"<topic>":[0,1]}, `offsets` is {"<topic>":{"0":70}}. Keys and
values of acknowledgements, and plans, are those of deploy/docs/records.md. In written acknowledgements, compare
neither `at` nor `why`, which are for people, unless the `why` begins with `migration is`. Times are exact in binary:
compare them so.
"""
