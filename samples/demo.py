"""Two turns of a real chat flow without a key or network: what `make demo` runs.

Each turn is a process of its own, as with a real key. The model is a local fake of the Messages
API that answers from what the request contains, so the second turn can only know the name if the
first one was remembered.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from flowrt.testing import FakeMessagesAPI

FLOW = Path(__file__).parent / "ai-agent-memory.yaml"
TURNS = ["My name is Sam.", "What is my name?"]


def answer(request: dict[str, Any]) -> str:
    """What a model would say that has read the request and nothing else."""
    said = json.dumps(request["messages"])
    name = re.search(r"[Mm]y name is (\w+)", said)
    if "What is my name?" not in said:
        reply = f"Hello {name[1]}." if name else "Hello."
    else:
        reply = f"Your name is {name[1]}." if name else "You have not told me."
    return json.dumps({"reply": reply})


def main() -> int:
    """Run the turns; 0 where the second one knew the name."""
    with FakeMessagesAPI(reply=answer) as api, tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "ANTHROPIC_API_KEY": "not-a-key",
            "ANTHROPIC_BASE_URL": api.base_url,
            "FLOWRT_STORAGE": f"sqlite:{folder}/state.db",
        }
        printed = ""
        for text in TURNS:
            data = json.dumps({"threadId": "user-42", "message": text})
            command = ["flowrt", "invoke", "--config", str(FLOW), "--flow", "chat", "--data", data]
            print("$", " ".join(command[:-1]), f"'{data}'", flush=True)
            done = subprocess.run(
                [sys.executable, "-m", "flowrt.cli.main", *command[1:]],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            printed = done.stdout.strip()
            print(printed, flush=True)
    return 0 if "Sam" in printed else 1


if __name__ == "__main__":
    sys.exit(main())
