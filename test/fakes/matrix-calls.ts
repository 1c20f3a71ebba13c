import type { IncomingMessage } from 'node:http';

export interface MatrixCall {
  /** As the routes below name it. */
  readonly name: string;
  readonly method: string;
  /** What stands in the path, in order. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly body: Buffer;
  readonly authorization: string;
}

const CLIENT = '/_matrix/client/v3';
const ROUTES: readonly (readonly [name: string, path: RegExp])[] = [
  ['whoami', route(`${CLIENT}/account/whoami`)],
  ['profile', route(`${CLIENT}/profile/*/displayname`)],
  ['account_data', route(`${CLIENT}/user/*/account_data/*`)],
  ['sync', route(`${CLIENT}/sync`)],
  ['joined_rooms', route(`${CLIENT}/joined_rooms`)],
  ['join', route(`${CLIENT}/join/*`)],
  ['leave', route(`${CLIENT}/rooms/*/leave`)],
  ['messages', route(`${CLIENT}/rooms/*/messages`)],
  ['joined_members', route(`${CLIENT}/rooms/*/joined_members`)],
  ['event', route(`${CLIENT}/rooms/*/event/*`)],
  ['state', route(`${CLIENT}/rooms/*/state/*`)],
  ['send', route(`${CLIENT}/rooms/*/send/*/*`)],
  ['redact', route(`${CLIENT}/rooms/*/redact/*/*`)],
  ['typing', route(`${CLIENT}/rooms/*/typing/*`)],
  ['receipt', route(`${CLIENT}/rooms/*/receipt/m.read/*`)],
  ['relations', route('/_matrix/client/v1/rooms/*/relations/*/m.annotation/m.reaction')],
  ['upload', route('/_matrix/media/v3/upload')],
  ['download', route('/_matrix/client/v1/media/download/*/*')],
  ['old_download', route('/_matrix/media/v3/download/*/*')],
];

function route(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('*', '([^/]+)')}$`);
}

/** Reads a request, and which call of the protocol it is; without a name if it is none. */
export async function readCall(request: IncomingMessage): Promise<MatrixCall> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const url = new URL(request.url ?? '/', 'http://fake');
  const path = url.pathname.replace(/\/$/, '');
  const [name, match] = ROUTES.flatMap(([each, pattern]): [string, RegExpExecArray][] => {
    const found = pattern.exec(path);
    return found === null ? [] : [[each, found]];
  })[0] ?? ['', null];
  const { method = 'GET', headers } = request;
  const parts = (match ?? []).slice(1).map((part) => decodeURIComponent(part));
  return {
    name,
    method,
    parts,
    query: url.searchParams,
    body: Buffer.concat(chunks),
    authorization: headers.authorization ?? '',
  };
}
