import ipaddr from 'ipaddr.js';

/** Longest text of a CIDR: an IPv6 address with an embedded IPv4 address, and a prefix. Characters. */
const MAX_CIDR_LENGTH = 49;

/**
 * The address and the prefix of a CIDR; undefined for any other text. Only the parser of its family is tried, since one that fails
 * takes as long as ten that succeed.
 */
export function readCidr(text: string): readonly [ipaddr.IPv4 | ipaddr.IPv6, number] | undefined {
  try {
    return text.length > MAX_CIDR_LENGTH ? undefined : (text.includes(':') ? ipaddr.IPv6 : ipaddr.IPv4).parseCIDR(text);
  } catch {
    return undefined;
  }
}

/** Whether there are bits after the prefix, which mean nothing: `10.1.2.3/8`. */
export function hasHostBits(address: ipaddr.IPv4 | ipaddr.IPv6, prefix: number): boolean {
  return address.toByteArray().some((byte, index) => (byte & hostMask(index, prefix)) !== 0);
}

/** The address without these bits. */
export function networkOf(address: ipaddr.IPv4 | ipaddr.IPv6, prefix: number): ipaddr.IPv4 | ipaddr.IPv6 {
  return ipaddr.fromByteArray(address.toByteArray().map((byte, index) => byte & ~hostMask(index, prefix)));
}

/** The bits of a byte that are after the prefix. */
function hostMask(index: number, prefix: number): number {
  const bits = prefix - 8 * index;
  return bits >= 8 ? 0 : 0xff >> Math.max(0, bits);
}
