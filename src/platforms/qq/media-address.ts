/** Hosts that QQ keeps files on; what ends in one of these is one. Voices and pictures of people are at the last. */
const HOSTS = [
  ...['qq.com', 'qq.com.cn', 'qpic.cn', 'gtimg.cn', 'gtimg.com', 'myqcloud.com', 'tencentcos.cn'],
  'qqbot.ugcimg.cn',
];

/**
 * Where a file is read or written: at QQ itself, over https, and nowhere else, whatever a message says. With a root of
 * one's own every host is that one, and the paths stay the same. Null for an address that is none of these.
 */
export function mediaAddress(address: string, root: string | null): string | null {
  if (!URL.canParse(address)) return null;
  const url = new URL(address);
  const { hostname, host, pathname, search } = url;
  // Some are written with http; all of these hosts know https.
  if (url.protocol === 'http:' && url.port === '' && isHostOfQq(hostname)) url.protocol = 'https:';
  const isOfQq = url.protocol === 'https:' && isHostOfQq(hostname);
  if (root === null) return isOfQq ? url.href : null;
  return isOfQq || host === new URL(root).host ? `${new URL(root).origin}${pathname}${search}` : null;
}

function isHostOfQq(host: string): boolean {
  return HOSTS.some((each) => host === each || host.endsWith(`.${each}`));
}
