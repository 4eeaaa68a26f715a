import { Waiting } from '../../runtime/index.ts';
import type { ConfigurationObjects } from './configuration-objects.ts';
import type { WebhookMetrics } from './webhook-metrics.ts';
import type { Webhook, WebhookConfiguration } from './webhook-object.ts';

export interface ConfigurationWriterOptions {
  readonly objects: ConfigurationObjects;
  readonly metrics: WebhookMetrics | undefined;
}

/** Changes to the configurations of one policy server. */
export interface ConfigurationChanges {
  /** All wanted configurations. */
  readonly wanted: readonly WebhookConfiguration[];
  /** Wanted configurations that have to be written. */
  readonly different: readonly WebhookConfiguration[];
  /** Configurations in the cluster that are not wanted. */
  readonly obsolete: readonly WebhookConfiguration[];
}

export class ConfigurationWriter {
  readonly #objects: ConfigurationObjects;
  readonly #metrics: WebhookMetrics | undefined;

  constructor({ objects, metrics }: ConfigurationWriterOptions) {
    this.#objects = objects;
    this.#metrics = metrics;
  }

  changes(policyServer: string, wanted: readonly WebhookConfiguration[]): ConfigurationChanges {
    const names = new Set(wanted.map(({ kind, metadata }) => `${kind} ${metadata.name}`));
    return {
      wanted,
      different: wanted.filter((one) => this.#objects.differs(one)),
      obsolete: this.#objects.of(policyServer).filter(({ kind, metadata }) => !names.has(`${kind} ${metadata.name}`)),
    };
  }

  /**
   * Writes in an order that keeps every wanted webhook in place: a webhook that moves between objects is added before it is
   * dropped.
   * @throws ApiError; Waiting when another writer contests a configuration: all others are written
   */
  async write({ wanted, different, obsolete }: ConfigurationChanges, signal: AbortSignal): Promise<void> {
    const remaining = [...different];
    let contested: Waiting | undefined;
    while (remaining.length > 0) {
      const index = remaining.findIndex((one) => this.#dropsNothing(one, wanted));
      if (index === -1 && contested !== undefined) {
        // A webhook that would be dropped here may be missing in the contested configuration.
        break;
      }
      for (const next of remaining.splice(Math.max(0, index), 1)) {
        try {
          await this.#objects.write(next, signal);
          this.#metrics?.countWrite('written');
        } catch (error) {
          if (!(error instanceof Waiting)) {
            throw error;
          }
          contested = error;
        }
      }
    }
    if (contested !== undefined) {
      throw contested;
    }
    for (const object of obsolete) {
      await this.#objects.remove(object, signal);
      this.#metrics?.countWrite('removed');
    }
  }

  /** Whether a write drops no webhook that another configuration should have and does not have yet. */
  #dropsNothing(wanted: WebhookConfiguration, all: readonly WebhookConfiguration[]): boolean {
    const kept = new Set(namesOf(wanted));
    const dropped = namesOf(this.#objects.actual(wanted)).filter((name) => !kept.has(name));
    if (dropped.length === 0) {
      return true;
    }
    const others = all.filter(({ kind, metadata }) => kind === wanted.kind && metadata.name !== wanted.metadata.name);
    const moved = new Set(others.flatMap(namesOf));
    const present = new Set(others.flatMap((other) => namesOf(this.#objects.actual(other))));
    return dropped.every((name) => !moved.has(name) || present.has(name));
  }
}

function namesOf(configuration: WebhookConfiguration | undefined): readonly string[] {
  return (configuration?.webhooks ?? []).map((webhook) => (webhook as Webhook).name);
}
