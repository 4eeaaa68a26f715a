// Whether policies can read the kinds that they declare.
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type ApiResource, type Cluster, reviewAccess, SUBJECT_ACCESS_REVIEWS } from '../../cluster/index.ts';
import { type ContextAwareResource, groupResourceOf } from '../../resources/index.ts';

/**
 * Delays before a forbidden read is repeated. The controller grants the rights of a policy when it sees the policy, while the
 * pre-validation already runs; that takes a second or two. Milliseconds.
 */
const GRANT_DELAYS_MS: readonly number[] = [100, 200, 400, 800, 1_600];
/** A question that changes nothing, for access reviews: what anonymous users may do. */
const ANONYMOUS_REVIEW = { user: 'system:anonymous', nonResourceAttributes: { path: '/', verb: 'get' } };

/** A read of a kind that the API server forbids. */
export interface ForbiddenRead {
  /** The message of the API server: it names the account and the resource. */
  readonly message: string;
  /** The rights that policies need: `get, list, watch secrets`. */
  readonly rights: string;
}

/** Reads kinds as policies do. Failures without an answer of the API server decide nothing. */
export class ReadableKinds {
  readonly #cluster: Pick<Cluster, 'discovery' | 'list' | 'create'>;
  readonly #grantDelaysMs: readonly number[];

  /**
   * @param cluster with the account that policies read with
   * @param grantDelaysMs default: {@link GRANT_DELAYS_MS}
   */
  constructor(
    cluster: Pick<Cluster, 'discovery' | 'list' | 'create'>,
    { grantDelaysMs = GRANT_DELAYS_MS }: { readonly grantDelaysMs?: readonly number[] } = {},
  ) {
    this.#cluster = cluster;
    this.#grantDelaysMs = grantDelaysMs;
  }

  /** Whether the cluster serves a kind; true when that is unknown. */
  async isServed(resource: ContextAwareResource, signal: AbortSignal): Promise<boolean> {
    try {
      return (await this.#find(resource, signal)) !== undefined;
    } catch {
      return true;
    }
  }

  /** Undefined when policies may read the kind, the cluster does not serve it, or that is unknown. */
  async forbiddenRead(resource: ContextAwareResource, signal: AbortSignal): Promise<ForbiddenRead | undefined> {
    let last: ForbiddenRead | undefined;
    for (const delayMs of [0, ...this.#grantDelaysMs]) {
      try {
        await sleep(delayMs, undefined, { signal, ref: false });
        last = await this.#tryRead(resource, signal);
      } catch {
        // Without an answer, the one before stands.
        break;
      }
      if (last === undefined) {
        break;
      }
    }
    return last;
  }

  /** @throws ApiError, ClusterError when it is unknown */
  async #tryRead(resource: ContextAwareResource, signal: AbortSignal): Promise<ForbiddenRead | undefined> {
    const type = await this.#find(resource, signal);
    if (type === undefined) {
      return undefined;
    }
    try {
      await this.#read(type, signal);
      return undefined;
    } catch (error) {
      if (error instanceof ApiError && error.code === 403) {
        return { message: error.message, rights: rightsOf(type) };
      }
      throw error;
    }
  }

  #find({ apiVersion, kind }: ContextAwareResource, signal: AbortSignal): Promise<ApiResource | undefined> {
    return this.#cluster.discovery.find(apiVersion, kind, { signal });
  }

  async #read(type: ApiResource, signal: AbortSignal): Promise<void> {
    if (isAccessReview(type)) {
      await reviewAccess(this.#cluster, ANONYMOUS_REVIEW, { signal });
    } else {
      await this.#cluster.list(type, { limit: 1, signal });
    }
  }
}

/** The kind of `kubernetes/can_i`, which can only be created. */
function isAccessReview({ group, resource }: ApiResource): boolean {
  return group === SUBJECT_ACCESS_REVIEWS.group && resource === SUBJECT_ACCESS_REVIEWS.resource;
}

function rightsOf(type: ApiResource): string {
  return `${isAccessReview(type) ? 'create' : 'get, list, watch'} ${groupResourceOf(type)}`;
}
