import ipaddr from 'ipaddr.js';
import { readCidr } from '../../resources/kind-validation/index.ts';

/** A block of addresses. */
export interface Cidr {
  readonly family: 'IPv4' | 'IPv6';
  readonly address: ipaddr.IPv4 | ipaddr.IPv6;
  readonly prefix: number;
}

/** Undefined for what is not a CIDR. */
export function parseCidr(text: string): Cidr | undefined {
  const [address, prefix] = readCidr(text) ?? [];
  return address === undefined || prefix === undefined
    ? undefined
    : { family: address.kind() === 'ipv4' ? 'IPv4' : 'IPv6', address, prefix };
}

/** A CIDR, or the block of a single address. */
export function parseBlock(text: string): Cidr | undefined {
  return parseCidr(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`);
}

/** Whether all addresses of `inner` are in `outer`. */
export function containsCidr(outer: Cidr, inner: Cidr): boolean {
  return outer.family === inner.family && outer.prefix <= inner.prefix && matches(inner.address, outer);
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
