"""OpenAI's official Python client as it comes, by both of its interfaces."""

from __future__ import annotations

import json
from typing import Any

from line_by_line import QUESTION, TOOL, Asked, Said, answer_lines
from openai import OpenAI


def client(asked: Asked) -> OpenAI:
    return OpenAI(base_url=asked["url"], api_key=asked["key"], default_headers=asked.get("headers"))


def embeddings(asked: Asked) -> Said:
    found = client(asked).embeddings.create(model=asked["model"], input=["one two", "three"])
    return {"vectors": [each.embedding for each in found.data], "input": found.usage.prompt_tokens}


def elsewhere(asked: Asked) -> Said:
    """What is never guarded."""
    return {"made": client(asked).images.generate(prompt="a purse", model="gpt-image-1").created}


# --- chat completions -------------------------------------------------------------------------------------------------


def chat_of(asked: Asked) -> dict[str, Any]:
    messages = [{"role": "user", "content": QUESTION}]
    return {"model": asked["model"], "max_tokens": asked["max_tokens"], "messages": messages}


def chat_said(answer: Any) -> Said:
    (choice,) = answer.choices
    said = {"text": choice.message.content, "ended": choice.finish_reason}
    if choice.message.tool_calls:
        (call,) = choice.message.tool_calls
        said["tool"] = [call.function.name, json.loads(call.function.arguments)]
    return said | {"input": answer.usage.prompt_tokens, "output": answer.usage.completion_tokens}


def chat_plain(asked: Asked) -> Said:
    return chat_said(client(asked).chat.completions.create(**chat_of(asked)))


def chat_stream(asked: Asked) -> Said:
    """As people write it: every chunk has a choice, since nobody asked for the chunk that has none."""
    text, ended = "", None
    for chunk in client(asked).chat.completions.create(**chat_of(asked), stream=True):
        text += chunk.choices[0].delta.content or ""
        ended = chunk.choices[0].finish_reason or ended
    return {"text": text, "ended": ended}


def chat_stream_with_usage(asked: Asked) -> Said:
    text, ended, used = "", None, None
    ask = {**chat_of(asked), "stream": True, "stream_options": {"include_usage": True}}
    for chunk in client(asked).chat.completions.create(**ask):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            ended = choice.finish_reason or ended
        used = chunk.usage or used
    return {"text": text, "ended": ended, "input": used.prompt_tokens, "output": used.completion_tokens}


def chat_tools(asked: Asked) -> Said:
    tool = {"type": "function", "function": {"name": "weather", "parameters": TOOL}}
    return chat_said(client(asked).chat.completions.create(**chat_of(asked), tools=[tool]))


def chat_tools_stream(asked: Asked) -> Said:
    tool = {"type": "function", "function": {"name": "weather", "parameters": TOOL}}
    usage = {"include_usage": True}
    with client(asked).chat.completions.stream(**chat_of(asked), tools=[tool], stream_options=usage) as stream:
        return chat_said(stream.get_final_completion())


# --- responses --------------------------------------------------------------------------------------------------------


def response_of(asked: Asked) -> dict[str, Any]:
    return {"model": asked["model"], "max_output_tokens": asked["max_tokens"], "input": QUESTION}


def response_said(answer: Any) -> Said:
    why = answer.incomplete_details.reason if answer.incomplete_details else answer.status
    said = {"text": answer.output_text, "ended": why}
    for item in answer.output:
        if item.type == "function_call":
            said["tool"] = [item.name, json.loads(item.arguments)]
    return said | {"input": answer.usage.input_tokens, "output": answer.usage.output_tokens}


def response_plain(asked: Asked) -> Said:
    return response_said(client(asked).responses.create(**response_of(asked)))


def response_stream(asked: Asked) -> Said:
    text, last = "", None
    for event in client(asked).responses.create(**response_of(asked), stream=True):
        text += event.delta if event.type == "response.output_text.delta" else ""
        last = event
    said = response_said(last.response)
    assert said["text"] == text, "what came piece by piece is what is said at the end"
    return said


def response_stream_with_usage(asked: Asked) -> Said:
    """By the last event: `get_final_response` knows only of responses that are complete."""
    with client(asked).responses.stream(**response_of(asked)) as stream:
        *_, last = stream
    return response_said(last.response)


def response_tools(asked: Asked) -> Said:
    tool = {"type": "function", "name": "weather", "parameters": TOOL, "strict": False}
    return response_said(client(asked).responses.create(**response_of(asked), tools=[tool]))


def response_tools_stream(asked: Asked) -> Said:
    tool = {"type": "function", "name": "weather", "parameters": TOOL, "strict": False}
    with client(asked).responses.stream(**response_of(asked), tools=[tool]) as stream:
        return response_said(stream.get_final_response())


CHAT = {
    "plain": chat_plain,
    "stream": chat_stream,
    "stream-with-usage": chat_stream_with_usage,
    "tools": chat_tools,
    "tools-stream": chat_tools_stream,
    "embeddings": embeddings,
    "elsewhere": elsewhere,
}
RESPONSES = {
    "plain": response_plain,
    "stream": response_stream,
    "stream-with-usage": response_stream_with_usage,
    "tools": response_tools,
    "tools-stream": response_tools_stream,
    "embeddings": embeddings,
    "elsewhere": elsewhere,
}

if __name__ == "__main__":
    answer_lines({"chat": CHAT, "responses": RESPONSES})
