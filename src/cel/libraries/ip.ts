import type { Library } from '../model/library.ts';
import { BOOL, INT, opaque, STRING } from '../model/type.ts';
import { EvaluationFailure } from '../model/value.ts';
import { NOMINAL, scan } from './costs.ts';
import { describe, global, member } from './declare.ts';
import { parseIp } from './ip-address.ts';
import type { IpAddress } from './ip-address.ts';

/** The type of IP addresses. */
export const IP: ReturnType<typeof opaque> = opaque('net.IP');

function predicate(name: string, id: string, summary: string, example: string, test: (ip: IpAddress) => boolean) {
  return describe(name, summary, [`ip('${example}').${name}()`, 'true'], [member(id, [IP], BOOL, test, NOMINAL)]);
}

/** IP addresses, parsed and printed as in Go's `net/netip`. */
export const IP_LIBRARY: Library = {
  name: 'IP addresses',
  since: 30,
  types: [IP],
  functions: [
    describe(
      'ip',
      'Parses an IPv4 or IPv6 address.',
      ["string(ip('2001:DB8::1'))", "'2001:db8::1'"],
      [global('string_to_ip', [STRING], IP, parseIp, scan())],
    ),
    describe(
      'isIP',
      'Whether a string is an IPv4 or IPv6 address.',
      ["isIP('10.0.0.256')", 'false'],
      [global('is_ip', [STRING], BOOL, (text: string) => !(parseIp(text) instanceof EvaluationFailure), scan())],
    ),
    describe(
      'ip.isCanonical',
      'Whether a string is an address in its canonical form.',
      ["ip.isCanonical('2001:db8:0::1')", 'false'],
      [global('ip_is_canonical', [STRING], BOOL, isCanonical, scan({ passes: 2 }))],
    ),
    describe(
      'family',
      'The IP version: 4 or 6.',
      ["ip('::1').family()", '6'],
      [member('ip_family', [IP], INT, (ip: IpAddress) => (ip.length === 32 ? 4 : 6), NOMINAL)],
    ),
    predicate(
      'isUnspecified',
      'ip_is_unspecified',
      'Whether the address is `0.0.0.0` or `::`.',
      '::',
      (ip) => ip.isUnspecified,
    ),
    predicate(
      'isLoopback',
      'ip_is_loopback',
      'Whether the address is in `127.0.0.0/8` or is `::1`.',
      '127.0.0.1',
      (ip) => ip.isLoopback,
    ),
    predicate(
      'isLinkLocalMulticast',
      'ip_is_link_local_multicast',
      'Whether the address is in `224.0.0.0/24`, or an IPv6 multicast address with link-local scope.',
      'ff02::1',
      (ip) => ip.isLinkLocalMulticast,
    ),
    predicate(
      'isLinkLocalUnicast',
      'ip_is_link_local_unicast',
      'Whether the address is in `169.254.0.0/16` or `fe80::/10`.',
      '169.254.169.254',
      (ip) => ip.isLinkLocalUnicast,
    ),
    predicate(
      'isGlobalUnicast',
      'ip_is_global_unicast',
      'Whether the address is neither unspecified, loopback, link-local, multicast nor the broadcast address.',
      '10.0.0.1',
      (ip) => ip.isGlobalUnicast,
    ),
    describe(
      'string',
      'The address in its canonical form.',
      ["string(ip('::0:1'))", "'::1'"],
      [global('ip_to_string', [IP], STRING, (ip: IpAddress) => ip.toString())],
    ),
  ],
};

function isCanonical(text: string): boolean | EvaluationFailure {
  const ip = parseIp(text);
  return ip instanceof EvaluationFailure ? ip : ip.toString() === text;
}
