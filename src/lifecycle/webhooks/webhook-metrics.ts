// Prometheus metrics of webhook configurations. Docs: docs/enforcement.md.
import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

/** Figures of one configuration. */
interface ConfigurationFigures {
  readonly policyServer: string;
  readonly kind: string;
  readonly webhooks: number;
}

export interface WebhookFigures {
  readonly configurations: readonly ConfigurationFigures[];
  /** Policy servers whose last pass failed. */
  readonly failing: readonly string[];
}

/** No metric has a policy as a label: there may be thousands. */
export class WebhookMetrics {
  readonly #writes;

  /** @param figures returns current values */
  constructor(registry: Registry, figures: () => WebhookFigures) {
    const registers = [registry];
    const labelNames = ['policy_server', 'kind'] as const;
    const objects = new Gauge({
      name: 'portcullis_webhook_configurations',
      help: 'Webhook configurations of policy servers',
      labelNames,
      registers,
      collect() {
        this.reset();
        for (const { policyServer, kind } of figures().configurations) {
          this.inc({ policy_server: policyServer, kind });
        }
      },
    });
    const webhooks = new Gauge({
      name: 'portcullis_webhooks',
      help: 'Webhooks in the configurations of policy servers',
      labelNames,
      registers,
      collect() {
        this.reset();
        for (const { policyServer, kind, webhooks: count } of figures().configurations) {
          this.inc({ policy_server: policyServer, kind }, count);
        }
      },
    });
    const failing = new Gauge({
      name: 'portcullis_webhook_configurations_failing',
      help: 'Whether the configurations of a policy server could not be written the last time',
      labelNames: ['policy_server'],
      registers,
      collect() {
        this.reset();
        for (const policyServer of figures().failing) {
          this.set({ policy_server: policyServer }, 1);
        }
      },
    });
    for (const gauge of [objects, webhooks, failing]) {
      gauge.reset();
    }
    this.#writes = new Counter({
      name: 'portcullis_webhook_configuration_writes_total',
      help: 'Writes of webhook configurations by result',
      labelNames: ['result'],
      registers,
    });
  }

  countWrite(result: 'written' | 'removed' | 'failed'): void {
    this.#writes.inc({ result });
  }
}
