import ipaddr from 'ipaddr.js';
import { hasHostBits, networkOf, readCidr } from './cidr-text.ts';

/** Longest text of an address: IPv6 with an embedded IPv4 address. */
const MAX_ADDRESS_LENGTH = 45;

/**
 * Warnings of API servers about CIDRs that they accept: bits beyond the prefix, and other than canonical forms.
 * https://github.com/kubernetes/enhancements/tree/master/keps/sig-network/4858-ip-cidr-validation
 */
export function cidrWarnings(value: unknown, path: string): readonly string[] {
  const cidr = typeof value === 'string' ? readCidr(value) : undefined;
  if (typeof value !== 'string' || cidr === undefined) {
    return [];
  }
  const [address, prefix] = cidr;
  const mapped = mappedAddress(address);
  if (mapped !== undefined && prefix >= MAPPED_BITS) {
    return [
      nonStandard(
        path,
        'CIDR value',
        value,
        `${textOf(networkOf(mapped, prefix - MAPPED_BITS))}/${prefix - MAPPED_BITS}`,
      ),
    ];
  }
  if (hasHostBits(address, prefix)) {
    const network = networkOf(address, prefix);
    const bits = address.kind() === 'ipv4' ? 32 : 128;
    return [
      `${path}: CIDR value ${JSON.stringify(value)} is ambiguous in this context (should be "${textOf(network)}/${prefix}" or "${textOf(address)}/${bits}"?)`,
    ];
  }
  return canonicalWarnings(address, value, `${textOf(address)}/${prefix}`, 'CIDR value', path);
}

/** As {@link cidrWarnings}, about addresses. */
export function addressWarnings(value: unknown, path: string): readonly string[] {
  if (typeof value !== 'string' || value.length > MAX_ADDRESS_LENGTH || !ipaddr.isValid(value)) {
    return [];
  }
  const address = ipaddr.parse(value);
  const mapped = mappedAddress(address);
  return mapped === undefined
    ? canonicalWarnings(address, value, textOf(address), 'address', path)
    : [nonStandard(path, 'IP address', value, textOf(mapped))];
}

/** Bits before the IPv4 address in an IPv6 address that stands for it. */
const MAPPED_BITS = 96;

/** The IPv4 address that an IPv6 address such as `::ffff:10.0.0.1` stands for. */
function mappedAddress(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | undefined {
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : undefined;
}

function nonStandard(path: string, what: string, value: string, better: string): string {
  return `${path}: non-standard ${what} ${JSON.stringify(value)} will be considered invalid in a future Kubernetes release: use "${better}"`;
}

function canonicalWarnings(
  address: ipaddr.IPv4 | ipaddr.IPv6,
  value: string,
  canonical: string,
  what: string,
  path: string,
): readonly string[] {
  return canonical === value || address.kind() === 'ipv4'
    ? []
    : [`${path}: IPv6 ${what} ${JSON.stringify(value)} should be in RFC 5952 canonical format ("${canonical}")`];
}

/** The address in the form of RFC 5952. */
function textOf(address: ipaddr.IPv4 | ipaddr.IPv6): string {
  return address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString();
}
