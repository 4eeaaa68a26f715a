// A policy server: its two ports, its threads, its policies. Assembly only.
import type { Server, ServerResponse } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Registry } from 'prom-client';
import type { TrustRoot, Verification } from '../modules/index.ts';
import type { SourcesConfig } from '../modules/sources/index.ts';
import { admissionHandler } from './admission/admission-endpoint.ts';
import { createAdmissionServer, hostText, listen, RequestRefusal, RoutedServer } from '../https/index.ts';
import type { AdmissionServer, ClientTimeouts, TlsFiles } from '../https/index.ts';
import { EvaluationHost } from '../evaluation/index.ts';
import type { PoolAnswer, ClusterSource, ReviewRoute, WorkerPool } from '../evaluation/index.ts';
import { FilePolicies, type PolicyManifests } from './policies/file-policies.ts';
import type { LogEntry, Logger } from '../log/index.ts';
import { MetricsEndpoint } from '../metrics/index.ts';
import { ServerMetrics } from './metrics/metrics.ts';
import { MonitoredLog } from './monitoring/monitored-log.ts';
import { RequestRecorder } from './recording/request-recorder.ts';
import { offerRequests } from './recording/requests-socket.ts';
import { operationsRoutes, type PoliciesAnswer } from './status/operations-routes.ts';
import type { PhaseChange } from './policies/registry-entry.ts';
import type { PolicyHost, PolicySource } from './policies/policy-source.ts';
import type { ServedPolicyStatus } from './status/served-policy-status.ts';
import type { ClusterPolicies } from './replica/cluster-policies.ts';
import type { ClusterPoliciesOptions } from './replica/cluster-policies-options.ts';
import type { PrevalidationRequest, PrevalidationResult } from '../control/index.ts';
import { ServingRecord } from './policies/serving-record.ts';

/** How long a stopping server waits for pending reviews: a pod's default grace period minus a margin. Milliseconds. */
const DEFAULT_DRAIN_MS = 25_000;
/** How long a stopping server without pending reviews waits for bytes in transit. Milliseconds. */
const LAST_BYTES_MS = 1_000;
/** Interval at which a stopping server closes idle connections. Milliseconds. */
const DRAIN_CHECK_MS = 10;
/**
 * How long readiness waits for first versions of policies. Then the server is ready with the loaded ones, and answers
 * 503 for the others, so that an unavailable source of one policy does not block all others. Shorter than usual
 * timeouts of rollouts and probes; a pod loads its policies in seconds. Milliseconds.
 */
const READY_WAIT_MS = 10_000;
/** Requests that are kept, and where they are offered. */
interface RecordingOptions {
  /** The last ones of each policy. At most MAX_RECORDED_REQUESTS. */
  readonly most: number;
  /** Path of a socket, in a folder of its own. */
  readonly socket: string;
}

/** Options of a {@link PolicyServer}. */
export interface PolicyServerOptions {
  /** Path of policies.yml, which is watched. Either this or `replica`. */
  readonly policiesFile?: string;
  /** Files that are read in the place of `policiesFile`, which then is only their name. Default: none. */
  readonly policyManifests?: PolicyManifests;
  /** Serves the PolicyRevisions of a cluster instead. Default: none. */
  readonly replica?: ClusterPoliciesOptions;
  /** Folder of the module cache and the records; created when missing. */
  readonly dataDir: string;
  /** Address of the admission port. Default: 127.0.0.1. */
  readonly host?: string;
  /** Admission port; 0 for a free one. */
  readonly port: number;
  /** Address of the operations port. Default: the admission port's. */
  readonly operationsHost?: string;
  /** Operations port (plain HTTP); 0 for a free one. */
  readonly operationsPort: number;
  /** Certificate files, which are watched. Default: plain HTTP. */
  readonly tls?: TlsFiles;
  /** Evaluation threads. Default: that of the evaluation host. */
  readonly workers?: number;
  /** Default: DEFAULT_TIMEOUT_SECONDS of src/engine. */
  readonly policyTimeoutSeconds?: number;
  /**
   * Maximum memory of a guest in bytes. Default: DEFAULT_MEMORY_LIMIT_BYTES of src/modules, less where the process may use
   * little.
   */
  readonly memoryLimitBytes?: number;
  /** Memory that policies may hold, in bytes. Default: a part of the memory limit of the process. */
  readonly policyMemoryBytes?: number;
  /** Configuration of sources. Default: none. */
  readonly sources?: SourcesConfig;
  /** What modules must be signed by. Default: signatures are not verified. */
  readonly verification?: Verification;
  /** For keyless signatures of images that policies verify. Default: none, so that those cannot be verified. */
  readonly trustRoot?: TrustRoot;
  /** The cluster that context-aware policies read. Default: none, so that every read fails. */
  readonly cluster?: ClusterSource;
  /** Largest module of a policy of the cluster, in bytes; at most LARGEST_MODULE_BYTES. Default: that of the module store. */
  readonly maxModuleBytes?: number;
  /** Timeout of one module download in milliseconds. Default: that of the module store. */
  readonly fetchTimeoutMs?: number;
  /** Default: see {@link ClientTimeouts}. */
  readonly clientTimeouts?: ClientTimeouts;
  /** Requests for objects of this namespace are always allowed. Default: none. */
  readonly alwaysAcceptNamespace?: string;
  /** How long readiness waits for first versions, in milliseconds. Default: {@link READY_WAIT_MS}. */
  readonly readyWaitMs?: number;
  /** Default: {@link DEFAULT_DRAIN_MS}. */
  readonly drainMs?: number;
  /**
   * How long a stopping server continues to serve while not ready, until its clients have noticed. Connections end with
   * their next answer. Milliseconds. Default: 0.
   */
  readonly shutdownDelayMs?: number;
  /** Namespaces with a label of their own in the metrics of evaluations; with more, or 0, none has one. Default: 200. */
  readonly labelledNamespaces?: number;
  /** Keeps requests without secrets in memory. Default: none. */
  readonly recording?: RecordingOptions;
  /** Registry for metrics; `/metrics` shows all metrics in it. Default: a new one. */
  readonly registry?: Registry;
  /** Called when the status of a policy changes, or the policy was removed. */
  readonly onStatusChange?: (policy: string) => void;
  readonly log: Logger;
}

/** The addresses of a running server. */
export interface Addresses {
  /** Base URL of the admission port. */
  readonly admission: string;
  /** Base URL of the operations port. */
  readonly operations: string;
}

/** A server of admission policies. */
export class PolicyServer {
  readonly #options: PolicyServerOptions;
  readonly #log: Logger;
  readonly #registry: Registry;
  readonly #metrics: ServerMetrics;
  readonly #monitoredLog: MonitoredLog;
  readonly #recorder: RequestRecorder | undefined;
  #offer: AsyncDisposable | undefined;
  readonly #evaluation: EvaluationHost;
  readonly #pool: WorkerPool;
  readonly #host: PolicyHost;
  /** Set when the server starts. */
  #policies: PolicySource | undefined;
  #replica: ClusterPolicies | undefined;
  #admission: Server | SecureServer | undefined;
  #operations: RoutedServer | undefined;
  #tls: AdmissionServer['tls'];
  readonly #cacheDir: string;
  #listening: Promise<Addresses> | undefined;
  #hasStarted = false;
  #stopping: Promise<void> | undefined;

  constructor(options: PolicyServerOptions) {
    const { policiesFile } = options;
    if ((policiesFile === undefined) === (options.replica === undefined)) {
      throw new TypeError('a policy server has its policies from a file or from a cluster: expected one of the two');
    }
    this.#options = options;
    this.#registry = options.registry ?? new Registry();
    this.#cacheDir = join(options.dataDir, 'modules');
    this.#log = options.log;
    this.#monitoredLog = new MonitoredLog(options.log);
    this.#recorder = options.recording && new RequestRecorder(options.recording.most);
    const log = (entry: LogEntry): void => this.#log[entry.level](entry.fields, entry.message);
    this.#evaluation = new EvaluationHost({
      ...options,
      cacheDir: this.#cacheDir,
      baseDir: policiesFile === undefined ? undefined : dirname(resolve(policiesFile)),
      defaultTimeoutSeconds: options.policyTimeoutSeconds,
      recordFolder: options.dataDir,
      hasBuckets: options.replica !== undefined,
      tenantFolder: options.replica?.modulesUrl && fileURLToPath(options.replica.modulesUrl),
      peers: () => this.#replica?.peerAccess,
      modules: () => this.#policies?.modules() ?? [],
      log,
      onTimeout: (policy) => {
        this.#metrics.timedOut(policy);
        this.#log.warn({ policy }, 'policy was cut off');
      },
      onRestart: (reason) => this.#metrics.restarted(reason),
      onApplyFailure: (id, message) => this.#policies?.activationFailed(id, message),
      find: async (object) =>
        (await this.#policies?.find(object)) ?? { state: 'unreadable', reason: 'the server has not started' },
    });
    const { loader, pool } = this.#evaluation;
    this.#pool = pool;
    this.#metrics = new ServerMetrics(
      {
        waiting: () => this.#pool.waiting,
        held: () => this.#pool.held,
        slowOwners: () => this.#pool.slowOwners,
        endingThreads: () => this.#pool.endingThreads,
        phases: () => this.#policies?.phases() ?? [],
        memory: () => this.#evaluation.memory,
      },
      { registry: this.#registry, labelledNamespaces: options.labelledNamespaces },
    );
    this.#host = {
      loader,
      accountMemory: (ownerOf) => this.#evaluation.accountMemory(ownerOf),
      record: new ServingRecord(options.dataDir, log),
      dataDir: options.dataDir,
      readyWaitMs: options.readyWaitMs ?? READY_WAIT_MS,
      log: options.log,
      publish: (change, staged) => this.#evaluation.publish(change, staged),
      publishWatched: (change) => this.#evaluation.publishWatched(change),
      phaseChanged: (id, change) => this.#phaseChanged(id, change),
      changeEnded: (result) => this.#metrics.reloaded(result),
      reloadTook: (ms) => this.#metrics.reloadTook(ms),
    };
    this.#policies =
      policiesFile === undefined ? undefined : new FilePolicies(policiesFile, this.#host, options.policyManifests);
  }

  /**
   * Starts listening, then loads the policies. Resolves when every policy has served or failed once, at most
   * `readyWaitMs` after loading began, or when the server is stopped.
   * @throws HttpsError 'port-busy', 'tls-invalid'.
   */
  async start(): Promise<Addresses> {
    try {
      await this.#offerRecorded();
      this.#listening = this.#listen();
      const addresses = await this.#listening;
      if (!this.#isStopping()) {
        await this.#evaluation.start();
      }
      if (!this.#isStopping()) {
        this.#policies ??= await this.#becomeReplica();
      }
      if (!this.#isStopping()) {
        await this.#policies?.start();
      }
      this.#hasStarted = true;
      return addresses;
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  async #offerRecorded(): Promise<void> {
    const { recording } = this.#options;
    const recorder = this.#recorder;
    if (recording !== undefined && recorder !== undefined) {
      this.#offer = await offerRequests(recording.socket, () => recorder.list());
    }
  }

  /** The status of all policies. */
  policies(): PoliciesAnswer {
    const answer = this.#policies?.policiesAnswer() ?? {
      source: { path: '', loadedAt: null, error: null },
      policies: [],
    };
    const { memory } = this.#evaluation;
    return { ...answer, memory: { budgetBytes: memory.budget.bytes, bytes: memory.bytes, owners: memory.owners() } };
  }

  /** The status of one policy; undefined when it is not declared. */
  policy(id: string): ServedPolicyStatus | undefined {
    return this.#policies?.status(id);
  }

  /**
   * Reads the policies file and the certificates now, and retries failures. Resolves when everything that this started
   * has served or failed, at most `readyWaitMs` later.
   */
  async reload(): Promise<void> {
    await Promise.all([this.#policies?.check(), this.#tls?.check()]);
    this.#policies?.retryNow();
    await this.#policies?.settledInTime();
  }

  /**
   * Tries a policy without serving it: fetches and pins its modules, compiles them, and lets it check its settings.
   * Only in a replica of a cluster. Rejects with the signal's reason, and when the server stops.
   */
  async prevalidate(request: PrevalidationRequest, signal?: AbortSignal): Promise<PrevalidationResult> {
    if (this.#replica === undefined || this.#stopping !== undefined) {
      throw new RequestRefusal(503, 'the policy server is not running as a replica: expected one that has started');
    }
    return await this.#replica.prevalidate(request, signal);
  }

  /** Imported on demand: a server for a policies file does not load the code that follows clusters. */
  async #becomeReplica(): Promise<PolicySource> {
    const { replica } = this.#options;
    if (replica === undefined) {
      throw new TypeError('expected options of a replica');
    }
    const { ClusterPolicies } = await import('./replica/cluster-policies.ts');
    this.#replica = new ClusterPolicies(replica, this.#cacheDir, this.#host);
    return this.#replica;
  }

  /** Becomes unready; after a delay accepts no new connections, answers pending reviews, and ends its threads. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  #isStopping(): boolean {
    return this.#stopping !== undefined;
  }

  async #stop(): Promise<void> {
    // A port that is not open yet cannot be closed.
    await this.#listening?.catch(() => undefined);
    this.#tls?.stop();
    // Changes are applied and reported as long as reviews are answered.
    if (this.#admission !== undefined) {
      // A server that was never ready has no clients.
      await sleep(this.#hasStarted ? (this.#options.shutdownDelayMs ?? 0) : 0);
      await this.#drain(this.#admission);
    }
    await this.#policies?.stop();
    await this.#evaluation[Symbol.asyncDispose]();
    await this.#policies?.close();
    await this.#operations?.stop();
    await this.#offer?.[Symbol.asyncDispose]();
  }

  /** Closes the port at once, and each connection after its current request. */
  async #drain(admission: Server): Promise<void> {
    let isClosed = false;
    admission.close(() => (isClosed = true));
    const end = performance.now() + (this.#options.drainMs ?? DEFAULT_DRAIN_MS);
    let quietSince = performance.now();
    while (!isClosed && performance.now() < Math.min(end, quietSince + LAST_BYTES_MS)) {
      admission.closeIdleConnections();
      await sleep(DRAIN_CHECK_MS);
      quietSince = this.#pool.held > 0 ? performance.now() : quietSince;
    }
    admission.closeAllConnections();
  }

  #notReady(): string | undefined {
    if (this.#stopping !== undefined) {
      return 'stopping';
    }
    return this.#policies === undefined ? 'policies are being loaded' : this.#policies.notReady();
  }

  async #listen(): Promise<Addresses> {
    const host = this.#options.host ?? '127.0.0.1';
    const handler = admissionHandler(this.#pool, {
      reviewed: (route, answer, status, body) => {
        this.#reviewed(route, answer, status);
        this.#record(route, answer, status, body);
      },
      refused: (status, message) => {
        this.#metrics.refused(status);
        this.#log.debug({ status, reason: message }, 'request refused');
      },
      isLoading: (policy) => this.#policies?.isLoading(policy) ?? true,
      buckets: () => this.#policies?.buckets() ?? (this.#options.replica === undefined ? 'none' : 'unknown'),
    });
    // The answer closes the connection, so that the client connects elsewhere; a reset connection would be retried
    // here.
    const admitUnlessStopping: typeof handler = (request, response) => {
      if (this.#stopping !== undefined) {
        closeAfter(response);
      }
      handler(request, response);
    };
    const { tls, clientTimeouts: timeouts } = this.#options;
    const created = await createAdmissionServer({
      handler: admitUnlessStopping,
      tls,
      timeouts,
      connectionClosed: (state) => this.#metrics.connectionClosed(state),
      log: this.#log,
    });
    this.#admission = created.server;
    this.#tls = created.tls;
    this.#operations = new RoutedServer({
      name: 'operations',
      host: this.#options.operationsHost ?? host,
      port: this.#options.operationsPort,
      routes: operationsRoutes({
        notReady: () => this.#notReady(),
        metrics: new MetricsEndpoint([{ registry: this.#registry }]),
        policies: () => this.policies(),
      }),
    });
    const port = await listen(this.#admission, this.#options.port, host);
    return {
      admission: `${this.#options.tls === undefined ? 'http' : 'https'}://${hostText(host)}:${port}`,
      operations: await this.#operations.start(),
    };
  }

  #phaseChanged(policy: string, change: PhaseChange | undefined): void {
    if (change === undefined) {
      this.#metrics.removePolicy(policy);
      this.#monitoredLog.forget(policy);
      this.#log.info({ policy }, 'policy removed');
    } else if (change.phase === 'Active') {
      this.#log.debug({ policy }, 'policy serves');
    } else if (change.phase === 'Error' || change.phase === 'Degraded') {
      const { phase, reason, message: detail, nextRetry } = change;
      const retry = nextRetry === undefined ? {} : { nextRetry: nextRetry.toISOString() };
      this.#log.warn({ policy, phase, reason, detail, ...retry }, 'policy version failed');
    }
    this.#options.onStatusChange?.(policy);
  }

  #record(route: ReviewRoute, { observed }: PoolAnswer, status: number, body: Uint8Array): void {
    if (this.#recorder !== undefined && status === 200 && route !== 'validate_raw') {
      const policies = new Set(observed.map(({ observation }) => observation.policy));
      this.#recorder.record(body, [...policies]);
    }
  }

  #reviewed(route: ReviewRoute, { observed, monitored = [], uses, totalMs }: PoolAnswer, status: number): void {
    // A removed policy gets no new series.
    const counted = observed.filter(({ observation }) => this.#pool.knows(observation.policy));
    this.#metrics.reviewed(route, counted, totalMs);
    for (const verdict of monitored) {
      if (this.#pool.knows(verdict.policy)) {
        this.#monitoredLog.write(verdict);
        this.#policies?.monitored(verdict);
      }
    }
    if (uses !== undefined) {
      this.#policies?.excepted(uses);
    }
    if (status !== 200) {
      this.#metrics.refused(status);
    }
  }
}

function closeAfter(response: ServerResponse): void {
  response.setHeader('connection', 'close');
}
