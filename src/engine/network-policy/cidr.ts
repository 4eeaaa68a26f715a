import ipaddr from 'ipaddr.js';

/** A block of addresses. */
export interface Cidr {
  readonly family: 'IPv4' | 'IPv6';
  readonly address: ipaddr.IPv4 | ipaddr.IPv6;
  readonly prefix: number;
}

/** Longest text of a CIDR: an IPv6 address with an embedded IPv4 address, and a prefix. */
const MAX_CIDR_LENGTH = 49;

/** Undefined for what is not a CIDR. */
export function parseCidr(text: string): Cidr | undefined {
  if (text.length > MAX_CIDR_LENGTH || !ipaddr.isValidCIDR(text)) {
    return undefined;
  }
  const [address, prefix] = ipaddr.parseCIDR(text);
  return { family: address.kind() === 'ipv4' ? 'IPv4' : 'IPv6', address, prefix };
}

/** A CIDR, or the block of a single address. */
export function parseBlock(text: string): Cidr | undefined {
  return parseCidr(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`);
}

/** Whether all addresses of `inner` are in `outer`. */
export function containsCidr(outer: Cidr, inner: Cidr): boolean {
  return outer.family === inner.family && outer.prefix <= inner.prefix && matches(inner.address, outer);
}

/** Whether there are bits after the prefix, which mean nothing: `10.1.2.3/8`. */
export function hasHostBits({ address, prefix }: Cidr): boolean {
  const bits = address.toByteArray().map((byte) => byte.toString(2).padStart(8, '0'));
  return bits.join('').slice(prefix).includes('1');
}

/** Whether the blocks have an address in common. */
export function overlapsCidr(one: Cidr, other: Cidr): boolean {
  return containsCidr(one, other) || containsCidr(other, one);
}

function matches(address: Cidr['address'], { address: network, prefix }: Cidr): boolean {
  if (address instanceof ipaddr.IPv4) {
    return network instanceof ipaddr.IPv4 && address.match(network, prefix);
  }
  return network instanceof ipaddr.IPv6 && address.match(network, prefix);
}
