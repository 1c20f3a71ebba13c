import { z } from 'zod';
import type { SessionKind } from '../../lifecycle/states.ts';
import { GATE_NAMES, MEMORY_METHODS } from './names.ts';

/** The argument of `load`: what a plugin's process loads. */
export interface PluginTask {
  readonly name: string;
  readonly folder: string;
  readonly home: string;
  readonly main: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** What plugin.yaml says of its gates. */
  readonly gates: readonly GateOffer[];
}

const name = z.string();
const tool = z.object({ name, description: z.string(), inputSchema: z.record(z.string(), z.unknown()) });
const gate = z.object({
  gate: z.enum(GATE_NAMES),
  /** Null leaves it to `gates.timeout`. */
  timeoutMs: z.number().nullable(),
  onFailure: z.enum(['open', 'closed']),
});

/** What a plugin registered. It comes from another process, in which the plugin can do what it likes: so it is checked. */
export const OFFER = z.object({
  /** The types of the log that its observers want, each once. */
  events: z.array(z.string()),
  hearsTools: z.boolean(),
  gates: z.array(gate),
  tools: z.array(
    tool.extend({
      parallelSafe: z.boolean(),
      /** Null: never. A text: always. `depends`: it has to be asked. */
      danger: z.union([z.object({ text: z.string() }), z.literal('depends'), z.null()]),
    }),
  ),
  commands: z.array(z.object({ name, takes: z.string().exactOptional(), summary: z.string() })),
  memoryProviders: z.array(
    z.object({
      name,
      kinds: z.custom<SessionKind[]>(Array.isArray).exactOptional(),
      methods: z.array(z.enum(MEMORY_METHODS)),
      tools: z.array(tool),
    }),
  ),
  platforms: z.array(z.object({ name, maxText: z.number(), markdown: z.boolean() })),
});

export type Offer = z.infer<typeof OFFER>;
export type GateOffer = Offer['gates'][number];
export type ToolOffer = Offer['tools'][number];
export type MemoryOffer = Offer['memoryProviders'][number];
export type PlatformOffer = Offer['platforms'][number];
