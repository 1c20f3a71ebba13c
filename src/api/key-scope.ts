import type { MiddlewareHandler } from 'hono';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { ApiScope } from '../lifecycle/api-scopes.ts';
import { namespaceOf, type Within } from '../lifecycle/namespace.ts';
import type { ApiCaller } from '../people/api-keys.ts';
import type { ApiContext, ApiEnv } from './api.ts';
import type { ChatCaller } from './backend.ts';

/** Which scopes of a key open a route, beside `admin`. Every route declares one of these. */
export const ROUTE_ACCESS = {
  /** Needs no key at all: for probes, and for platforms that prove themselves. */
  open: { scopes: [], own: false, says: 'no key is needed' },
  /** Any key that counts: nothing in the answer is anybody's. */
  any: { scopes: ['chat', 'read'], own: false, says: 'any key' },
  /** Shows conversations: `chat` sees its own, `read` sees all of them. */
  see: { scopes: ['chat', 'read'], own: true, says: '`chat` its own, `read` all' },
  /** Says or changes something: `chat` in its own conversations. */
  chat: { scopes: ['chat'], own: true, says: '`chat` its own' },
  /** Shows what is not of one conversation. */
  read: { scopes: ['read'], own: false, says: '`read`' },
  /** Changes what is not of one conversation. */
  admin: { scopes: [], own: false, says: '`admin`' },
} as const satisfies Record<string, { scopes: readonly ApiScope[]; own: boolean; says: string }>;

export type RouteAccess = keyof typeof ROUTE_ACCESS;

/** Refuses a key whose scopes do not open the route, and says which conversations the request is about. */
export function requireScope(access: RouteAccess): MiddlewareHandler<ApiEnv> {
  return (c, next) => {
    if (access === 'open') return next();
    const caller = c.get('caller');
    const opened = opening(caller, access);
    if (!opened) {
      const has = caller.scopes.join(', ');
      const needs = [...ROUTE_ACCESS[access].scopes, 'admin'].join(' or ');
      throw new MoiraiError('forbidden_scope', `the key "${caller.name}" has the scope ${has}; this needs ${needs}`);
    }
    c.set('within', reach(caller, access));
    return next();
  };
}

function opening({ scopes }: ApiCaller, access: RouteAccess): boolean {
  const opens: readonly ApiScope[] = ROUTE_ACCESS[access].scopes;
  return scopes.includes('admin') || scopes.some((scope) => opens.includes(scope));
}

function reach(caller: ApiCaller, access: RouteAccess): Within {
  const everything = caller.scopes.includes('admin') || (access === 'see' && caller.scopes.includes('read'));
  const namespace = namespaceFor(caller);
  return everything || namespace === null ? null : namespaceOf(namespace);
}

/** Whose conversations a caller names: an admin's are nobody's in particular, every other key that talks has its own. */
function namespaceFor({ name, scopes }: ApiCaller): string | null {
  return scopes.includes('chat') && !scopes.includes('admin') ? name : null;
}

/** Who says what a request brings. */
export function callerOf(c: ApiContext): ChatCaller {
  const caller = c.get('caller');
  const { credential, scopes } = caller;
  return { credential, namespace: namespaceFor(caller), admin: scopes.includes('admin') };
}
