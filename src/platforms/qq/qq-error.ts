import type { Fields } from '../fields.ts';

/** The server answered, and not as it should: by a status, by a code of its own, or by both. */
export class QqError extends Error {
  readonly status: number;
  /** 0 when it says none. */
  readonly code: number;
  /** How long it asks to wait, in milliseconds; null when it does not say. */
  readonly waitMs: number | null;
  readonly body: Fields;

  constructor(message: string, status: number, code: number, waitMs: number | null = null, body: Fields = {}) {
    super(message);
    this.name = 'QqError';
    this.status = status;
    this.code = code;
    this.waitMs = waitMs;
    this.body = body;
  }
}

/** No access token is given for this AppID and AppSecret. */
export class CredentialRefused extends QqError {}

/** The socket to the gateway is closed, or never was one. */
export class GatewayClosed extends Error {
  /** As WebSockets number reasons; 0 for a reason of ours. */
  readonly code: number;

  constructor(message: string, code = 0) {
    super(message);
    this.name = 'GatewayClosed';
    this.code = code;
  }
}
