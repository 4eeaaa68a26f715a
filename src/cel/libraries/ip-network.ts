import { quote } from '../../go/index.ts';
import type { CelValue, EvaluationFailure } from '../model/value.ts';
import { LibraryValue } from '../model/library-value.ts';
import { fail } from './declare.ts';
import { IpAddress, parseAddress } from './ip-address.ts';

/** An address with a prefix length: a value of type `net.CIDR`. */
export class IpNetwork extends LibraryValue {
  readonly typeName = 'net.CIDR';
  readonly address: IpAddress;
  readonly prefixLength: number;

  constructor(address: IpAddress, prefixLength: number) {
    super();
    this.address = address;
    this.prefixLength = prefixLength;
  }

  /** Size of the prefix in bytes. */
  override get costSize(): number {
    return Math.ceil(this.prefixLength / 8);
  }

  protected override isComparableTo(other: CelValue): boolean {
    return other instanceof IpNetwork;
  }

  equals(other: CelValue): boolean {
    return other instanceof IpNetwork && other.prefixLength === this.prefixLength && other.address.equals(this.address);
  }

  /** The network with all bits after the prefix set to zero. */
  get masked(): IpNetwork {
    const hostBits = BigInt(this.address.length - this.prefixLength);
    const bits = (this.address.bits >> hostBits) << hostBits;
    return new IpNetwork(new IpAddress(bits, this.address.length), this.prefixLength);
  }

  contains(address: IpAddress): boolean {
    const hostBits = BigInt(this.address.length - this.prefixLength);
    return address.length === this.address.length && address.bits >> hostBits === this.address.bits >> hostBits;
  }

  containsNetwork(other: IpNetwork): boolean {
    return this.prefixLength <= other.prefixLength && this.contains(other.address);
  }

  override toString(): string {
    return `${this.address.toString()}/${this.prefixLength}`;
  }
}

/** The value of `cidr(text)`. */
export function parseNetwork(text: string): IpNetwork | EvaluationFailure {
  const network = parsePrefix(text);
  if (typeof network === 'string') {
    const parsing = 'network address parse error during conversion from string: ';
    return fail(`${parsing}${parsing}netip.ParsePrefix(${quote(text)}): ${network}`);
  }
  return network.address.isMapped
    ? fail(
        `network address parse error during conversion from string: IPv4-mapped IPv6 address ${quote(text)} is not allowed`,
      )
    : network;
}

function parsePrefix(text: string): IpNetwork | string {
  const slash = text.lastIndexOf('/');
  if (slash < 0) {
    return "no '/'";
  }
  const parsed = parseAddress(text.slice(0, slash));
  if (typeof parsed === 'string') {
    return parsed;
  }
  if (parsed.zone !== '') {
    return 'IPv6 zones cannot be present in a prefix';
  }
  const digits = text.slice(slash + 1);
  if (!isPrefixLength(digits)) {
    return `bad bits after slash: ${quote(digits)}`;
  }
  const length = Number(digits);
  return length > parsed.length
    ? 'prefix length out of range'
    : new IpNetwork(new IpAddress(parsed.bits, parsed.length), length);
}

/** Digits without a leading zero that fit a 64-bit integer. */
function isPrefixLength(digits: string): boolean {
  return /^(?:\d|[1-9]\d{1,18})$/.test(digits) && BigInt(digits) < 2n ** 63n;
}
