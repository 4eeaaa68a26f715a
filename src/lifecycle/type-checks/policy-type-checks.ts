import type { Cluster, OpenApiText } from '../../cluster/index.ts';
import type { Logger } from '../../log/index.ts';
import type { AdmissionPolicySpec } from '../../resources/index.ts';
import { aborted, type Runnable } from '../../runtime/index.ts';
import { JobThread } from '../../threads/index.ts';
import { errorText } from '../../values/index.ts';
import { neededVersions } from './needed-versions.ts';
import type { TypeCheckJob } from './type-check-job.ts';
import { skippedReport, type TypeCheckReport } from './type-check-report.ts';

/** Time to read what the cluster serves. Milliseconds. */
const READ_MS = 5_000;
/**
 * Time for the check of one policy. A thousand expressions for ten kinds take 0.7 s, usual policies 4 ms. A write waits for less.
 * Milliseconds.
 */
const DEADLINE_MS = 4_000;
/** Memory of the thread: parsed documents, and the syntax trees of a policy of 3 MB. */
const HEAP_MB = 256;
/** How old discovery may be: a kind that was installed a moment ago must be known. Milliseconds. */
const DISCOVERY_AGE_MS = 2_000;
/** Maximum number of entries in the lists of all rules; usual policies have a dozen. Each is compared with each resource. */
const MAX_RULE_ENTRIES = 500;
/** Maximum number of groups and versions whose documents are read, and of their characters together. */
const MAX_DOCUMENTS = 10;
const MAX_CHARACTERS = 16 * 1024 ** 2;

export interface PolicyTypeChecksOptions {
  readonly cluster: Pick<Cluster, 'discovery' | 'openApi'>;
  readonly log: Logger;
}

/**
 * Checks policies against what the cluster serves: whether their rules match a resource, and whether their expressions fit the
 * schemas of the kinds. The thread for it is not the one that validates policies, so that a slow check refuses no policy.
 */
export class PolicyTypeChecks implements Runnable {
  readonly name = 'type-checks';
  readonly #options: PolicyTypeChecksOptions;
  readonly #thread: JobThread<TypeCheckJob, TypeCheckReport>;

  /** @param deadlineMs time for one policy; default: {@link DEADLINE_MS} */
  constructor(options: PolicyTypeChecksOptions, deadlineMs: number = DEADLINE_MS) {
    this.#options = options;
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    this.#thread = new JobThread({
      module: new URL(`./type-check-thread.${extension}`, import.meta.url),
      name: 'type checks',
      workerData: undefined,
      deadlineMs,
      heapMb: HEAP_MB,
      log: options.log,
    });
  }

  /**
   * Never rejects: a policy that cannot be checked has a report that says why.
   * @param owner whose policy it is, such as a namespace
   */
  async check(spec: AdmissionPolicySpec, owner: string): Promise<TypeCheckReport> {
    let job: TypeCheckJob;
    try {
      checkSize(spec);
      job = await this.#job(spec);
    } catch (error) {
      return { ...this.#skipped('it could not be compared with what the cluster serves', error), isTransient: true };
    }
    try {
      return await this.#thread.run(job, owner);
    } catch (error) {
      return this.#skipped('its types could not be checked', error);
    }
  }

  /** Ends the thread when `signal` is aborted. */
  async start(signal: AbortSignal): Promise<void> {
    await aborted(signal);
    this.#thread.stop();
  }

  #skipped(what: string, error: unknown): TypeCheckReport {
    const reason = errorText(error);
    this.#options.log.debug({ error: reason }, what);
    return skippedReport(`${what}: ${reason}`);
  }

  async #job(spec: AdmissionPolicySpec): Promise<TypeCheckJob> {
    const { discovery, openApi } = this.#options.cluster;
    const signal = AbortSignal.timeout(READ_MS);
    const served = await discovery.resources({ maxAgeMs: DISCOVERY_AGE_MS, signal });
    const documents: OpenApiText[] = [];
    let characters = 0;
    for (const version of openApi === undefined ? [] : neededVersions(spec, served, MAX_DOCUMENTS)) {
      const document = await openApi?.document(version, { signal });
      characters += document?.text.length ?? 0;
      if (document !== undefined && characters <= MAX_CHARACTERS) {
        documents.push(document);
      }
    }
    return { spec, served, documents };
  }
}

/** @throws Error if comparing the rules with all resources would hold the controller */
function checkSize({ rules }: AdmissionPolicySpec): void {
  const entries = rules.reduce(
    (sum, { apiGroups = [], apiVersions, resources }) => sum + apiGroups.length + apiVersions.length + resources.length,
    0,
  );
  if (entries > MAX_RULE_ENTRIES) {
    throw new RangeError(`the rules have ${entries} entries: expected at most ${MAX_RULE_ENTRIES}`);
  }
}
