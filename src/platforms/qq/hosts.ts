/** Where the interface for bots is. */
const API_ROOT = 'https://api.bot.qq.com';
const SANDBOX_ROOT = 'https://sandbox.api.bot.qq.com';

export interface Hosts {
  /** Where access tokens are asked for. */
  readonly tokenRoot: string;
  /** Where everything else is. */
  readonly apiRoot: string;
  /** Takes the place of every host that files are on; null: the hosts of QQ are used. */
  readonly mediaRoot: string | null;
}

/** The hosts of QQ, of its sandbox, or one of one's own in the place of all of them. */
export function hostsOf(ownRoot: string | null, sandbox: boolean): Hosts {
  if (ownRoot !== null) return { tokenRoot: ownRoot, apiRoot: ownRoot, mediaRoot: ownRoot };
  return { tokenRoot: API_ROOT, apiRoot: sandbox ? SANDBOX_ROOT : API_ROOT, mediaRoot: null };
}
