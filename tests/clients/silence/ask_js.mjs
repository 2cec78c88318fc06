// The SDKs for JavaScript: OpenAI's, Anthropic's and Vercel's AI SDK. Asks in all ways at once, as `asking.py` does.
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { generateText, streamText } from 'ai';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createAnthropic } from '@ai-sdk/anthropic';

const base = process.env.BASE_URL;
const silence = Number(process.env.SILENCE);
const model = 'stub-model';
const apiKey = 'sk-dummy';
const baseURL = `${base}/v1`;
const messages = [{ role: 'user', content: 'hi' }];
const openai = new OpenAI({ baseURL, apiKey });
const anthropic = new Anthropic({ baseURL: base, apiKey });

const text = (message) => message.content.map((block) => block.text ?? '').join('');
const joined = async (stream, piece) => {
  let all = '';
  for await (const part of stream) all += piece(part) ?? '';
  return all;
};

const ways = {
  'openai-js chat': async () => (await openai.chat.completions.create({ model, messages })).choices[0].message.content,
  'openai-js chat stream': async () =>
    joined(await openai.chat.completions.create({ model, messages, stream: true }), (chunk) => chunk.choices[0]?.delta?.content),
  'openai-js responses': async () => (await openai.responses.create({ model, input: 'hi' })).output_text,
  'openai-js responses stream': async () =>
    joined(await openai.responses.create({ model, input: 'hi', stream: true }), (event) =>
      event.type === 'response.output_text.delta' ? event.delta : ''),
  'anthropic-js': async () => text(await anthropic.messages.create({ model, max_tokens: 50, messages })),
  'anthropic-js stream': async () => text(await anthropic.messages.stream({ model, max_tokens: 50, messages }).finalMessage()),
};
const kinds = {
  chat: createOpenAI({ baseURL, apiKey }).chat(model),
  responses: createOpenAI({ baseURL, apiKey }).responses(model),
  compatible: createOpenAICompatible({ name: 'ours', baseURL, apiKey })(model),
  anthropic: createAnthropic({ baseURL, apiKey })(model),
};
for (const [name, kind] of Object.entries(kinds)) {
  ways[`ai-sdk ${name}`] = async () => (await generateText({ model: kind, prompt: 'hi' })).text;
  ways[`ai-sdk ${name} stream`] = async () => {
    let broken;
    const answer = streamText({ model: kind, prompt: 'hi', onError: ({ error }) => { broken = error; } });
    const all = await joined(answer.textStream, (piece) => piece);
    if (broken) throw broken;
    return all;
  };
}

let failed = false;
await Promise.all(Object.entries(ways).map(async ([name, way]) => {
  const begun = performance.now();
  let answer;
  let right = false;
  try {
    answer = await way();
    right = /Hello/.test(answer);
  } catch (error) {
    answer = `${error?.constructor?.name}: ${error?.message} ${error?.cause ?? ''}`;
  }
  const took = (performance.now() - begun) / 1000;
  right &&= took >= silence;
  failed ||= !right;
  console.log(`${right ? 'PASS' : 'FAIL'} ${name} ${took.toFixed(1)} s ${answer}`);
}));
process.exitCode = failed ? 1 : 0;
