import { type ModelMessage, type ModelRequest, oncePerSet, type UserPart } from './model-api.ts';

/** The body of a streamed chat completion. What stays the same from turn to turn comes first, so that servers recognise it. */
export function chatCompletionBody({ model, system, messages, tools, maxTokens }: ModelRequest): string {
  const first = system === '' ? [] : [{ role: 'system', content: system }];
  const limit = maxTokens === undefined ? '' : `"max_tokens":${maxTokens},`;
  const said = JSON.stringify([...first, ...messages.flatMap(wireMessages)]);
  return `{"model":${JSON.stringify(model)},${limit}"messages":${said},${offerOf(tools)}${STREAMED}}`;
}

const STREAMED = '"stream":true,"stream_options":{"include_usage":true}';

function wireMessages(message: ModelMessage): object[] {
  switch (message.role) {
    case 'user':
      return [{ role: 'user', content: userContent(message.content) }];
    case 'tool':
      return message.content.map(({ toolCallId, output }) => ({
        role: 'tool',
        tool_call_id: toolCallId,
        content: output.value,
      }));
    case 'assistant':
      return [assistantMessage(message.content)];
  }
}

function userContent(content: string | readonly UserPart[]): string | object[] {
  if (typeof content === 'string') return content;
  return content.map((part) => {
    if (part.type === 'text') return part;
    const base64 = Buffer.from(part.bytes).toString('base64');
    return { type: 'image_url', image_url: { url: `data:${part.mime};base64,${base64}` } };
  });
}

function assistantMessage(content: Extract<ModelMessage, { role: 'assistant' }>['content']): object {
  if (typeof content === 'string') return { role: 'assistant', content };
  let text = '';
  const calls: object[] = [];
  for (const part of content) {
    if (part.type === 'text') text += part.text;
    else {
      const called = { name: part.toolName, arguments: JSON.stringify(part.input) };
      calls.push({ id: part.toolCallId, type: 'function', function: called });
    }
  }
  return calls.length === 0
    ? { role: 'assistant', content: text }
    : { role: 'assistant', content: text || null, tool_calls: calls };
}

/** The tools as text. */
const offerOf = oncePerSet((tools) => {
  const functions = [...tools.values()].map(({ name, description, inputSchema }) => ({
    type: 'function',
    function: { name, description, parameters: inputSchema },
  }));
  return functions.length === 0 ? '' : `"tools":${JSON.stringify(functions)},"tool_choice":"auto",`;
});
