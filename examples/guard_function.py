"""A program without a framework: one function that makes the model call, guarded.

    pip install commonpurse openai
    PURSE_URL=http://127.0.0.1:8080 PURSE_KEY=purse_... OPENAI_API_KEY=... python guard_function.py "What is a purse?"

Each call is held for the most it could cost, which the wallet estimates from the arguments, and settled by the usage in
the answer. Where that does not fit, nothing is called.
"""

import os
import sys
from typing import Any

from openai import OpenAI

from commonpurse.sync import Exhausted, Purse

purse = Purse(os.environ["PURSE_URL"], os.environ["PURSE_KEY"])
client = OpenAI()


@purse.guarded(labels={"app": "examples"})
def ask(**call: Any) -> Any:
    return client.chat.completions.create(**call)


with purse:
    try:
        messages = [{"role": "user", "content": sys.argv[1]}]
        print(ask(model="gpt-4o-mini", max_completion_tokens=200, messages=messages).choices[0].message.content)
    except Exhausted as refused:
        print(f"refused ({refused.why}): {refused.fits} {refused.unit} would fit; it resets at {refused.resets_at}")
