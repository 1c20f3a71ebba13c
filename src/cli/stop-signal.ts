/** Aborted by the first SIGINT or SIGTERM; a second one has its usual effect, so nothing is waited for any longer. */
export function stopSignal(): AbortSignal {
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopped.abort());
  return stopped.signal;
}
