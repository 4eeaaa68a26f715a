// The exceptions of a cluster that are in force, for the policies that evaluation has.
import type { Cluster } from '../../cluster/index.ts';
import type { Logger } from '../../log/index.ts';
import {
  acceptedTerms,
  exceptedPolicyId,
  type JsonObject,
  keyOf,
  keyText,
  type ObjectKey,
  POLICY_EXCEPTIONS,
  type PolicyException,
} from '../../resources/index.ts';
import { type Change, ObjectCache } from '../../runtime/index.ts';
import { exceptionsChange, publishedException } from '../published-exceptions.ts';
import type { WatchedChange } from '../watched-objects.ts';

/** The `metadata.uid` of policies by their ids; undefined: there is no such policy, or it is not known which one it is. */
export type PolicyUids = ReadonlyMap<string, string | undefined>;

export interface ExceptionFeedOptions {
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  readonly publish: (change: WatchedChange) => void;
  readonly log: Logger;
}

/** Publishes exceptions that the controller has accepted for the policies that exist, and each change of them. */
export class ExceptionFeed {
  readonly #publish: ExceptionFeedOptions['publish'];
  readonly #cache: ObjectCache<PolicyException>;
  readonly #uids = new Map<string, string>();
  /** Keys of exceptions by the policies that they name. */
  readonly #byPolicy = new Map<string, Map<string, ObjectKey>>();
  /** Texts as published, by key. */
  readonly #published = new Map<string, string>();
  readonly #changed = new Map<string, ObjectKey>();
  #publishing: NodeJS.Immediate | undefined;

  constructor({ cluster, publish, log }: ExceptionFeedOptions) {
    this.#publish = publish;
    this.#cache = new ObjectCache({ cluster, type: POLICY_EXCEPTIONS, transform: withoutProse, log });
    this.#cache.subscribe((change) => this.#receive(change));
  }

  /** Watches the cluster until the signal is aborted. Call it once. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#cache.start(signal);
    clearImmediate(this.#publishing);
  }

  /** Updates which policies there are. Their exceptions change at once: those of a policy that is gone are not its successor's. */
  want(changes: PolicyUids, isFirst: boolean): void {
    const affected = isFirst ? [...this.#uids.keys(), ...changes.keys()] : [...changes.keys()];
    if (isFirst) {
      this.#uids.clear();
    }
    for (const [policy, uid] of changes) {
      if (uid === undefined) {
        this.#uids.delete(policy);
      } else {
        this.#uids.set(policy, uid);
      }
    }
    for (const policy of affected) {
      this.#byPolicy.get(policy)?.forEach((key, text) => this.#changed.set(text, key));
    }
    this.#publishChanged();
  }

  #receive({ before, after }: Change<PolicyException>): void {
    const key = keyOf(after ?? before ?? { metadata: {} });
    for (const policy of policiesOf(before)) {
      const named = this.#byPolicy.get(policy);
      named?.delete(keyText(key));
      if (named?.size === 0) {
        this.#byPolicy.delete(policy);
      }
    }
    for (const policy of policiesOf(after)) {
      const named = this.#byPolicy.get(policy) ?? new Map<string, ObjectKey>();
      this.#byPolicy.set(policy, named.set(keyText(key), key));
    }
    this.#changed.set(keyText(key), key);
    this.#publishing ??= setImmediate(() => this.#publishChanged());
  }

  #publishChanged(): void {
    clearImmediate(this.#publishing);
    this.#publishing = undefined;
    const objects = [...this.#changed].flatMap(([id, key]) => {
      const text = this.#textOf(key);
      if (text === this.#published.get(id)) {
        return [];
      }
      if (text === undefined) {
        this.#published.delete(id);
      } else {
        this.#published.set(id, text);
      }
      return [publishedException(key, text)];
    });
    this.#changed.clear();
    if (objects.length > 0) {
      this.#publish(exceptionsChange(false, objects));
    }
  }

  #textOf(key: ObjectKey): string | undefined {
    const exception = this.#cache.get(key);
    const terms = exception && acceptedTerms(exception, (policy) => this.#uids.get(policy));
    return terms === undefined ? undefined : JSON.stringify(terms);
  }
}

function policiesOf(exception: PolicyException | undefined): readonly string[] {
  const { metadata, spec } = exception ?? {};
  return (spec?.policies ?? []).map((one) => exceptedPolicyId(one, metadata?.namespace ?? ''));
}

/** Ten thousand exceptions take a few megabytes without what only people read. */
function withoutProse({ apiVersion, kind, metadata, spec, status }: PolicyException): PolicyException {
  const { namespace = '', name = '', uid = '', resourceVersion = '', generation = 0, deletionTimestamp } = metadata;
  const { reason: _reason, ticket: _ticket, owner: _owner, ...rest } = spec as PolicyException['spec'] & JsonObject;
  const { accepted } = status ?? {};
  return {
    apiVersion,
    kind,
    metadata: {
      namespace,
      name,
      uid,
      resourceVersion,
      generation,
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    spec: { ...rest, reason: '' },
    ...(accepted === undefined ? {} : { status: { accepted } }),
  };
}
