import { Waiting } from '../../runtime/index.ts';
import type { ConfigurationObjects } from './configuration-objects.ts';
import type { WebhookMetrics } from './webhook-metrics.ts';
import type { Webhook, WebhookConfiguration } from './webhook-object.ts';

export interface ConfigurationWriterOptions {
  readonly objects: ConfigurationObjects;
  readonly metrics: WebhookMetrics | undefined;
}

/** What the configurations of one policy server have to become. */
export interface ConfigurationChanges {
  /** All that there are to be. */
  readonly wanted: readonly WebhookConfiguration[];
  /** Those of them that differ from what there is. */
  readonly different: readonly WebhookConfiguration[];
  /** What there is, and is not to be. */
  readonly superfluous: readonly WebhookConfiguration[];
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
      superfluous: this.#objects
        .of(policyServer)
        .filter(({ kind, metadata }) => !names.has(`${kind} ${metadata.name}`)),
    };
  }

  /**
   * Nothing that is wanted is away for a moment: an object that gives a webhook up is written after the one that takes it.
   * @throws ApiError; Waiting when somebody else writes one of them again and again: all others are written
   */
  async write({ wanted, different, superfluous }: ConfigurationChanges, signal: AbortSignal): Promise<void> {
    const left = [...different];
    let held: Waiting | undefined;
    while (left.length > 0) {
      const index = left.findIndex((one) => this.#dropsNothing(one, wanted));
      if (index === -1 && held !== undefined) {
        // What is dropped may be wanted in the one that is held up.
        break;
      }
      const [next] = left.splice(Math.max(0, index), 1);
      held = (next && (await this.#writeOne(next, signal))) ?? held;
    }
    if (held !== undefined) {
      throw held;
    }
    for (const object of superfluous) {
      await this.remove(object, signal);
    }
  }

  /** What holds it up, if anything does. */
  async #writeOne(object: WebhookConfiguration, signal: AbortSignal): Promise<Waiting | undefined> {
    try {
      await this.#objects.write(object, signal);
      this.#metrics?.wrote('written');
      return undefined;
    } catch (error) {
      if (error instanceof Waiting) {
        return error;
      }
      throw error;
    }
  }

  /** @throws ApiError */
  async remove(object: WebhookConfiguration, signal: AbortSignal): Promise<void> {
    await this.#objects.remove(object, signal);
    this.#metrics?.wrote('removed');
  }

  #dropsNothing(wanted: WebhookConfiguration, all: readonly WebhookConfiguration[]): boolean {
    const kept = new Set(namesOf(wanted));
    const dropped = namesOf(this.#objects.actual(wanted)).filter((name) => !kept.has(name));
    if (dropped.length === 0) {
      return true;
    }
    const others = all.filter(({ kind, metadata }) => kind === wanted.kind && metadata.name !== wanted.metadata.name);
    const taken = new Set(others.flatMap(namesOf));
    const there = new Set(others.flatMap((other) => namesOf(this.#objects.actual(other))));
    return dropped.every((name) => !taken.has(name) || there.has(name));
  }
}

function namesOf(configuration: WebhookConfiguration | undefined): readonly string[] {
  return (configuration?.webhooks ?? []).map((webhook) => (webhook as Webhook).name);
}
