import { FromVariable, section, setting, type ValueOf } from '../../settings/declaration.ts';
import { flag, hostName, identifier, optional, secret, text, textLike, whole } from '../../settings/kinds.ts';
import { credential, platformSection } from '../chat-settings.ts';
import { describePlatform } from '../descriptor.ts';
import { EMAIL_ABILITIES } from './abilities.ts';
import { type AccountSettings, accountOf, missingOf } from './account.ts';

const server = (what: string, ports: string) =>
  section({
    host: setting(optional(hostName), null, `the ${what} server`),
    port: setting(optional(whole(1, 65_535)), null, `its port; ${ports}`),
    user: setting(optional(text), null, 'who logs in there; the address unless given'),
    password: setting(
      secret(optional(text)),
      null,
      'another password than `password`, where this server has one of its own',
    ),
    tls: setting(flag, true, 'false sends everything unencrypted, the password too: only for a server on this machine'),
  });

const authserv = textLike(
  (name) => /^[A-Za-z0-9._-]{1,255}$/.test(name),
  'no name of a server, such as mx.example.org',
  identifier,
);

const address = textLike(
  (written) => /^[^\s@<>"(),:;[\]\\]{1,64}@[a-z0-9.-]{1,190}$/i.test(written),
  'no address such as agent@example.org',
);

const settings = platformSection({
  address: setting(optional(address), new FromVariable('EMAIL_ADDRESS'), 'the address of the agent'),
  password: credential('of the mailbox; of an account with two factors, a password for apps', 'EMAIL_PASSWORD'),
  imap: server('IMAP', '993, or 143 without `tls`; on 143 with `tls`, STARTTLS'),
  smtp: server('SMTP', '465, or 25 without `tls`; on 25, 587 and 2525 with `tls`, STARTTLS'),
  authserv_id: setting(
    optional(authserv),
    null,
    'whose `Authentication-Results` are believed: mail that has not passed DMARC there is refused',
  ),
});

type EmailSettings = Omit<ValueOf<typeof settings>, 'accounts'>;

export const descriptor = describePlatform({
  name: 'email',
  label: 'Email',
  settings,
  abilities: EMAIL_ABILITIES,
  missing: (given: EmailSettings) => missingOf(accountSettings(given)),
  credential: (given: EmailSettings) => {
    const { imap } = accountOf(accountSettings(given));
    return JSON.stringify([imap.host, imap.port, imap.user]);
  },
  async make(given: EmailSettings, runtime) {
    const { Email } = await import('./platform.ts');
    // Whoever has started the gateway may write before it listens to the mailbox.
    const startedAt = runtime.now() - process.uptime() * 1000;
    return new Email({ account: accountOf(accountSettings(given)), runtime, startedAt });
  },
  setup: {
    steps: [
      'Make a mailbox that belongs to the agent alone: every mail in it is read by the agent.',
      'Turn IMAP on for it. With two factors, make a password for apps.',
    ],
    asks: [
      { key: 'address', question: 'The address of the agent' },
      { key: 'password', question: 'The password of the mailbox', secret: { variable: 'EMAIL_PASSWORD' } },
      { key: 'imap.host', question: 'The IMAP server, such as imap.example.org' },
      { key: 'smtp.host', question: 'The SMTP server, such as smtp.example.org' },
      {
        key: 'authserv_id',
        question: 'The name in the Authentication-Results header of mail that you receive there',
        optional: true,
      },
    ],
    afterwards: ['Put your own address into platforms.email.allow, then write to the agent: strangers get no answer.'],
  },
});

function accountSettings(given: EmailSettings): AccountSettings {
  return given;
}
