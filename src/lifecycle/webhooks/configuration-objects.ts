// The configurations of policy servers as they are in the cluster, and how they get there.
import { isDeepStrictEqual } from 'node:util';
import { ApiError, type Cluster, unlessGone } from '../../cluster/index.ts';
import { keyOf, POLICY_SERVER_LABEL, type PolicyMatch, type ResourceType } from '../../resources/index.ts';
import type { ObjectCache, ObjectIndex } from '../../runtime/index.ts';
import { FIELD_MANAGER } from '../field-manager.ts';
import { WrittenObjects } from '../written-objects.ts';
import { AskedPolicies } from './asked-policies.ts';
import type { ExemptionSettings } from './exemptions.ts';
import { bodyOf } from './webhook-configurations.ts';
import { corrected, policyOf, type WebhookConfiguration } from './webhook-object.ts';

type Configurations = ObjectCache<WebhookConfiguration>;

/** What the API server made of what it was told: it leaves out what is empty, and others may add to it. */
interface Taken {
  readonly wanted: WebhookConfiguration;
  readonly version: string | undefined;
}

interface OfKind {
  readonly type: ResourceType<WebhookConfiguration>;
  readonly cache: Configurations;
  readonly byServer: ObjectIndex<WebhookConfiguration>;
  readonly objects: WrittenObjects<WebhookConfiguration>;
  /** By name: those that differ from what was written, as the API server keeps them. */
  readonly taken: Map<string, Taken>;
}

export interface ConfigurationObjectsOptions extends Pick<ExemptionSettings, 'exemptNamespaces'> {
  readonly cluster: Cluster;
  /** Of objects with the labels of `MANAGED_BY`. */
  readonly validating: Configurations;
  readonly mutating: Configurations;
}

export class ConfigurationObjects {
  readonly #cluster: Cluster;
  readonly #kinds: readonly OfKind[];
  readonly #settings: Pick<ExemptionSettings, 'exemptNamespaces'>;
  readonly #asked = new WeakMap<WebhookConfiguration, AskedPolicies>();

  constructor({ cluster, validating, mutating, exemptNamespaces }: ConfigurationObjectsOptions) {
    this.#cluster = cluster;
    this.#settings = { exemptNamespaces };
    this.#kinds = [validating, mutating].map((cache) => ({
      type: cache.type,
      cache,
      byServer: cache.index((object) => [serverOf(object) ?? ''].filter((server) => server !== '')),
      objects: new WrittenObjects(cache),
      taken: new Map(),
    }));
  }

  /** Those of a policy server, of both kinds. */
  of(policyServer: string): readonly WebhookConfiguration[] {
    return this.#kinds.flatMap(({ byServer, objects }) =>
      objects.current(byServer.get(policyServer), (object) => serverOf(object) === policyServer),
    );
  }

  /** The names of the policy servers that there are configurations of. */
  servers(): ReadonlySet<string> {
    return new Set(
      this.#kinds.flatMap(({ cache, objects }) =>
        objects.current(cache.list(), () => true).flatMap((object) => serverOf(object) ?? []),
      ),
    );
  }

  /** Those of an earlier version, which wrote one for each policy, named by its id. */
  earlier(): readonly WebhookConfiguration[] {
    return this.#kinds.flatMap(({ cache, objects }) =>
      objects.current(cache.list(), () => true).filter((object) => isEarlier(object)),
    );
  }

  /** What a configuration asks about. */
  askedBy(configuration: WebhookConfiguration): AskedPolicies {
    const known = this.#asked.get(configuration) ?? new AskedPolicies(configuration);
    this.#asked.set(configuration, known);
    return known;
  }

  /** Whether API servers send a policy server all requests of a match, but for those that are exempt. */
  covers(policyServer: string, match: PolicyMatch): boolean {
    return this.of(policyServer).some((object) => this.askedBy(object).isAskedAbout(match, this.#settings));
  }

  /** Whether a policy server has a webhook of a policy's own. */
  hasOwn(policyServer: string, id: string): boolean {
    return this.of(policyServer).some((object) => this.askedBy(object).hasOwn(id));
  }

  /** Whether a configuration is not in the cluster as it is wanted. */
  differs(wanted: WebhookConfiguration): boolean {
    const { objects, taken } = this.#kindOf(wanted);
    const actual = objects.get(keyOf(wanted));
    return (
      actual === undefined ||
      (corrected(actual, wanted) !== undefined && !isTaken(taken.get(keyOf(wanted).name), actual, wanted))
    );
  }

  /** The object of the same kind and name, as it is now. */
  actual(configuration: WebhookConfiguration): WebhookConfiguration | undefined {
    return this.#kindOf(configuration).objects.get(keyOf(configuration));
  }

  /** @throws ApiError */
  async write(wanted: WebhookConfiguration, signal: AbortSignal): Promise<void> {
    const { type, objects, taken } = this.#kindOf(wanted);
    const options = { fieldManager: FIELD_MANAGER, signal };
    const key = keyOf(wanted);
    const actual = objects.get(key);
    try {
      if (actual === undefined) {
        // One that lost its label is not in the cache, and taken over.
        const made = await this.#cluster.patch(
          type,
          key,
          { type: 'apply', body: bodyOf(wanted), force: true },
          options,
        );
        objects.wrote(key, made);
        return;
      }
      // Replaced, not applied: what others added is theirs, and applying leaves it.
      const made = await this.#cluster.update(type, corrected(actual, wanted) ?? actual, options);
      objects.wrote(key, made);
      if (corrected(made, wanted) === undefined) {
        taken.delete(key.name);
      } else {
        taken.set(key.name, { wanted, version: made.metadata.resourceVersion });
      }
    } catch (error) {
      if (error instanceof ApiError && (error.code === 409 || error.code === 404)) {
        objects.forget(key);
      }
      throw error;
    }
  }

  /** As it was looked at: not one that another leader has written meanwhile. @throws ApiError */
  async remove(configuration: WebhookConfiguration, signal: AbortSignal): Promise<void> {
    const { type, objects, taken } = this.#kindOf(configuration);
    const key = keyOf(configuration);
    taken.delete(key.name);
    const { uid = '', resourceVersion = '' } = configuration.metadata;
    try {
      await unlessGone(this.#cluster.delete(type, key, { preconditions: { uid, resourceVersion }, signal }));
    } catch (error) {
      objects.forget(key);
      throw error;
    }
    objects.wrote(key, undefined);
  }

  /** Whether an API server would take a configuration. @throws ApiError */
  async attempt(configuration: WebhookConfiguration, signal: AbortSignal): Promise<void> {
    const options = { fieldManager: FIELD_MANAGER, dryRun: true, signal };
    await this.#cluster.create(this.#kindOf(configuration).type, configuration, options);
  }

  #kindOf({ kind }: WebhookConfiguration): OfKind {
    const found = this.#kinds.find(({ type }) => type.kind === kind);
    if (found === undefined) {
      throw new TypeError(`expected a webhook configuration, got ${kind}`);
    }
    return found;
  }
}

/** The policy server that a configuration is for. */
export function serverOf({ metadata }: WebhookConfiguration): string | undefined {
  return metadata.labels?.[POLICY_SERVER_LABEL];
}

function isEarlier(object: WebhookConfiguration): boolean {
  return (
    serverOf(object) === undefined && policyOf(object) !== undefined && object.metadata.name?.startsWith('kw.') === true
  );
}

/** Whether a configuration is what the API server made of what is wanted, and nobody has touched it since. */
function isTaken(taken: Taken | undefined, { metadata }: WebhookConfiguration, wanted: WebhookConfiguration): boolean {
  return (
    taken !== undefined &&
    taken.version === metadata.resourceVersion &&
    isDeepStrictEqual(taken.wanted.webhooks, wanted.webhooks)
  );
}
