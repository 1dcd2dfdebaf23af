"""One of the consumer `Processes`: python -m tests.support.followers.follow_member '{"who":"a", …}'.

Further options: `hurt` for a follower that hurts itself at states of the hand-over; `forget` for one whose tokens
are gone when it is assigned again; `patient` for one whose user never waits for a commit; `pool` for one whose user
processes in other threads; `busy` for one whose user is busy with a record while that file is there; `plain` for no
follower at all, `new` for none of KIP-848; `config` for its consumer; `follower` for its follower; `control` for a
control topic of its own.
"""

import logging

from assignor.clients.follower import rules as follower_state_rules
from tests.support.followers.follow_fragile import Fragile, forget
from tests.support.followers.follow_log import OPTIONS, Noting
from tests.support.followers.follow_plain import New, Plain
from tests.support.followers.follow_user import BusyUser, PoolUser, User

if "forget" in OPTIONS:
    follower_state_rules.restored_tokens = forget
logging.getLogger("assignor").addHandler(Noting())
logging.getLogger("assignor").setLevel(logging.INFO)
user: User
if "pool" in OPTIONS:
    user = PoolUser()
elif "busy" in OPTIONS:
    user = BusyUser()
else:
    user = User(New if "new" in OPTIONS else Plain if "plain" in OPTIONS else Fragile)
with user.follower:
    user.run()
