"""A program of the OpenAI Agents SDK whose every model call is held first: one model provider.

pip install 'commonpurse[agents]'
PURSE_URL=http://127.0.0.1:8080 PURSE_KEY=purse_... OPENAI_API_KEY=... python guard_openai_agents.py "What is a purse?"
"""

import asyncio
import os
import sys

from agents import Agent, ModelSettings, OpenAIProvider, RunConfig, Runner

from commonpurse import Exhausted
from commonpurse.aio import Purse
from commonpurse.integrations.openai_agents import PurseProvider


async def main() -> None:
    async with Purse(os.environ["PURSE_URL"], os.environ["PURSE_KEY"]) as purse:
        guarded = PurseProvider(purse, OpenAIProvider(), labels={"app": "examples"})
        run = RunConfig(model_provider=guarded, tracing_disabled=True)
        settings = ModelSettings(max_tokens=200)
        agent = Agent("porter", instructions="Answer briefly.", model="gpt-4o-mini", model_settings=settings)
        try:
            if "--stream" in sys.argv:
                streamed = Runner.run_streamed(agent, sys.argv[1], run_config=run)
                async for _ in streamed.stream_events():
                    pass
                print(streamed.final_output)
            else:
                print((await Runner.run(agent, sys.argv[1], run_config=run)).final_output)
        except Exhausted as refused:
            print(f"refused ({refused.why}): {refused.fits} {refused.unit} would fit; it resets at {refused.resets_at}")


asyncio.run(main())
