/** What a plugin may import from 'moirai'. In a plugin's thread the name leads to `plugins/api.ts` itself. */
export * from './extensions/plugins/api.ts';
