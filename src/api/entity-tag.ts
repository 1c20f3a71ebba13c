/** Whether a client that sent this `If-None-Match` has what the tag stands for. */
export function knowsTag(header: string | undefined, tag: string): boolean {
  const known = (header ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''));
  return known.includes(tag) || known.includes('*');
}
