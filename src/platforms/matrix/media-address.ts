const MEDIA = /^mxc:\/\/([^/?#\s]{1,255})\/([^/?#\s]{1,255})$/;

/** Where a file is, in the words of the protocol: `mxc://server/id`. Null for what is no such address. */
export function mediaOf(address: string): { readonly server: string; readonly id: string } | null {
  const [, server = '', id = ''] = MEDIA.exec(address) ?? [];
  // A step upwards would leave the files.
  if ([server, id].some((part) => part === '' || part === '.' || part === '..')) return null;
  return { server, id };
}

export function isMedia(address: string): boolean {
  return mediaOf(address) !== null;
}
