import type { ServerResponse } from 'node:http';
import { type HttpFake, type RecordedRequest, sendJson, startHttpFake } from './http-fake.ts';

/** A memory service on loopback; while `status` is set, it answers with that and does nothing. */
export interface MemoryService extends HttpFake {
  status: number | null;
}

type Body = Record<string, unknown>;
type Answer = (request: RecordedRequest, body: Body) => { status: number; body: unknown };

async function startService(answer: Answer): Promise<MemoryService> {
  const fake = await startHttpFake(async (request, response: ServerResponse) => {
    if (service.status !== null) return sendJson(response, service.status, { error: 'not now' });
    const { status, body } = answer(request, request.body as unknown as Body);
    sendJson(response, status, body);
  });
  const service: MemoryService = Object.assign(fake, { status: null });
  return service;
}

const ok = (body: unknown) => ({ status: 200, body });
const refused = (status: number) => ({ status, body: { error: 'refused' } });

interface Mem0Entry {
  readonly user: string;
  readonly text: string;
  readonly eventId: unknown;
}

/** Mem0's hosted interface, version 3: entities of a search are in its filters, and nowhere else. */
export async function startMem0(key: string): Promise<MemoryService & { entries: Mem0Entry[] }> {
  const entries: Mem0Entry[] = [];
  const add = (body: Body) => {
    const messages = body.messages as { role: string; content: string }[];
    const eventId = (body.metadata as Body | undefined)?.event_id;
    if (typeof body.user_id !== 'string' || !Array.isArray(messages)) return refused(400);
    for (const { content } of messages) entries.push({ user: body.user_id, text: content, eventId });
    return ok({ message: 'queued', status: 'PENDING', event_id: `evt-${entries.length}` });
  };
  const search = (body: Body) => {
    if ('user_id' in body || typeof body.query !== 'string') return refused(400);
    const filters = body.filters as Body;
    const all = (filters.AND as Body[] | undefined) ?? [filters];
    const user = all.find((each) => 'user_id' in each)?.user_id;
    if (user === undefined) return refused(400);
    const eventId = (all.find((each) => 'metadata' in each)?.metadata as Body | undefined)?.event_id;
    const words = (body.query as string).toLowerCase().split(/\W+/);
    const fits = (entry: Mem0Entry) =>
      entry.user === user &&
      (eventId === undefined
        ? words.some((word) => word.length > 3 && entry.text.toLowerCase().includes(word))
        : entry.eventId === eventId);
    const results = entries.filter(fits).slice(0, body.top_k as number);
    return ok({ results: results.map(({ text }, i) => ({ id: `mem-${i}`, memory: text, user_id: user, score: 0.9 })) });
  };
  const service = await startService(({ method, path, headers }, body) => {
    if (headers.authorization !== `Token ${key}`) return refused(401);
    if (method === 'POST' && path === '/v3/memories/add/') return add(body);
    if (method === 'POST' && path === '/v3/memories/search/') return search(body);
    return refused(404);
  });
  return Object.assign(service, { entries });
}

interface HonchoMessage {
  readonly peer_id: string;
  readonly content: string;
}

/** Honcho's interface, version 3: workspaces hold peers and sessions, sessions hold messages, a hundred at once. */
export async function startHoncho(key: string): Promise<MemoryService & { sessions: Map<string, HonchoMessage[]> }> {
  const sessions = new Map<string, HonchoMessage[]>();
  const workspaces = new Set<string>();
  const isName = (name: unknown): name is string => typeof name === 'string' && /^[A-Za-z0-9_-]{1,100}$/.test(name);
  const inSession = (id: string, rest: string, body: Body) => {
    const known = sessions.get(id);
    if (known === undefined) return refused(404);
    if (rest === '/list') return ok({ items: known.slice(0, 1), total: known.length, page: 1, size: 1 });
    const messages = body.messages as HonchoMessage[];
    if (messages.length < 1 || messages.length > 100) return refused(422);
    if (messages.some(({ content, peer_id }) => content.length > 25_000 || !isName(peer_id))) return refused(422);
    known.push(...messages);
    return { status: 201, body: messages };
  };
  const representation = (peer: string) => {
    const said = [...sessions.values()].flat().filter(({ peer_id }) => peer_id === peer);
    if (said.length === 0) return refused(404);
    return ok({ representation: said.map(({ content }) => `- ${content}`).join('\n') });
  };
  const service = await startService(({ path, headers }, body) => {
    if (headers.authorization !== `Bearer ${key}`) return refused(401);
    const [, workspace, rest = ''] = /^\/v3\/workspaces(?:\/([^/?]+))?(\/[^?]*)?/.exec(path) ?? [];
    if (workspace === undefined) {
      if (!isName(body.id)) return refused(422);
      workspaces.add(body.id);
      return ok({ id: body.id });
    }
    if (!workspaces.has(workspace)) return refused(404);
    if (rest === '/sessions') {
      if (!isName(body.id) || !Object.keys(body.peers as Body).every(isName)) return refused(422);
      if (!sessions.has(body.id)) sessions.set(body.id, []);
      return ok({ id: body.id });
    }
    const [, session, under = ''] = /^\/sessions\/([^/]+)\/messages(\/list)?$/.exec(rest) ?? [];
    if (session !== undefined) return inSession(session, under, body);
    const [, peer] = /^\/peers\/([^/]+)\/representation$/.exec(rest) ?? [];
    return peer === undefined ? refused(404) : representation(peer);
  });
  return Object.assign(service, { sessions });
}

interface Document {
  readonly content: string;
  readonly containerTag: string;
}

/** Supermemory's interface: documents with an id of one's own, in containers that never mix. */
export async function startSupermemory(key: string): Promise<MemoryService & { documents: Map<string, Document> }> {
  const documents = new Map<string, Document>();
  const isTag = (tag: unknown): tag is string => typeof tag === 'string' && /^[A-Za-z0-9_-]{1,100}$/.test(tag);
  const add = ({ content, containerTag, customId }: Body) => {
    if (typeof content !== 'string' || !isTag(containerTag) || !isTag(customId)) return refused(400);
    documents.set(customId, { content, containerTag });
    return ok({ id: `doc-${documents.size}`, status: 'queued' });
  };
  const search = ({ q, containerTag, limit }: Body) => {
    if (typeof q !== 'string' || !isTag(containerTag)) return refused(400);
    const words = q
      .toLowerCase()
      .split(/\W+/)
      .filter((word) => word.length > 3);
    const fits = (document: Document) =>
      document.containerTag === containerTag && words.some((word) => document.content.toLowerCase().includes(word));
    const found = [...documents.values()].filter(fits).slice(0, limit as number);
    const results = found.map(({ content }, i) =>
      i % 2 ? { id: `${i}`, chunk: content, similarity: 0.8 } : { id: `${i}`, memory: content, similarity: 0.9 },
    );
    return ok({ results, timing: 1, total: results.length });
  };
  const service = await startService(({ path, headers }, body) => {
    if (headers.authorization !== `Bearer ${key}`) return refused(401);
    if (path === '/v3/documents') return add(body);
    return path === '/v4/search' ? search(body) : refused(404);
  });
  return Object.assign(service, { documents });
}
