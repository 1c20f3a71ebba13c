/**
 * What an API key may do. `chat`: talk, and see and change its own conversations. `read`: see everything, change nothing.
 * `admin`: everything.
 */
export const API_SCOPES = ['chat', 'read', 'admin'] as const;

export type ApiScope = (typeof API_SCOPES)[number];
