import type { Logger } from 'pino';
import {
  ApiError,
  type Cluster,
  isForbidden,
  isNotFound,
  type ListOptions,
  type ObjectList,
  Reflector,
  type WatchEvent,
  type WatchOptions,
} from '../../cluster/index.ts';
import type { KubernetesObject, OpenReport, ReportApi, ResourceType } from '../../resources/index.ts';
import { ObjectStore, type Runnable, WrittenObjects } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import { REPORT_SELECTOR } from '../access-rules/report-labels.ts';
import { storedReport, type StoredReport } from './stored-report.ts';

/** Whether reports of a kind can be written. `NotServed`: their CustomResourceDefinition is missing. */
export type ReportState = 'Unknown' | 'Served' | 'NotServed' | 'Forbidden' | 'Failed';

/** Some 4 MB of them. */
const REPORTS_PER_PAGE = 25;

export interface FollowedReportsOptions {
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  readonly type: ResourceType<OpenReport>;
  readonly format: ReportApi;
  readonly log: Logger;
  /** Called with the namespace of each report that changed; '' of those without one. */
  readonly onChange: (namespace: string) => void;
  /** Called when reports can be written, at first and again. */
  readonly onServed: () => void;
}

/** The stored reports of one kind. Follows the kind also when it is served later, or not for a while. */
export class FollowedReports implements Runnable {
  readonly name: string;
  readonly type: ResourceType<OpenReport>;
  readonly #options: FollowedReportsOptions;
  readonly #store = new ObjectStore<StoredReport>();
  readonly #written: WrittenObjects<StoredReport>;
  #state: ReportState = 'Unknown';

  constructor(options: FollowedReportsOptions) {
    this.#options = options;
    this.type = options.type;
    this.name = options.type.resource;
    this.#written = new WrittenObjects(this.#store);
    this.#store.subscribe(({ before, after }) => options.onChange((after ?? before)?.metadata.namespace ?? ''));
  }

  get state(): ReportState {
    return this.#state;
  }

  namespaces(): Iterable<string> {
    return this.#store.namespaces();
  }

  /** Those of a namespace, with the latest writes of this process. */
  of(namespace: string): readonly StoredReport[] {
    return this.#written.current(
      this.#store.list(namespace),
      ({ metadata }) => (metadata.namespace ?? '') === namespace,
    );
  }

  /** @param report the response of a write; undefined after a deletion */
  recordWrite(key: { readonly namespace?: string; readonly name: string }, report: OpenReport | undefined): void {
    this.#written.recordWrite(key, report === undefined ? undefined : storedReport(report, this.#options.format));
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    this.#state = 'Unknown';
    const { group, version, resource, kind, namespaced } = this.type;
    const reflector = new Reflector<StoredReport>({
      cluster: this.#reduced(),
      type: { group, version, resource, kind, namespaced },
      labelSelector: REPORT_SELECTOR,
      pageSize: REPORTS_PER_PAGE,
      handler: {
        replace: (reports) => {
          this.#store.replace(reports);
          this.#changeState('Served');
        },
        apply: (event) => this.#store.apply(event),
      },
      onError: (error, during) => {
        const state = stateOfError(error);
        if (during === 'list' || state !== 'Failed') {
          this.#changeState(state, error);
        }
      },
    });
    await reflector.start(signal);
  }

  /** The cluster, whose reports are reduced page by page, so that all of them are never in memory at once. */
  #reduced(): Pick<Cluster, 'list' | 'watch'> {
    const { cluster, type, format } = this.#options;
    const stored = (report: OpenReport): StoredReport => storedReport(report, format);
    const isServed = (): boolean => this.#state === 'Served';
    const reduced = {
      async list(_type: unknown, options?: ListOptions): Promise<ObjectList<StoredReport>> {
        const { metadata, items } = await cluster.list(type, options);
        return { metadata, items: items.map(stored) };
      },
      async *watch(_type: unknown, options?: WatchOptions): AsyncGenerator<WatchEvent<StoredReport>> {
        if (!isServed()) {
          // What happened meanwhile is unknown.
          throw ApiError.expired('the reports have to be listed again');
        }
        for await (const { type: change, object } of cluster.watch(type, options)) {
          yield {
            type: change,
            object: change === 'BOOKMARK' ? (object as KubernetesObject as StoredReport) : stored(object),
          };
        }
      },
    };
    // The reflector asks for this one type.
    return reduced as unknown as Pick<Cluster, 'list' | 'watch'>;
  }

  /** Says a change once, not at every attempt. */
  #changeState(state: ReportState, error?: unknown): void {
    if (state === this.#state) {
      return;
    }
    this.#state = state;
    const { log, type, onServed } = this.#options;
    if (state === 'Served') {
      log.info({ kind: type.kind }, 'findings are written as reports');
      onServed();
    } else {
      log.warn(
        { kind: type.kind, state, ...(error === undefined ? {} : { error: errorText(error) }) },
        'findings are not written as reports of this kind until the cluster serves it and lets it be listed',
      );
    }
  }
}

function stateOfError(error: unknown): ReportState {
  return isNotFound(error) ? 'NotServed' : isForbidden(error) ? 'Forbidden' : 'Failed';
}
