"""Runs a module as the emulator's main program and ends with its parent.

Standard input is a pipe that only the starting process holds open. When it
closes, however that process ended (returned, panicked, was killed -9), the
whole process group goes, and with it the room. Nothing is left on a machine.
"""

import os
import runpy
import shutil
import signal
import sys
import threading

module, room = sys.argv[1:3]
lifeline = os.dup(0)  # not inheritable, so no grandchild can hold or read it
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def end_with_parent():
    while os.read(lifeline, 1):
        pass
    for _ in range(20):  # the other threads may still write
        shutil.rmtree(room, ignore_errors=True)
        if not os.path.exists(room):
            break
    os.killpg(0, signal.SIGKILL)


def judge_batches_as_aws_does():
    """SQS judges a batch as its entries; MiniStack asks for actions that AWS does not know."""
    from ministack.core import iam_actions

    named = iam_actions.extract_iam_action

    def extract(*args, **kwargs):
        action = named(*args, **kwargs)
        return action.removesuffix("Batch") if action and action.startswith("sqs:") else action

    iam_actions.extract_iam_action = extract


threading.Thread(target=end_with_parent, name="guard", daemon=True).start()
if os.environ.get("AUTH") == "true":
    judge_batches_as_aws_does()
sys.argv = [module]
runpy.run_module(module, run_name="__main__", alter_sys=True)
