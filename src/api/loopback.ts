/** Whether a client's address is this machine: 127.0.0.0/8 or ::1. */
export function isLoopbackAddress(address: string): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  return /^127(\.\d{1,3}){3}$/.test(plain) || plain === '::1';
}

/** Whether a `Host` header names this machine, with a port or without. */
export function isLoopbackHost(host: string): boolean {
  const match = /^(\[[0-9a-f:.]+\]|[^:]+)(:\d{1,5})?$/i.exec(host.trim());
  const name = (match?.[1] ?? '').toLowerCase().replace(/\.$/, '');
  if (name === 'localhost' || name.endsWith('.localhost')) return true;
  return isLoopbackAddress(name.startsWith('[') ? name.slice(1, -1) : name);
}
