"""LangChain's client of OpenAI as it comes, by both of OpenAI's interfaces."""

from __future__ import annotations

from typing import Any

from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from line_by_line import QUESTION, TOOL, Asked, Said, answer_lines


def model(asked: Asked, **more: Any) -> ChatOpenAI:
    return ChatOpenAI(
        base_url=asked["url"], api_key=asked["key"], model=asked["model"], max_completion_tokens=asked["max_tokens"],
        default_headers=asked.get("headers"), use_responses_api=asked["client"] == "responses", **more,
    )  # fmt: skip


def message_said(answer: Any) -> Said:
    about = answer.response_metadata
    ended = about.get("finish_reason") or (about.get("incomplete_details") or {}).get("reason") or about.get("status")
    said: Said = {"text": answer.text, "ended": ended}
    if answer.tool_calls:
        (call,) = answer.tool_calls
        said["tool"] = [call["name"], call["args"]]
    used = answer.usage_metadata
    return said | {"input": used["input_tokens"], "output": used["output_tokens"]}


def whole(chunks: Any) -> Any:
    found = None
    for chunk in chunks:
        found = chunk if found is None else found + chunk
    return found


def plain(asked: Asked) -> Said:
    return message_said(model(asked).invoke(QUESTION))


def stream(asked: Asked) -> Said:
    return message_said(whole(model(asked, stream_usage=True).stream(QUESTION)))


def tools(asked: Asked) -> Said:
    return message_said(model(asked).bind_tools([TOOL | {"title": "weather", "description": "."}]).invoke(QUESTION))


def tools_stream(asked: Asked) -> Said:
    offered = model(asked, stream_usage=True).bind_tools([TOOL | {"title": "weather", "description": "."}])
    return message_said(whole(offered.stream(QUESTION)))


def embeddings(asked: Asked) -> Said:
    """Without its own splitting of long texts: for that it downloads a vocabulary."""
    found = OpenAIEmbeddings(
        base_url=asked["url"], api_key=asked["key"], model=asked["model"], check_embedding_ctx_length=False,
        default_headers=asked.get("headers"),
    )  # fmt: skip
    return {"vectors": found.embed_documents(["one two", "three"])}


DOES = {
    "plain": plain,
    "stream": stream,
    "stream-with-usage": stream,
    "tools": tools,
    "tools-stream": tools_stream,
    "embeddings": embeddings,
}

if __name__ == "__main__":
    answer_lines({"chat": DOES, "responses": DOES})
