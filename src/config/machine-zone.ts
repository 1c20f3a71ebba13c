/** The IANA name of the zone this machine lives in. */
export function machineZone(): string {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  // What a machine without a zone answers is no name that can be given back to it.
  return timeZone === 'Etc/Unknown' ? 'UTC' : timeZone;
}
