// The official JavaScript clients as they come. A line of JSON says which of them is to ask for what, a line of JSON says
// what it saw. It changes nothing about a client, and catches what a caller would catch.
import readline from "node:readline";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { embedMany, generateText, jsonSchema, streamText, tool } from "ai";

const QUESTION = "What is a purse?";
const PARAMETERS = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const WITH_USAGE = { stream_options: { include_usage: true } };

// --- openai -----------------------------------------------------------------------------------------------------------

const openai = (asked) => new OpenAI({ baseURL: asked.url, apiKey: asked.key, defaultHeaders: asked.headers });

async function openaiEmbeddings(asked) {
  const found = await openai(asked).embeddings.create({ model: asked.model, input: ["one two", "three"] });
  return { vectors: found.data.map((each) => each.embedding), input: found.usage.prompt_tokens };
}

async function openaiElsewhere(asked) {
  return { made: await openai(asked).images.generate({ model: "gpt-image-1", prompt: "a purse" }) };
}

const chatOf = (asked) => {
  return { model: asked.model, max_tokens: asked.max_tokens, messages: [{ role: "user", content: QUESTION }] };
};
const chatTools = { tools: [{ type: "function", function: { name: "weather", parameters: PARAMETERS } }] };

function chatSaid(answer) {
  const [choice] = answer.choices;
  const said = { text: choice.message.content, ended: choice.finish_reason };
  const call = choice.message.tool_calls?.[0]?.function;
  if (call) said.tool = [call.name, JSON.parse(call.arguments)];
  return { ...said, input: answer.usage.prompt_tokens, output: answer.usage.completion_tokens };
}

const chat = {
  plain: async (asked) => chatSaid(await openai(asked).chat.completions.create(chatOf(asked))),
  stream: async (asked) => {
    let [text, ended] = ["", null];
    for await (const chunk of await openai(asked).chat.completions.create({ ...chatOf(asked), stream: true })) {
      text += chunk.choices[0].delta.content ?? ""; // throws on the chunk that nobody asked for
      ended = chunk.choices[0].finish_reason ?? ended;
    }
    return { text, ended };
  },
  "stream-with-usage": async (asked) =>
    chatSaid(await openai(asked).chat.completions.stream({ ...chatOf(asked), ...WITH_USAGE }).finalChatCompletion()),
  tools: async (asked) => chatSaid(await openai(asked).chat.completions.create({ ...chatOf(asked), ...chatTools })),
  "tools-stream": async (asked) => {
    const ask = { ...chatOf(asked), ...chatTools, ...WITH_USAGE };
    return chatSaid(await openai(asked).chat.completions.stream(ask).finalChatCompletion());
  },
  embeddings: openaiEmbeddings,
  elsewhere: openaiElsewhere,
};

const responseOf = (asked) => ({ model: asked.model, max_output_tokens: asked.max_tokens, input: QUESTION });
const responseTools = { tools: [{ type: "function", name: "weather", parameters: PARAMETERS, strict: false }] };

function responseSaid(answer) {
  const said = { text: answer.output_text, ended: answer.incomplete_details?.reason ?? answer.status };
  const call = answer.output.find((item) => item.type === "function_call");
  if (call) said.tool = [call.name, JSON.parse(call.arguments)];
  return { ...said, input: answer.usage.input_tokens, output: answer.usage.output_tokens };
}

const responses = {
  plain: async (asked) => responseSaid(await openai(asked).responses.create(responseOf(asked))),
  stream: async (asked) => {
    let [text, last] = ["", null];
    for await (const event of await openai(asked).responses.create({ ...responseOf(asked), stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
      last = event;
    }
    return { text, ended: last.response.incomplete_details?.reason ?? last.response.status };
  },
  "stream-with-usage": async (asked) =>
    responseSaid(await openai(asked).responses.stream(responseOf(asked)).finalResponse()),
  tools: async (asked) => responseSaid(await openai(asked).responses.create({ ...responseOf(asked), ...responseTools })),
  "tools-stream": async (asked) =>
    responseSaid(await openai(asked).responses.stream({ ...responseOf(asked), ...responseTools }).finalResponse()),
  embeddings: openaiEmbeddings,
  elsewhere: openaiElsewhere,
};

// --- anthropic --------------------------------------------------------------------------------------------------------

const anthropic = (asked) => new Anthropic({ baseURL: asked.url, apiKey: asked.key, defaultHeaders: asked.headers });
const messageOf = chatOf;
const messageTools = { tools: [{ name: "weather", input_schema: PARAMETERS }] };

function messageSaid(answer) {
  const text = answer.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const said = { text, ended: answer.stop_reason };
  const call = answer.content.find((block) => block.type === "tool_use");
  if (call) said.tool = [call.name, call.input];
  return { ...said, input: answer.usage.input_tokens, output: answer.usage.output_tokens };
}

const messages = {
  plain: async (asked) => messageSaid(await anthropic(asked).messages.create(messageOf(asked))),
  stream: async (asked) => {
    let [text, ended] = ["", null];
    for await (const event of await anthropic(asked).messages.create({ ...messageOf(asked), stream: true })) {
      if (event.type === "content_block_delta") text += event.delta.text;
      if (event.type === "message_delta") ended = event.delta.stop_reason;
    }
    return { text, ended };
  },
  "stream-with-usage": async (asked) =>
    messageSaid(await anthropic(asked).messages.stream(messageOf(asked)).finalMessage()),
  tools: async (asked) => messageSaid(await anthropic(asked).messages.create({ ...messageOf(asked), ...messageTools })),
  "tools-stream": async (asked) =>
    messageSaid(await anthropic(asked).messages.stream({ ...messageOf(asked), ...messageTools }).finalMessage()),
  elsewhere: async (asked) => {
    const batch = { requests: [{ custom_id: "a", params: messageOf(asked) }] };
    return { made: (await anthropic(asked).messages.batches.create(batch)).id };
  },
};

// --- ai ---------------------------------------------------------------------------------------------------------------

function vercel(modelOf, embedderOf) {
  const askOf = (asked) => {
    const common = { prompt: QUESTION, maxOutputTokens: asked.max_tokens, headers: asked.headers };
    return { model: modelOf(asked), ...common };
  };
  const tools = { weather: tool({ description: "The weather", inputSchema: jsonSchema(PARAMETERS) }) };

  function said(text, ended, usage, [call]) {
    const found = { text, ended, input: usage.inputTokens, output: usage.outputTokens };
    return call ? { ...found, tool: [call.toolName, call.input] } : found;
  }

  async function plain(ask) {
    const answer = await generateText(ask);
    return said(answer.text, answer.finishReason, answer.usage, answer.toolCalls);
  }

  async function stream(ask) {
    let [text, failed] = ["", null];
    const answer = streamText({ ...ask, onError: ({ error }) => (failed = error) });
    for await (const piece of answer.textStream) text += piece;
    if (failed) throw failed;
    return said(text, await answer.finishReason, await answer.usage, await answer.toolCalls);
  }

  const does = {
    plain: (asked) => plain(askOf(asked)),
    stream: (asked) => stream(askOf(asked)),
    "stream-with-usage": (asked) => stream(askOf(asked)),
    tools: (asked) => plain({ ...askOf(asked), tools }),
    "tools-stream": (asked) => stream({ ...askOf(asked), tools }),
  };
  if (embedderOf) {
    does.embeddings = async (asked) => {
      const found = await embedMany({
        model: embedderOf(asked),
        values: ["one two", "three"],
        headers: asked.headers,
      });
      return { vectors: found.embeddings, input: found.usage.tokens };
    };
  }
  return does;
}

const settings = (asked) => ({ baseURL: asked.url, apiKey: asked.key });
const embedder = (asked) => createOpenAI(settings(asked)).embedding(asked.model);
const CLIENTS = {
  "openai-chat": chat,
  "openai-responses": responses,
  anthropic: messages,
  "ai-openai-chat": vercel((asked) => createOpenAI(settings(asked)).chat(asked.model), embedder),
  "ai-openai-responses": vercel((asked) => createOpenAI(settings(asked))(asked.model), embedder),
  "ai-anthropic": vercel((asked) => createAnthropic(settings(asked))(asked.model)),
};

// --- line by line -----------------------------------------------------------------------------------------------------

function seen(error) {
  const kinds = error.name === "Error" ? [] : [error.name];
  for (let kind = error.constructor; kind?.name; kind = Object.getPrototypeOf(kind)) kinds.push(kind.name);
  const last = error.lastError ?? error; // of several tries
  const body = last.responseBody ? JSON.parse(last.responseBody) : (last.error ?? null);
  return { catch: kinds, status: last.status ?? last.statusCode ?? null, body, message: error.message };
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let said;
  try {
    said = await CLIENTS[asked.client][asked.does](asked);
  } catch (error) {
    said = { error: seen(error) };
  }
  console.log(JSON.stringify(said));
}
