import { isAccountName } from '../lifecycle/session-key.ts';
import {
  type Declaration,
  type FieldValues,
  FromVariable,
  fieldName,
  list,
  named,
  type Objection,
  overrides,
  type Setting,
  section,
  setting,
} from '../settings/declaration.ts';
import { flag, identifier, optional, origin, secret, text } from '../settings/kinds.ts';

/** The settings that all chat platforms have. */
export const common = {
  enabled: setting(flag, true, 'false turns it off, whatever else is given'),
  api_root: setting(
    optional(origin),
    null,
    'another host for everything that is asked of the platform, such as a server of your own; the paths stay the same',
  ),
  allow: list(identifier, 'users who may talk to the agent, beside `access.allow`'),
  require_mention: setting(flag, true, 'in groups, hear only what is said to the agent by name or as an answer'),
  wake_words: list(text, 'words that count as its name'),
};

export type CommonValues = FieldValues<typeof common>;

/** What the platform gave, by default from the environment: the first of these variables that is set. */
export function credential(help: string, ...variables: readonly [string, ...string[]]): Setting<string | null> {
  return setting(secret(optional(text)), new FromVariable(...variables), help);
}

/** The same for what may be shown. */
export function ownName(help: string, ...variables: readonly [string, ...string[]]): Setting<string | null> {
  return setting(optional(identifier), new FromVariable(...variables), help);
}

type Fields = Readonly<Record<string, Declaration>>;
type Rule<F> = (values: Partial<FieldValues<F>>) => Objection | null;

/**
 * The settings of a platform: those of all, its own, and the same again for each further account. What an account does not
 * give is as it is for the platform, except what comes from the environment: that belongs to one account alone.
 */
export function platformSection<F extends Fields>(own: F, rule: Rule<F & typeof common> = () => null) {
  const fields: F & typeof common = { ...own, ...common };
  const help = `more accounts, each under a name of yours: any of these settings, in their place; ${'`/platforms/<platform>/NAME`'} is its way in`;
  const accounts = named(
    isAccountName,
    'no name for an account: lower-case letters, digits, "_" and "-"',
    overrides(fields),
    help,
  );
  return section<F & typeof common & { accounts: typeof accounts }>(
    { ...fields, accounts },
    {
      rule: (values) => {
        const top = values as Partial<FieldValues<F & typeof common>>;
        const own = rule(top);
        if (own !== null) return own;
        const { accounts: given = {} } = values as { accounts?: Readonly<Record<string, object>> };
        for (const [name, account] of Object.entries(given)) {
          const objection = rule({ ...withoutVariables(fields, top), ...account });
          if (objection !== null) return { ...objection, key: `accounts.${name}.${objection.key}` };
        }
        return null;
      },
    },
  );
}

/** The settings of a platform, or of one of its accounts. */
export function settingsOfAccount(
  declared: { readonly fields: Fields },
  values: object,
  account: string | null,
): object {
  const { accounts, ...top } = values as { accounts?: Readonly<Record<string, object>> };
  if (account === null) return top;
  return { ...withoutVariables(declared.fields, top), ...accounts?.[account] };
}

/** Whether something is set that no account takes over: it can only be meant for the platform itself. */
export function hasOwnCredential(declared: { readonly fields: Fields }, values: object): boolean {
  return Object.entries(ofVariables(declared.fields)).some(
    ([name]) => (values as Record<string, unknown>)[name] != null,
  );
}

function withoutVariables<V extends object>(fields: Fields, values: V): V {
  return { ...values, ...ofVariables(fields) };
}

/** What variables give, with nothing given. */
function ofVariables(fields: Fields): Readonly<Record<string, null>> {
  const given = Object.entries(fields).flatMap(([key, field]) =>
    'byDefault' in field && field.byDefault instanceof FromVariable ? [[fieldName(key, field), null]] : [],
  );
  return Object.fromEntries(given) as Record<string, null>;
}
