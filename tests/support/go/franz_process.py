"""One of the consumer `Processes`, with franz-go in a KIP-848 group: python -m tests.support.go.franz_process '{"who":"a", "program":"…", …}'.

Its only own option is `program`, what `franz_member` has built. It becomes that program, so its process id stays.
"""

import json
import os
import sys

OPTIONS = json.loads(sys.argv[1])

os.execv(OPTIONS["program"], [OPTIONS["program"], sys.argv[1]])  # noqa: S606 - no shell is wanted
