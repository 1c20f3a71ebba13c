/** Hosts that QQ keeps files on; what ends in one of these is one. */
const HOSTS = ['qq.com', 'qq.com.cn', 'qpic.cn', 'gtimg.cn', 'gtimg.com', 'myqcloud.com', 'tencentcos.cn'];

/**
 * Where a file is read or written: at QQ itself, over https, and nowhere else, whatever a message says. With a root of
 * one's own every host is that one, and the paths stay the same. Null for an address that is none of these.
 */
export function mediaAddress(address: string, root: string | null): string | null {
  if (!URL.canParse(address)) return null;
  const { protocol, hostname, host, pathname, search } = new URL(address);
  const isOfQq = protocol === 'https:' && HOSTS.some((each) => hostname === each || hostname.endsWith(`.${each}`));
  if (root === null) return isOfQq ? address : null;
  return isOfQq || host === new URL(root).host ? `${new URL(root).origin}${pathname}${search}` : null;
}
