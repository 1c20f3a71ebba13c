import type { MCPClient } from '@ai-sdk/mcp';
import type { McpServerConfig } from '../../config/config.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Log } from './ports.ts';
import { type AgentTool, bounded } from './tool.ts';

/** A tool as its server lists it. */
interface ListedTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly inputSchema: object;
  readonly annotations?: { readonly readOnlyHint?: boolean | undefined } | undefined;
}

interface Connection {
  readonly client: MCPClient;
  readonly tools: readonly AgentTool[];
}

const CONNECT_TIMEOUT_MS = 10_000;
const CALL_TIMEOUT_MS = 300_000;
/** As much of the arguments as a question shows. */
const MOST_SHOWN = 1_000;

/** How long a server that could not be reached is left alone: a dead one must not delay every turn. */
const RETRY_AFTER_MS = 60_000;

/**
 * One MCP server of the configuration, connected when a turn first needs the list of tools. While it fails it offers
 * none, the log says so, and it is tried again later.
 */
export class McpServer {
  readonly #name: string;
  readonly #config: McpServerConfig;
  readonly #log: Log;
  #connecting: Promise<Connection | null> | null = null;
  #failedAt: number | null = null;
  #closed = false;

  constructor(name: string, config: McpServerConfig, log: Log) {
    this.#name = name;
    this.#config = config;
    this.#log = log;
  }

  async tools(): Promise<readonly AgentTool[]> {
    if (this.#closed) return [];
    if (this.#failedAt !== null && Date.now() - this.#failedAt < RETRY_AFTER_MS) return [];
    // Turns that start together share one attempt.
    this.#connecting ??= this.#connect();
    return (await this.#connecting)?.tools ?? [];
  }

  async close(): Promise<void> {
    this.#closed = true;
    const connection = await this.#connecting;
    this.#connecting = null;
    await connection?.client
      .close()
      .catch((error: unknown) => this.#tell('an MCP server did not close in order', error));
  }

  async #connect(): Promise<Connection | null> {
    let client: MCPClient | null = null;
    try {
      const { createMCPClient } = await import('@ai-sdk/mcp');
      client = await createMCPClient({
        transport: await transportOf(this.#config),
        clientName: 'moirai',
        initializationOptions: { timeout: CONNECT_TIMEOUT_MS },
        // Notifications that the client does not know come here as well; a connection that is gone shows at the next call.
        onUncaughtError: () => undefined,
      });
      const { tools } = await client.listTools({ options: { timeout: CONNECT_TIMEOUT_MS } });
      this.#failedAt = null;
      return { client, tools: tools.map((tool) => this.#toolOf(tool)) };
    } catch (error) {
      await client?.close().catch(() => undefined);
      this.#lose(error);
      return null;
    }
  }

  /** The connection is gone: what is asked next connects anew, but not at once. */
  #lose(error: unknown): void {
    if (this.#closed) return;
    const lost = this.#connecting;
    this.#connecting = null;
    this.#failedAt = Date.now();
    this.#tell('an MCP server is not available', error);
    lost?.then((connection) => connection?.client.close()).catch(() => undefined);
  }

  #toolOf(tool: ListedTool): AgentTool {
    const asks = !this.#runsUnasked(tool);
    return {
      // Model servers take letters, digits, underscores and dashes, 64 of them.
      name: `${this.#name}__${tool.name}`.replace(/[^\w-]/g, '_').slice(0, 64),
      description: tool.description ?? tool.name,
      inputSchema: tool.inputSchema as Record<string, unknown>,
      parallelSafe: false,
      dangerous: (args) => (asks ? actionOf(tool.name, args) : null),
      run: (args, { signal }) => this.#call(tool.name, args, signal),
    };
  }

  /**
   * What a server says of its own tools is believed, as the server is: whoever configured it runs its program. A tool of
   * which it says nothing may do anything.
   */
  #runsUnasked({ name, annotations }: ListedTool): boolean {
    const { allowTools } = this.#config;
    return annotations?.readOnlyHint === true || allowTools.includes(name) || allowTools.includes('*');
  }

  async #call(name: string, args: unknown, signal: AbortSignal): Promise<string> {
    const connection = await this.#connecting;
    if (connection === null) throw new MoiraiError('tool_failed', `the MCP server ${this.#name} is not available`);
    const options = { signal, timeout: CALL_TIMEOUT_MS };
    const given = typeof args === 'object' && args !== null ? { ...args } : {};
    const call = connection.client.callTool({ name, arguments: given, options });
    const result = await call.catch((error: unknown) => {
      // An error with a code is the server's own answer: it lives.
      if (!signal.aborted && (error as { code?: unknown }).code === undefined) this.#lose(error);
      throw MoiraiError.wrap(error, 'tool_failed');
    });
    const text = bounded(textOf(result));
    if (result.isError === true) throw new MoiraiError('tool_failed', text);
    return text;
  }

  #tell(what: string, error: unknown): void {
    this.#log.warn(what, { server: this.#name, error });
  }
}

/** What a person is asked: the tool and what it is given. */
function actionOf(name: string, args: unknown): string {
  const given = JSON.stringify(args) ?? '';
  return `${name} ${given.length > MOST_SHOWN ? `${given.slice(0, MOST_SHOWN)}...` : given}`;
}

async function transportOf({ command, args, env, url, headers }: McpServerConfig) {
  if (command !== null) {
    const { StdioMCPTransport } = await import('@ai-sdk/mcp/mcp-stdio');
    return new StdioMCPTransport({ command, args: [...args], env: { ...env }, stderr: 'ignore' });
  }
  if (url === null) throw new MoiraiError('config_invalid', 'an MCP server needs a command or a url');
  return { type: 'http' as const, url, headers: { ...headers } };
}

/** What a result says; images and the like are only named, since a transcript keeps text. */
function textOf(result: unknown): string {
  const { content, structuredContent } = result as { content?: unknown; structuredContent?: unknown };
  const parts = Array.isArray(content) ? content : [];
  const texts = parts.map((part: { type?: string; text?: string }) => part.text ?? `[${part.type ?? 'content'}]`);
  if (texts.length > 0) return texts.join('\n');
  return JSON.stringify(structuredContent ?? result);
}
