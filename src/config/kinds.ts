import { isIPv4, isIPv6 } from 'node:net';
import { resolve } from 'node:path';
import { hasCode } from '../errors/moirai-error.ts';
import { assertPattern } from '../lifecycle/events.ts';
import { DEFAULT_RESET_RULES, type ResetPolicy, validatePolicy } from '../lifecycle/reset-policy.ts';
import type { Kind } from '../settings/declaration.ts';
import { address, fault, faultOf, identifier, kind, text, textLike } from '../settings/kinds.ts';
import { patternFault } from './command-pattern.ts';

/** One field of a reset policy: the lifecycle itself says what it takes. */
export function policyField<F extends keyof ResetPolicy>(field: F): Kind<ResetPolicy[F]> {
  return kind((value) => {
    const policy: Record<keyof ResetPolicy, unknown> = { ...DEFAULT_RESET_RULES.reset, [field]: value };
    try {
      validatePolicy(policy);
      return policy[field];
    } catch (thrown) {
      throw faultOf(thrown);
    }
  });
}

/** `true` and `false` were the only two, and still mean what they meant. */
export const notifyMode = kind((value, context) => {
  const mode = value === true || value === 'true' ? 'at_once' : value === false || value === 'false' ? 'never' : value;
  return policyField('notify').read(mode, context);
});

/** The IANA name of a zone; null for the one this machine lives in. */
export const timezone = kind((value, context) =>
  value === null ? machineZone() : policyField('timezone').read(value, context),
);

function machineZone(): string {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  // What a machine without a zone answers is no name that can be given back to it.
  return timeZone === 'Etc/Unknown' ? 'UTC' : timeZone;
}

export const eventPattern = kind((value, context) => {
  const pattern = text.read(value, context);
  try {
    assertPattern(pattern);
    return pattern;
  } catch (thrown) {
    const nearest = hasCode(thrown, 'unknown_event') ? `; did you mean "${thrown.details.nearest}"?` : '';
    throw fault(`no event${nearest}`);
  }
});

export const storeUrl = address(
  textLike(
    (url) => /^sqlite:./.test(url) || (/^postgres(ql)?:\/\//.test(url) && URL.canParse(url)),
    'no store; use sqlite:<file> or postgres://user:password@host/database',
  ),
);

export const signingSecret = textLike(
  (secret) => /^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret),
  'not whsec_ followed by base64',
);

/** A key that nobody guesses. */
export const longKey = textLike((key) => key.length >= 20, 'too short: a key has at least 20 characters');

/** An address, or a network with the length of its prefix. */
export const addressRange = textLike((range) => {
  const [network = '', length, ...rest] = range.split('/');
  const bits = isIPv4(network) ? 32 : isIPv6(network) ? 128 : -1;
  if (bits < 0 || rest.length > 0) return false;
  return length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits);
}, 'no address such as 10.0.0.1, and no network such as 10.0.0.0/8 or fd00::/8');

/** A person of one platform, all of one, or everybody. The same id on another platform is another person. */
export const person = kind((value, context) => {
  const name = identifier.read(value, context);
  if (name !== '*' && !/^[^:]+:./.test(name))
    throw fault('no person of a platform; write <platform>:<id>, such as telegram:42');
  return name;
});

/** A whole command, with places for arguments. */
export const commandPattern = kind((value, context) => {
  const pattern = text.read(value, context);
  const wrong = patternFault(pattern);
  if (wrong !== null) throw fault(wrong);
  return pattern;
});

/**
 * Where tools work: `conversation`, `shared`, or the path of a shared folder, from the home. `folder` is the shared one, or
 * the one that has those of the conversations.
 */
export const workspace: Kind<{ readonly folder: string; readonly perConversation: boolean }> = {
  ...kind((value, context) => {
    const written = value === null ? 'conversation' : text.read(value, context);
    if (written === 'conversation') return { folder: resolve(context.home, 'workspaces'), perConversation: true };
    return { folder: resolve(context.home, written === 'shared' ? 'workspace' : written), perConversation: false };
  }),
  write: ({ folder, perConversation }) => (perConversation ? 'conversation' : folder),
};
