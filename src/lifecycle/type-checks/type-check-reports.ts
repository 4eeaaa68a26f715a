import { isDeepStrictEqual } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../../cluster/index.ts';
import type { Logger } from '../../log/index.ts';
import type { AdmissionPolicyObject } from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import type { PolicyTypeChecks } from './policy-type-checks.ts';
import type { TypeCheckReport } from './type-check-report.ts';

/**
 * How often the index of the cluster's schemas is read, some 10 kB. So a policy is checked again after the definition of a kind
 * was installed or changed, or the cluster was upgraded. Milliseconds.
 */
const INTERVAL_MS = 30_000;

/** The check of one generation of a policy. */
interface KnownCheck {
  readonly generation: string;
  report: TypeCheckReport | undefined;
  /** Whether the cluster has changed since. */
  isStale: boolean;
}

export interface TypeCheckReportsOptions {
  readonly checks: Pick<PolicyTypeChecks, 'check'>;
  readonly openApi: Cluster['openApi'];
  /** Called when a policy should be reconciled again: it has a new report. */
  readonly requeue: (policy: string) => void;
  readonly log: Logger;
  /** Default: {@link INTERVAL_MS}. */
  readonly intervalMs?: number;
}

/** The newest reports on policies, for their status. Checks run in the background. */
export class TypeCheckReports {
  readonly #options: TypeCheckReportsOptions;
  /** By policy id. */
  readonly #known = new Map<string, KnownCheck>();
  #revision: string | undefined;

  constructor(options: TypeCheckReportsOptions) {
    this.#options = options;
  }

  /** The report on this generation of a policy. Undefined until there is one; starts the check if necessary. */
  of(
    id: string,
    { metadata: { uid = '', generation = 0, namespace = '' }, spec }: AdmissionPolicyObject,
  ): TypeCheckReport | undefined {
    const key = `${uid}/${generation}`;
    const known = this.#known.get(id);
    if (known?.generation === key && !known.isStale) {
      return known.report;
    }
    // Until the new report is there, that on the same generation stays.
    const report = known?.generation === key ? known.report : undefined;
    const started: KnownCheck = { generation: key, report, isStale: false };
    this.#known.set(id, started);
    void this.#run(id, started, spec, namespace);
    return report;
  }

  /** Forgets a deleted policy. */
  forget(id: string): void {
    this.#known.delete(id);
  }

  /** Checks all policies again after the schemas have changed, until `signal` is aborted. */
  async start(signal: AbortSignal): Promise<void> {
    const { openApi, intervalMs = INTERVAL_MS } = this.#options;
    while (!signal.aborted && openApi !== undefined) {
      await this.#refresh(openApi, signal);
      await sleep(intervalMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
    this.#known.clear();
  }

  async #refresh(openApi: NonNullable<Cluster['openApi']>, signal: AbortSignal): Promise<void> {
    try {
      const revision = await openApi.revision({ signal });
      const isChange = this.#revision !== undefined && this.#revision !== revision;
      this.#revision = revision;
      for (const [id, known] of this.#known) {
        if (isChange || known.report?.isTransient === true) {
          known.isStale = true;
          this.#options.requeue(id);
        }
      }
    } catch (error) {
      if (!signal.aborted) {
        this.#options.log.debug({ error: errorText(error) }, 'schemas of the cluster not read');
      }
    }
  }

  async #run(id: string, started: KnownCheck, spec: AdmissionPolicyObject['spec'], namespace: string): Promise<void> {
    const report = await this.#options.checks.check(spec, namespace);
    const known = this.#known.get(id);
    if (known?.generation === started.generation && !isDeepStrictEqual(known.report, report)) {
      known.report = report;
      this.#options.requeue(id);
    }
  }
}
