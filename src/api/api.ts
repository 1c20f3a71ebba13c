import type { HttpBindings } from '@hono/node-server';
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Engine } from '../engine/engine.ts';
import type { Within } from '../lifecycle/namespace.ts';
import type { Logger } from '../log/logger.ts';
import type { ApiCaller } from '../people/api-keys.ts';
import type { ApiBackend } from './backend.ts';
import type { EventTail } from './event-tail.ts';

/** What every request carries beside itself. */
export interface ApiEnv {
  Bindings: HttpBindings;
  Variables: {
    caller: ApiCaller;
    /** Which conversations the caller reaches by this route. */
    within: Within;
  };
}

export type Api = OpenAPIHono<ApiEnv>;
export type ApiContext = Context<ApiEnv>;

/** What the routes work with. */
export interface ApiParts {
  readonly backend: ApiBackend;
  readonly engine: Engine;
  readonly tail: EventTail;
  readonly log: ApiLog;
  readonly version: string;
  /** Aborted when the server closes: streams end then. */
  readonly closing: AbortSignal;
}

/** The part of a logger that HTTP needs. */
export type ApiLog = Pick<Logger, 'error' | 'warn'>;
