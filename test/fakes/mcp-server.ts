import { createInterface } from 'node:readline';
import { type HttpFake, sendJson, startHttpFake } from './http-fake.ts';

/**
 * A small MCP server: `add` adds and only reads, `fail` reports an error, `crash` ends the process. Run as a script it speaks on standard
 * input and output, one JSON-RPC message a line.
 */
const number = { type: 'number' };
const TOOLS = [
  {
    name: 'add',
    description: 'Adds two numbers.',
    inputSchema: { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] },
    annotations: { readOnlyHint: true },
  },
  { name: 'fail', description: 'Always fails.', inputSchema: { type: 'object', properties: {} } },
  { name: 'crash', description: 'Ends the server.', inputSchema: { type: 'object', properties: {} } },
  {
    name: 'erase',
    description: 'Erases everything.',
    inputSchema: { type: 'object', properties: {} },
    annotations: { readOnlyHint: false, destructiveHint: true },
  },
];

interface Call {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: {
    readonly name?: string;
    readonly arguments?: Record<string, unknown>;
    readonly protocolVersion?: string;
  };
}

function resultOf({ method, params }: Call): unknown {
  if (method === 'initialize') {
    const protocolVersion = params?.protocolVersion ?? '2025-06-18';
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'fake', version: '1.0.0' } };
  }
  if (method === 'tools/list') return { tools: TOOLS };
  if (method === 'tools/call') return callTool(params?.name, params?.arguments ?? {});
  return method === 'ping' ? {} : null;
}

function callTool(name: string | undefined, args: Record<string, unknown>): unknown {
  if (name === 'crash') process.exit(1);
  if (name === 'erase') return { content: [{ type: 'text', text: 'erased' }] };
  if (name === 'add') return { content: [{ type: 'text', text: String(Number(args.a) + Number(args.b)) }] };
  return { content: [{ type: 'text', text: 'it always fails' }], isError: true };
}

function answerTo(call: Call): object {
  const result = resultOf(call);
  const answer = result === null ? { error: { code: -32601, message: 'no such method' } } : { result };
  return { jsonrpc: '2.0', id: call.id, ...answer };
}

/** The same over HTTP. */
export async function startMcpServer(): Promise<HttpFake> {
  return startHttpFake(async ({ method, body }, response) => {
    const call = body as unknown as Call;
    if (method !== 'POST') response.writeHead(405).end();
    else if (call.id === undefined) response.writeHead(202).end();
    else sendJson(response, 200, answerTo(call));
  });
}

if (import.meta.main) {
  for await (const line of createInterface({ input: process.stdin })) {
    const call = JSON.parse(line) as Call;
    if (call.id !== undefined) process.stdout.write(`${JSON.stringify(answerTo(call))}\n`);
  }
}
