// Addresses that anybody on the internet reaches, as opposed to those of this machine, this network, or this cloud.
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Metadata services at addresses that no registry marks as special: Azure's
 * (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
 */
const METADATA_SERVICES: ReadonlySet<string> = new Set(['168.63.129.16']);
/** The only IPv6 addresses that are allocated as global unicast: https://www.iana.org/assignments/ipv6-address-space */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Whether an address is public: not in the IANA special-purpose registries (RFC 6890), which hold private and shared networks
 * and every IPv6 form that contains an IPv4 address, and no metadata service.
 */
export function isPublicAddress(address: string): boolean {
  const parsed = parse(address);
  if (parsed.range() !== 'unicast' || METADATA_SERVICES.has(parsed.toString())) {
    return false;
  }
  return parsed instanceof ipaddr.IPv4 || parsed.match(GLOBAL_UNICAST);
}

/** Whether a `URL.hostname` is certainly not public: a name for this machine, or an address that is not. Resolves no names. */
export function isPrivateHost(hostname: string): boolean {
  const host = plainHost(hostname);
  // RFC 6761, section 6.3: names below localhost are loopback names.
  return isIP(host) === 0 ? host === 'localhost' || host.endsWith('.localhost') : !isPublicAddress(host);
}

/** Without the brackets of IPv6, a final dot, and upper case. */
function plainHost(hostname: string): string {
  return hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
}

function parse(address: string): ipaddr.IPv4 | ipaddr.IPv6 {
  // A link-local address may have a zone (fe80::1%eth0). An IPv4 address that is mapped into IPv6 reaches the IPv4 one.
  return ipaddr.process(address.split('%', 1)[0] ?? '');
}
