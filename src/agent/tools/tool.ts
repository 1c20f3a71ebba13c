import { z } from 'zod';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { TurnTask } from '../runner.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** On whose behalf a tool asks: what a port may show or do depends on it. */
export type Asker = Pick<TurnTask, 'sessionId' | 'turnId' | 'platform' | 'userId'>;

/** The signal aborts with the turn. */
export type ToolContext = Asker & Pick<TurnTask, 'signal'>;

/** Something the model may do. */
export interface AgentTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  /** Changes nothing, so that several calls of one step may run at the same time. */
  readonly parallelSafe: boolean;
  /** What a person has to allow first, in one line; null when it may run without asking. */
  dangerous(args: unknown): string | null;
  /** What the model reads. Throws when it failed, with a message for the model. */
  run(args: unknown, context: ToolContext): Promise<string>;
}

/** Tools by name. It is the same map while the tools are the same: what was made of it can be kept. */
export type ToolSet = ReadonlyMap<string, AgentTool>;

interface ToolDefinition<Schema extends z.ZodType> extends Pick<AgentTool, 'name' | 'description'> {
  readonly schema: Schema;
  readonly parallelSafe?: boolean;
  dangerous?(args: z.output<Schema>): string | null;
  run(args: z.output<Schema>, context: ToolContext): Promise<string>;
}

/** A tool whose arguments are checked before it sees them. */
export function defineTool<Schema extends z.ZodType>(definition: ToolDefinition<Schema>): AgentTool {
  const { name, description, schema, parallelSafe = false } = definition;
  const { $schema: _, ...inputSchema } = z.toJSONSchema(schema, { io: 'input' });
  return {
    ...{ name, description, parallelSafe, inputSchema },
    dangerous: (args) => definition.dangerous?.(checked(schema, args)) ?? null,
    run: async (args, context) => definition.run(checked(schema, args), context),
  };
}

function checked<Schema extends z.ZodType>(schema: Schema, args: unknown): z.output<Schema> {
  const result = schema.safeParse(args);
  if (result.success) return result.data;
  const faults = result.error.issues.map(({ path, message }) => `${path.join('.') || 'arguments'}: ${message}`);
  throw new MoiraiError('tool_failed', `the arguments are not right (${faults.join('; ')})`);
}

/** Both ends of a text that is too long; the middle is what can be missed best. */
export function bounded(text: string): string {
  if (text.length <= MAX_RESULT) return text;
  const half = MAX_RESULT / 2;
  return `${text.slice(0, half)}\n[... ${text.length - 2 * half} characters left out ...]\n${text.slice(-half)}`;
}

const MAX_RESULT = 32_000;
