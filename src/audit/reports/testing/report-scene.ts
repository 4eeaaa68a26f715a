import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../../../apiserver/index.ts';
import type { ApiError, Cluster } from '../../../cluster/index.ts';
import {
  knownKind,
  type KubernetesObject,
  type OpenReport,
  REPORT_FORMATS,
  type ReportApi,
  type ReportResult,
  type ResourceType,
} from '../../../resources/index.ts';
import { until } from '../../testing/until.ts';
import { ReportWriter } from '../report-writer.ts';
import { MemoryFindings } from './memory-findings.ts';
import { publishedDefinitions } from './published-definitions.ts';

const DEFINITIONS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');

/** A field that the published schema does not have is refused. */
const STRICT = { fieldValidation: 'Strict' } as const;

/** A cluster with findings, and writers of their reports whose requests are counted and can be refused. */
export class ReportScene implements AsyncDisposable {
  readonly admin: Cluster;
  readonly format: ReportApi;
  readonly findings = new MemoryFindings();
  readonly registry = new Registry();
  /** Lines of the log. */
  readonly lines: Readonly<Record<string, unknown>>[] = [];
  /** Of the present writer: `create portcullis-1`. */
  writes: string[] = [];
  refusalOf: (verb: string, type: ResourceType) => ApiError | undefined = () => undefined;
  readonly #cluster: EmbeddedCluster;
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #writer: ReportWriter | undefined;

  private constructor(cluster: EmbeddedCluster, format: ReportApi) {
    this.#cluster = cluster;
    this.format = format;
    this.admin = cluster.admin;
  }

  static async open({
    serves = true,
    format = REPORT_FORMATS.openreports,
  }: { readonly serves?: boolean; readonly format?: ReportApi } = {}): Promise<ReportScene> {
    const scene = new ReportScene(await EmbeddedCluster.open(), format);
    if (serves) {
      await scene.serve();
    }
    return scene;
  }

  async serve(): Promise<void> {
    for (const definition of publishedDefinitions(this.format)) {
      await this.admin.create(DEFINITIONS, definition);
    }
  }

  /** Starts a writer, as after a restart of the process if there was one. */
  async start(): Promise<void> {
    await this.stop();
    this.registry.clear();
    this.writes = [];
    this.#stop = new AbortController();
    this.#writer = new ReportWriter({
      cluster: this.#counted(),
      findings: [this.findings],
      format: this.format,
      registry: this.registry,
      log: pino({ level: 'debug' }, { write: (line) => void this.lines.push(JSON.parse(line)) }),
      writeDelayMs: 5,
    });
    this.#running = this.#writer.start(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.#writer = undefined;
  }

  /** Waits until a condition about the results of the namespace holds. */
  async untilResults(holds: (results: readonly ReportResult[]) => boolean): Promise<readonly ReportResult[]> {
    let results: readonly ReportResult[] = [];
    await until(async () => holds((results = await this.results())));
    return results;
  }

  async results(namespace = 'default'): Promise<readonly ReportResult[]> {
    return (await this.reports(namespace)).flatMap(({ results = [] }) => results);
  }

  async reports(namespace = 'default'): Promise<readonly OpenReport[]> {
    return (await this.admin.list(this.format.reports, { namespace })).items;
  }

  /** Waits until all that is known is written. */
  async quiet(): Promise<void> {
    let calm = 0;
    await until(async () => {
      await new Promise((resolve) => setTimeout(resolve, 10));
      calm = this.#writer?.isIdle === true ? calm + 1 : 0;
      return calm >= 5;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#cluster.close();
  }

  #counted(): Cluster {
    const { admin } = this;
    const check = (verb: string, type: ResourceType, name?: string): void => {
      if (name !== undefined) {
        this.writes.push(`${verb} ${name}`);
      }
      const refusal = this.refusalOf(verb, type);
      if (refusal !== undefined) {
        throw refusal;
      }
    };
    return {
      ...admin,
      discovery: admin.discovery,
      get: (type, key, options) => admin.get(type, key, options),
      list: async (type, options) => {
        check('list', type);
        return await admin.list(type, options);
      },
      watch: (type, options) => admin.watch(type, options),
      create: async <T extends KubernetesObject>(type: ResourceType<T>, object: KubernetesObject) => {
        check('create', type, object.metadata.name);
        return await admin.create<T>(type, object, STRICT);
      },
      update: async <T extends KubernetesObject>(type: ResourceType<T>, object: KubernetesObject) => {
        check('update', type, object.metadata.name);
        return await admin.update<T>(type, object, STRICT);
      },
      delete: async (type, key, options) => {
        check('delete', type, key.name);
        return await admin.delete(type, key, options);
      },
      patch: (type, key, patch, options) => admin.patch(type, key, patch, options),
      deleteCollection: (type, options) => admin.deleteCollection(type, options),
    };
  }
}
