"""Anthropic's official Python client as it comes."""

from __future__ import annotations

from typing import Any

from anthropic import Anthropic
from line_by_line import QUESTION, TOOL, Asked, Said, answer_lines


def client(asked: Asked) -> Anthropic:
    return Anthropic(base_url=asked["url"], api_key=asked["key"], default_headers=asked.get("headers"))


def message_of(asked: Asked) -> dict[str, Any]:
    messages = [{"role": "user", "content": QUESTION}]
    return {"model": asked["model"], "max_tokens": asked["max_tokens"], "messages": messages}


def message_said(answer: Any) -> Said:
    said: Said = {"text": "", "ended": answer.stop_reason}
    for block in answer.content:
        if block.type == "text":
            said["text"] += block.text
        if block.type == "tool_use":
            said["tool"] = [block.name, block.input]
    return said | {"input": answer.usage.input_tokens, "output": answer.usage.output_tokens}


def plain(asked: Asked) -> Said:
    return message_said(client(asked).messages.create(**message_of(asked)))


def stream(asked: Asked) -> Said:
    text, ended = "", None
    for event in client(asked).messages.create(**message_of(asked), stream=True):
        if event.type == "content_block_delta":
            text += event.delta.text
        if event.type == "message_delta":
            ended = event.delta.stop_reason
    return {"text": text, "ended": ended}


def stream_with_usage(asked: Asked) -> Said:
    with client(asked).messages.stream(**message_of(asked)) as stream:
        text = "".join(stream.text_stream)
        said = message_said(stream.get_final_message())
    assert said["text"] == text, "what came piece by piece is what is said at the end"
    return said


def tools(asked: Asked) -> Said:
    tool = {"name": "weather", "input_schema": TOOL}
    return message_said(client(asked).messages.create(**message_of(asked), tools=[tool]))


def tools_stream(asked: Asked) -> Said:
    tool = {"name": "weather", "input_schema": TOOL}
    with client(asked).messages.stream(**message_of(asked), tools=[tool]) as stream:
        return message_said(stream.get_final_message())


def elsewhere(asked: Asked) -> Said:
    """What is never guarded."""
    params = {"model": asked["model"], "max_tokens": 9, "messages": [{"role": "user", "content": QUESTION}]}
    return {"made": client(asked).messages.batches.create(requests=[{"custom_id": "a", "params": params}]).id}


DOES = {
    "plain": plain,
    "stream": stream,
    "stream-with-usage": stream_with_usage,
    "tools": tools,
    "tools-stream": tools_stream,
    "elsewhere": elsewhere,
}

if __name__ == "__main__":
    answer_lines({"messages": DOES})
