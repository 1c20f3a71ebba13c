import { type Declaration, FromVariable } from '../settings/declaration.ts';

/** The variable in which a secret of a platform is kept, by the key of its setting with dots; null for what is none. */
export function secretVariable(platform: string, declared: Declaration, key: string): string | null {
  const found = key.split('.').reduce<Declaration | undefined>(settingUnder, declared);
  if (found?.type !== 'setting' || found.kind.secrecy !== 'whole') return null;
  if (found.byDefault instanceof FromVariable) return found.byDefault.names[0];
  return `${platform}_${key}`.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_');
}

function settingUnder(declared: Declaration | undefined, key: string): Declaration | undefined {
  if (declared?.type === 'section' || declared?.type === 'overrides') return declared.fields[key];
  return declared?.type === 'named' ? declared.element : undefined;
}
