import ipaddr from 'ipaddr.js';

/** Longest text of a CIDR: an IPv6 address with an embedded IPv4 address, and a prefix. Characters. */
const MAX_CIDR_LENGTH = 49;

/**
 * Warnings of API servers about CIDRs that they accept: bits beyond the prefix, and other than canonical forms.
 * https://github.com/kubernetes/enhancements/tree/master/keps/sig-network/4858-ip-cidr-validation
 */
export function cidrWarnings(value: unknown, path: string): readonly string[] {
  if (typeof value !== 'string' || value.length > MAX_CIDR_LENGTH || !ipaddr.isValidCIDR(value)) {
    return [];
  }
  const [address, prefix] = ipaddr.parseCIDR(value);
  const network = networkOf(address, prefix);
  if (textOf(network) !== textOf(address)) {
    const bits = address.kind() === 'ipv4' ? 32 : 128;
    return [
      `${path}: CIDR value ${JSON.stringify(value)} is ambiguous in this context (should be "${textOf(network)}/${prefix}" or "${textOf(address)}/${bits}"?)`,
    ];
  }
  const canonical = `${textOf(address)}/${prefix}`;
  return canonical === value || address.kind() === 'ipv4'
    ? []
    : [`${path}: IPv6 CIDR value ${JSON.stringify(value)} should be in RFC 5952 canonical format ("${canonical}")`];
}

function networkOf(address: ipaddr.IPv4 | ipaddr.IPv6, prefix: number): ipaddr.IPv4 | ipaddr.IPv6 {
  const bytes = address.toByteArray().map((byte, index) => byte & maskOfByte(prefix - 8 * index));
  return ipaddr.fromByteArray(bytes);
}

/** The mask of one byte of which this many bits belong to the network. */
function maskOfByte(bits: number): number {
  return bits <= 0 ? 0 : bits >= 8 ? 0xff : (0xff << (8 - bits)) & 0xff;
}

/** The address in the form of RFC 5952. */
function textOf(address: ipaddr.IPv4 | ipaddr.IPv6): string {
  return address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString();
}
