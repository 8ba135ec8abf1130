"""Runs a command at a terminal. Arguments: a JSON list of [wait for, send], then the command.

Prints all that it wrote; the exit status is the command's, 99 where it did not end in time.
"""

import json
import os
import pty
import select
import sys
import time

steps = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
output = b""
seen = 0
end = time.monotonic() + 60
while time.monotonic() < end:
    ready, _, _ = select.select([terminal], [], [], 0.1)
    if ready:
        try:
            text = os.read(terminal, 65536)
        except OSError:
            break
        if not text:
            break
        output += text
    if steps:
        at = output.find(steps[0][0].encode(), seen)
        if at >= 0:
            seen = at + len(steps[0][0].encode())
            os.write(terminal, steps.pop(0)[1].encode())
else:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    sys.stdout.buffer.write(output)
    sys.exit(99)
sys.stdout.buffer.write(output)
sys.stdout.flush()
os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
