import { addRanges, exactly, scaleRange } from '../model/range.ts';
import type { CallSizes, Library, Overload, Range } from '../model/library.ts';
import { BOOL, INT, opaque, STRING } from '../model/type.ts';
import { EvaluationFailure, NO_SUCH_OVERLOAD } from '../model/value.ts';
import type { CelResult } from '../model/value.ts';
import { NOMINAL, rangeOf, scan, sizeOfArgument, TRAVERSAL } from './costs.ts';
import { describe, fail, global, member } from './declare.ts';
import { parseIp } from './ip-address.ts';
import type { IpAddress } from './ip-address.ts';
import { parseNetwork } from './ip-network.ts';
import type { IpNetwork } from './ip-network.ts';
import { IP } from './ip.ts';

/** The type of CIDR ranges. */
const CIDR: ReturnType<typeof opaque> = opaque('net.CIDR');

/** Size of an address in bytes. */
const ADDRESS_SIZE: Range = { min: 4, max: 16 };

/** Cost of comparing prefixes; plus masking one of them for ranges, and parsing a string argument. */
function containment(options: { isRange: boolean; isText: boolean }): Required<Pick<Overload, 'cost' | 'estimate'>> {
  return {
    cost: (args) => {
      const prefix = sizeOfArgument(args, 0);
      const compare = Math.ceil((prefix + prefix) * TRAVERSAL);
      const mask = options.isRange ? Math.ceil(prefix * TRAVERSAL) + 1 : 0;
      return compare + mask + (options.isText ? Math.ceil(sizeOfArgument(args, 1) * TRAVERSAL) : 0);
    },
    estimate: (sizes: CallSizes) => {
      const parts = [scaleRange(addRanges(ADDRESS_SIZE, ADDRESS_SIZE), TRAVERSAL)];
      if (options.isRange) {
        parts.push(scaleRange(ADDRESS_SIZE, TRAVERSAL), exactly(1));
      }
      if (options.isText) {
        parts.push(scaleRange(rangeOf(sizes, 1), TRAVERSAL));
      }
      return { cost: addRanges(...parts) };
    },
  };
}

/** API servers do not report what is wrong with the address. */
function containsText(network: IpNetwork, text: string): CelResult {
  const ip = parseIp(text);
  return ip instanceof EvaluationFailure ? fail(NO_SUCH_OVERLOAD) : network.contains(ip);
}

function containsRangeText(network: IpNetwork, text: string): CelResult {
  const other = parseNetwork(text);
  return other instanceof EvaluationFailure ? other : network.containsNetwork(other);
}

/** Ranges of IP addresses in CIDR notation. */
export const CIDR_LIBRARY: Library = {
  name: 'CIDR ranges',
  since: 30,
  types: [CIDR],
  functions: [
    describe(
      'cidr',
      'Parses a range of IP addresses in CIDR notation.',
      ["string(cidr('10.1.2.3/8'))", "'10.1.2.3/8'"],
      [global('string_to_cidr', [STRING], CIDR, parseNetwork, scan())],
    ),
    describe(
      'isCIDR',
      'Whether a string is a range of IP addresses in CIDR notation.',
      ["isCIDR('10.0.0.0/33')", 'false'],
      [global('is_cidr', [STRING], BOOL, (text: string) => !(parseNetwork(text) instanceof EvaluationFailure), scan())],
    ),
    describe(
      'containsIP',
      'Whether the range contains an address.',
      ["cidr('10.0.0.0/8').containsIP('10.1.2.3')", 'true'],
      [
        member(
          'cidr_contains_ip_string',
          [CIDR, STRING],
          BOOL,
          (network: IpNetwork, text: string) => containsText(network, text),
          containment({ isRange: false, isText: true }),
        ),
        member(
          'cidr_contains_ip_ip',
          [CIDR, IP],
          BOOL,
          (network: IpNetwork, ip: IpAddress) => network.contains(ip),
          containment({ isRange: false, isText: false }),
        ),
      ],
    ),
    describe(
      'containsCIDR',
      'Whether the range contains all addresses of another range.',
      ["cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", 'true'],
      [
        member(
          'cidr_contains_cidr_string',
          [CIDR, STRING],
          BOOL,
          (network: IpNetwork, text: string) => containsRangeText(network, text),
          containment({ isRange: true, isText: true }),
        ),
        member(
          'cidr_contains_cidr',
          [CIDR, CIDR],
          BOOL,
          (network: IpNetwork, other: IpNetwork) => network.containsNetwork(other),
          containment({ isRange: true, isText: false }),
        ),
      ],
    ),
    describe(
      'ip',
      'The address before the slash.',
      ["string(cidr('10.1.2.3/8').ip())", "'10.1.2.3'"],
      [member('cidr_ip', [CIDR], IP, (network: IpNetwork) => network.address, NOMINAL)],
    ),
    describe(
      'masked',
      'The range with all bits after its prefix set to zero.',
      ["string(cidr('10.1.2.3/8').masked())", "'10.0.0.0/8'"],
      [member('cidr_masked', [CIDR], CIDR, (network: IpNetwork) => network.masked, NOMINAL)],
    ),
    describe(
      'prefixLength',
      'The number of bits of the prefix.',
      ["cidr('10.0.0.0/8').prefixLength()", '8'],
      [member('cidr_prefix_length', [CIDR], INT, (network: IpNetwork) => network.prefixLength, NOMINAL)],
    ),
    describe(
      'string',
      'The range in CIDR notation.',
      ["string(cidr('10.0.0.0/8'))", "'10.0.0.0/8'"],
      [global('cidr_to_string', [CIDR], STRING, (network: IpNetwork) => network.toString())],
    ),
  ],
};
