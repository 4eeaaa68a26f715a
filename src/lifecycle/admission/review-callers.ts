// Which of the clients of the webhook for our own kinds are API servers. Who is none must not learn from it what users may do.
import { BlockList, isIPv6 } from 'node:net';
import type { Logger } from 'pino';
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import { isJsonObject, knownKind, type KubernetesObject, textsOf } from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import { CallerProofs } from './caller-proofs.ts';
import type { OwnKindsReview } from './own-kinds-review.ts';

/** The addresses of API servers, which each API server writes: https://kubernetes.io/docs/reference/networking/ports-and-protocols/ */
const API_SERVER_SLICE = { namespace: 'default', name: 'kubernetes' } as const;
export const ENDPOINT_SLICES = knownKind('discovery.k8s.io/v1', 'EndpointSlice');

/** An unknown address causes a read of the addresses and a proof at most this often. Milliseconds. */
const REFRESH_MS = 1_000;
/** Time limit of that read and of a proof, which a review waits for. Milliseconds. */
const READ_MS = 2_000;

/** Who sent a review. */
export interface ReviewCaller {
  /** The client's address; of IPv6 the network of its host. */
  readonly address: string;
  readonly isApiServer: boolean;
}

export interface ReviewCallersOptions {
  readonly cluster: Pick<Cluster, 'get' | 'create'>;
  /** The namespace of the product. */
  readonly namespace: string;
  /** Whether the port requires a client certificate, so that all clients are API servers. */
  readonly hasClientCertificates: boolean;
  /**
   * Addresses and networks of API servers; others are refused. Default: those that the cluster knows, and those that are proven; others
   * are answered less.
   */
  readonly apiServers?: readonly string[] | undefined;
  readonly log: Logger;
}

/** Tells API servers from other clients by their certificate, or by addresses: configured ones, those that the cluster knows, and proven ones. */
export class ReviewCallers {
  readonly #options: ReviewCallersOptions;
  readonly #configured: BlockList | undefined;
  readonly #proofs: CallerProofs;
  #known: ReadonlySet<string> = new Set();
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(options: ReviewCallersOptions) {
    this.#options = options;
    this.#proofs = new CallerProofs(options);
    this.#configured = options.apiServers && addressList(options.apiServers);
  }

  /** @returns undefined if the client may send no reviews */
  async find(remoteAddress: string): Promise<ReviewCaller | undefined> {
    const ip = withoutMapping(remoteAddress);
    const address = sourceOf(ip);
    if (this.#options.hasClientCertificates) {
      return { address, isApiServer: true };
    }
    if (this.#configured !== undefined) {
      return this.#configured.check(ip, familyOf(ip)) ? { address, isApiServer: true } : undefined;
    }
    if (this.#isApiServer(ip)) {
      return { address, isApiServer: true };
    }
    if (performance.now() - this.#readAt > REFRESH_MS) {
      this.#reading ??= this.#refresh().finally(() => (this.#reading = undefined));
    }
    await this.#reading;
    return { address, isApiServer: this.#isApiServer(ip) };
  }

  /** Takes a review that proves its address, if it has a secret. */
  receiveProof(remoteAddress: string, review: OwnKindsReview): void {
    this.#proofs.receive(withoutMapping(remoteAddress), review);
  }

  #isApiServer(ip: string): boolean {
    return this.#known.has(ip) || this.#proofs.has(ip);
  }

  /** Keeps what is known if the cluster does not answer. */
  async #refresh(): Promise<void> {
    const signal = AbortSignal.timeout(READ_MS);
    const results = await Promise.allSettled([this.#read(signal), this.#proofs.ask(signal)]);
    for (const result of results) {
      if (result.status === 'rejected') {
        this.#options.log.debug({ error: errorText(result.reason) }, 'addresses of API servers not known');
      }
    }
    this.#readAt = performance.now();
  }

  async #read(signal: AbortSignal): Promise<void> {
    const slice = await unlessGone(this.#options.cluster.get(ENDPOINT_SLICES, API_SERVER_SLICE, { signal }));
    this.#known = new Set(slice === undefined ? [] : addressesOf(slice));
  }
}

/**
 * Addresses and networks in CIDR notation.
 * @throws RangeError for other texts
 */
export function addressList(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) {
    const [ip = '', length, ...rest] = text.split('/');
    const bits = isIPv6(ip) ? 128 : 32;
    const prefix = length === undefined ? bits : /^\d{1,3}$/.test(length) ? Number(length) : Number.NaN;
    if (rest.length > 0 || !(prefix <= bits)) {
      throw new RangeError(`expected addresses or networks such as 10.0.0.0/28, got ${text}`);
    }
    try {
      list.addSubnet(ip, prefix, familyOf(ip));
    } catch {
      throw new RangeError(`expected addresses or networks such as 10.0.0.0/28, got ${text}`);
    }
  }
  return list;
}

function addressesOf({ endpoints }: KubernetesObject): readonly string[] {
  return (Array.isArray(endpoints) ? (endpoints as readonly unknown[]) : []).flatMap((one) =>
    isJsonObject(one) ? [...textsOf(one['addresses'])] : [],
  );
}

function familyOf(ip: string): 'ipv4' | 'ipv6' {
  return isIPv6(ip) ? 'ipv6' : 'ipv4';
}

/** IPv4 clients of a port that listens on `::`. */
function withoutMapping(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;
}

/** The first half of an IPv6 address: a host has as many addresses as it likes in its network. */
function sourceOf(ip: string): string {
  if (!isIPv6(ip)) {
    return ip;
  }
  const [head = '', tail] = ip.split('::');
  const before = head.split(':').filter((part) => part !== '');
  const after = (tail ?? '').split(':').filter((part) => part !== '');
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...Array.from({ length: zeros }, () => '0'), ...after].slice(0, 4).join(':');
}
