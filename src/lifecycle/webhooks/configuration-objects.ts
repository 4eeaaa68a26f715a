// Reads and writes webhook configurations in the cluster.
import { isDeepStrictEqual } from 'node:util';
import { ApiError, type Cluster, unlessGone } from '../../cluster/index.ts';
import {
  CONTROLLER_FIELD_MANAGER,
  keyOf,
  POLICY_SERVER_LABEL,
  type PolicyMatch,
  type ResourceType,
  webhookMatches,
} from '../../resources/index.ts';
import { type ObjectCache, type ObjectIndex, WrittenObjects } from '../../runtime/index.ts';
import { ConfigurationCoverage } from './configuration-coverage.ts';
import type { ExemptionSettings } from './exemptions.ts';
import { bodyOf } from './webhook-configurations.ts';
import { corrected, type WebhookConfiguration } from './webhook-object.ts';

type Configurations = ObjectCache<WebhookConfiguration>;

/** A write whose stored object differs: API servers drop empty fields, and mutating webhooks may change others. */
interface AlteredWrite {
  readonly wanted: WebhookConfiguration;
  /** The resourceVersion of the stored object. */
  readonly version: string | undefined;
}

interface KindObjects {
  readonly type: ResourceType<WebhookConfiguration>;
  readonly cache: Configurations;
  readonly byServer: ObjectIndex<WebhookConfiguration>;
  readonly objects: WrittenObjects<WebhookConfiguration>;
  /** By name; without it, such an object would be written again and again. */
  readonly altered: Map<string, AlteredWrite>;
}

export interface ConfigurationObjectsOptions extends Pick<ExemptionSettings, 'exemptNamespaces'> {
  readonly cluster: Cluster;
  /** Caches of objects with the labels of `MANAGED_BY`. */
  readonly validating: Configurations;
  readonly mutating: Configurations;
}

export class ConfigurationObjects {
  readonly #cluster: Cluster;
  readonly #kinds: readonly KindObjects[];
  readonly #settings: Pick<ExemptionSettings, 'exemptNamespaces'>;
  readonly #coverage = new WeakMap<WebhookConfiguration, ConfigurationCoverage>();

  constructor({ cluster, validating, mutating, exemptNamespaces }: ConfigurationObjectsOptions) {
    this.#cluster = cluster;
    this.#settings = { exemptNamespaces };
    this.#kinds = [validating, mutating].map((cache) => ({
      type: cache.type,
      cache,
      byServer: cache.index((object) => [serverOf(object) ?? ''].filter((server) => server !== '')),
      objects: new WrittenObjects(cache),
      altered: new Map(),
    }));
  }

  /** The configurations of a policy server, of both kinds. */
  of(policyServer: string): readonly WebhookConfiguration[] {
    return this.#kinds.flatMap(({ byServer, objects }) =>
      objects.current(byServer.get(policyServer), (object) => serverOf(object) === policyServer),
    );
  }

  /** The names of policy servers with configurations. */
  servers(): ReadonlySet<string> {
    return new Set(
      this.#kinds.flatMap(({ cache, objects }) =>
        objects.current(cache.list(), () => true).flatMap((object) => serverOf(object) ?? []),
      ),
    );
  }

  coverageOf(configuration: WebhookConfiguration): ConfigurationCoverage {
    const coverage = this.#coverage.get(configuration) ?? new ConfigurationCoverage(configuration);
    this.#coverage.set(configuration, coverage);
    return coverage;
  }

  /** Whether API servers send a policy server all requests of a match, except exempt ones. */
  covers(policyServer: string, match: PolicyMatch): boolean {
    const objects = this.of(policyServer);
    return webhookMatches(match).every((one) =>
      objects.some((object) => this.coverageOf(object).covers(one, this.#settings)),
    );
  }

  /** The failurePolicy of the webhooks that cover a match; `Fail` if one of them has it. Undefined: no webhooks cover it. */
  failurePolicy(policyServer: string, match: PolicyMatch): 'Fail' | 'Ignore' | undefined {
    const objects = this.of(policyServer);
    const found = webhookMatches(match).map((one) =>
      objects.flatMap((object) => this.coverageOf(object).failurePolicies(one, this.#settings)),
    );
    const isCovered = found.every((policies) => policies.length > 0);
    return isCovered ? (found.flat().includes('Fail') ? 'Fail' : 'Ignore') : undefined;
  }

  /** Whether a policy server has a webhook for this policy alone. */
  hasOwnWebhook(policyServer: string, id: string): boolean {
    return this.of(policyServer).some((object) => this.coverageOf(object).hasOwnWebhook(id));
  }

  /** Whether a configuration has to be written. */
  differs(wanted: WebhookConfiguration): boolean {
    const { objects, altered } = this.#kindOf(wanted);
    const actual = objects.get(keyOf(wanted));
    return (
      actual === undefined ||
      (corrected(actual, wanted) !== undefined && !isUnchanged(altered.get(keyOf(wanted).name), actual, wanted))
    );
  }

  /** The object of the same kind and name in the cluster. */
  actual(configuration: WebhookConfiguration): WebhookConfiguration | undefined {
    return this.#kindOf(configuration).objects.get(keyOf(configuration));
  }

  /** @throws ApiError */
  async write(wanted: WebhookConfiguration, signal: AbortSignal): Promise<void> {
    const { type, objects, altered } = this.#kindOf(wanted);
    const options = { fieldManager: CONTROLLER_FIELD_MANAGER, signal };
    const key = keyOf(wanted);
    const actual = objects.get(key);
    try {
      if (actual === undefined) {
        // An object that lost its label is not in the cache: apply takes it over.
        const stored = await this.#cluster.patch(
          type,
          key,
          { type: 'apply', body: bodyOf(wanted), force: true },
          options,
        );
        objects.recordWrite(key, stored);
        return;
      }
      // An update, since apply keeps webhooks that others added.
      const stored = await this.#cluster.update(type, corrected(actual, wanted) ?? actual, options);
      objects.recordWrite(key, stored);
      if (corrected(stored, wanted) === undefined) {
        altered.delete(key.name);
      } else {
        altered.set(key.name, { wanted, version: stored.metadata.resourceVersion });
      }
    } catch (error) {
      if (error instanceof ApiError && (error.code === 409 || error.code === 404)) {
        objects.forget(key);
      }
      throw error;
    }
  }

  /** Deletes exactly this version of a configuration. @throws ApiError: 409 if another leader has written it since */
  async remove(configuration: WebhookConfiguration, signal: AbortSignal): Promise<void> {
    const { type, objects, altered } = this.#kindOf(configuration);
    const key = keyOf(configuration);
    altered.delete(key.name);
    const { uid = '', resourceVersion = '' } = configuration.metadata;
    try {
      await unlessGone(this.#cluster.delete(type, key, { preconditions: { uid, resourceVersion }, signal }));
    } catch (error) {
      objects.forget(key);
      throw error;
    }
    objects.recordWrite(key, undefined);
  }

  /** Creates a configuration with `dryRun=All`. @throws ApiError */
  async dryRun(configuration: WebhookConfiguration, signal: AbortSignal): Promise<void> {
    const options = { fieldManager: CONTROLLER_FIELD_MANAGER, dryRun: true, signal };
    await this.#cluster.create(this.#kindOf(configuration).type, configuration, options);
  }

  #kindOf({ kind }: WebhookConfiguration): KindObjects {
    const found = this.#kinds.find(({ type }) => type.kind === kind);
    if (found === undefined) {
      throw new TypeError(`expected a webhook configuration, got ${kind}`);
    }
    return found;
  }
}

/** The policy server of a configuration. */
export function serverOf({ metadata }: WebhookConfiguration): string | undefined {
  return metadata.labels?.[POLICY_SERVER_LABEL];
}

/** Whether an object is the result of writing the same webhooks, and was not changed since. */
function isUnchanged(
  written: AlteredWrite | undefined,
  { metadata }: WebhookConfiguration,
  wanted: WebhookConfiguration,
): boolean {
  return (
    written !== undefined &&
    written.version === metadata.resourceVersion &&
    isDeepStrictEqual(written.wanted.webhooks, wanted.webhooks)
  );
}
