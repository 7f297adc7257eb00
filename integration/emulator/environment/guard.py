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
    shutil.rmtree(room, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


threading.Thread(target=end_with_parent, name="guard", daemon=True).start()
sys.argv = [module]
runpy.run_module(module, run_name="__main__", alter_sys=True)
