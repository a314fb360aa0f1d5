"""A LangChain program whose every model call is held first: one callback handler.

    pip install 'commonpurse[langchain]' langchain-openai
    PURSE_URL=http://127.0.0.1:8080 PURSE_KEY=purse_... OPENAI_API_KEY=... python guard_langchain.py "What is a purse?"

The handler goes on a model, as here, or into the config of a chain or an agent, where it guards all their models.
"""

import os
import sys

from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

from commonpurse.integrations.langchain import PurseHandler
from commonpurse.sync import Exhausted, Purse

with Purse(os.environ["PURSE_URL"], os.environ["PURSE_KEY"]) as purse:
    guard = PurseHandler(purse, labels={"app": "examples"})
    model = ChatOpenAI(model="gpt-4o-mini", max_completion_tokens=200, stream_usage=True, callbacks=[guard])
    chain = ChatPromptTemplate.from_messages([("system", "Answer in one sentence."), ("user", "{question}")]) | model
    try:
        if "--stream" in sys.argv:
            for part in chain.stream({"question": sys.argv[1]}):
                print(part.text, end="")
            print()
        else:
            print(chain.invoke({"question": sys.argv[1]}).text)
    except Exhausted as refused:
        print(f"refused ({refused.why}): {refused.fits} {refused.unit} would fit; it resets at {refused.resets_at}")
