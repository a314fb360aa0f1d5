// One call by one of the official JavaScript clients, as they come, with nothing changed but the address.
// node clients.mjs '{"client":"openai","does":"stream","url":"...","key":"...","model":"...","max_tokens":100}'
// Prints one line of JSON: how many requests were sent, the text, why it ended, or the error as the client sees it.
const asked = JSON.parse(process.argv[2]);
const QUESTION = "What is a purse?";
let requests = 0;
const counting = (...args) => {
  requests += 1;
  return fetch(...args);
};

async function openaiChat(stream) {
  const { default: OpenAI } = await import("openai"); // each only where it is used: loading all takes seconds
  const client = new OpenAI({ baseURL: asked.url, apiKey: asked.key, fetch: counting });
  const ask = { model: asked.model, max_tokens: asked.max_tokens, messages: [{ role: "user", content: QUESTION }] };
  if (!stream) {
    const answer = await client.chat.completions.create(ask);
    const [choice] = answer.choices;
    return { text: choice.message.content, ended: choice.finish_reason, tokens: answer.usage.completion_tokens };
  }
  let [text, ended, tokens] = ["", null, null];
  for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) {
    text += chunk.choices[0].delta.content ?? ""; // throws on the chunk that was not asked for
    ended = chunk.choices[0].finish_reason ?? ended;
    tokens = chunk.usage?.completion_tokens ?? tokens;
  }
  return { text, ended, tokens };
}

async function openaiResponses(stream) {
  const { default: OpenAI } = await import("openai");
  const client = new OpenAI({ baseURL: asked.url, apiKey: asked.key, fetch: counting });
  const ask = { model: asked.model, max_output_tokens: asked.max_tokens, input: QUESTION };
  const answer = stream ? await client.responses.stream(ask).finalResponse() : await client.responses.create(ask);
  return { text: answer.output_text, ended: answer.status, tokens: answer.usage.output_tokens };
}

async function anthropicMessages(stream) {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const client = new Anthropic({ baseURL: asked.url, apiKey: asked.key, fetch: counting });
  const ask = { model: asked.model, max_tokens: asked.max_tokens, messages: [{ role: "user", content: QUESTION }] };
  const answer = stream ? await client.messages.stream(ask).finalMessage() : await client.messages.create(ask);
  return { text: answer.content[0].text, ended: answer.stop_reason, tokens: answer.usage.output_tokens };
}

async function vercel(model, stream) {
  const { generateText, streamText } = await import("ai");
  const ask = { model, prompt: QUESTION, maxOutputTokens: asked.max_tokens };
  if (!stream) {
    const answer = await generateText(ask);
    return { text: answer.text, ended: answer.finishReason, tokens: answer.usage.outputTokens };
  }
  let failed = null;
  const answer = streamText({ ...ask, onError: ({ error }) => (failed = error) });
  let text = "";
  for await (const piece of answer.textStream) text += piece;
  if (failed) throw failed;
  return { text, ended: await answer.finishReason, tokens: (await answer.usage).outputTokens };
}

const settings = { baseURL: asked.url, apiKey: asked.key, fetch: counting };
const vercelOpenAI = async () => (await import("@ai-sdk/openai")).createOpenAI(settings);
const vercelAnthropic = async () => (await import("@ai-sdk/anthropic")).createAnthropic(settings);
const CLIENTS = {
  "openai-chat": openaiChat,
  "openai-responses": openaiResponses,
  anthropic: anthropicMessages,
  "ai-openai-chat": async (stream) => vercel((await vercelOpenAI()).chat(asked.model), stream),
  "ai-openai-responses": async (stream) => vercel((await vercelOpenAI())(asked.model), stream),
  "ai-anthropic": async (stream) => vercel((await vercelAnthropic())(asked.model), stream),
};

function seen(error) {
  const status = error.status ?? error.statusCode ?? null;
  return { name: error.name ?? null, kind: error.constructor.name, status, message: error.message };
}

let said;
try {
  said = await CLIENTS[asked.client](asked.does === "stream");
} catch (error) {
  said = { error: seen(error) };
}
console.log(JSON.stringify({ requests, ...said }));
