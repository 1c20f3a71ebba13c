import { z } from 'zod';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { MemoryTool, MemoryToolContext } from './provider.ts';

interface ToolDefinition<Schema extends z.ZodType> {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  run(args: z.output<Schema>, context: MemoryToolContext): Promise<string>;
}

/** A tool whose arguments are checked before it sees them. */
export function defineMemoryTool<Schema extends z.ZodType>(definition: ToolDefinition<Schema>): MemoryTool {
  const { name, description, schema } = definition;
  const { $schema: _, ...inputSchema } = z.toJSONSchema(schema, { io: 'input' });
  return {
    ...{ name, description, inputSchema },
    run: async (args, context) => {
      const parsed = schema.safeParse(args);
      if (parsed.success) return definition.run(parsed.data, context);
      throw new MoiraiError('tool_failed', `the arguments are not right (${z.prettifyError(parsed.error)})`);
    },
  };
}
