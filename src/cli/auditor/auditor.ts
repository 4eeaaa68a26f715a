// `portcullis auditor`: knows at any time which existing objects of a cluster its policies would reject.
import { resolve } from 'node:path';
import type { Command } from 'commander';
import {
  Auditor,
  AuditorExceptions,
  AuditStatusController,
  logFindings,
  LookedUpObjects,
  MatchedStatusController,
  REPORT_LABELS,
  ReportWriter,
  RevisionPreviews,
  StatusFindings,
  unreadAnnotation,
} from '../../audit/index.ts';
import { KubernetesCluster } from '../../cluster/index.ts';
import { CLUSTER_OWNER, EvaluationHost } from '../../evaluation/index.ts';
import { createLog, type Logger } from '../../log/index.ts';
import { MetricsEndpoint } from '../../metrics/index.ts';
import { AUDITOR_FIELD_MANAGER, namespaceOfPolicyId, REPORT_FORMATS } from '../../resources/index.ts';
import { aborted, controlledCluster, Runtime, SharedCaches } from '../../runtime/index.ts';
import { endThreads, runInBackground } from '../../threads/index.ts';
import { connectionOf, folderUrl, policyCluster } from '../daemon-flags.ts';
import { electionTimes, leaderElection } from '../controller/leader-election.ts';
import { readServerSources } from '../module/read-sources.ts';
import { readVerification } from '../module/read-verification.ts';
import { operationsServer } from '../operations-server.ts';
import { stopSignal } from '../signals.ts';
import { report } from '../supervised.ts';
import { auditorCommandWithFlags, type AuditorFlags } from './auditor-flags.ts';

/** The Lease of leader election. */
const LEASE = 'portcullis-auditor';
/** Of an auditor that waits for nobody: its Lease only shows that it works. Milliseconds. */
const PRESENCE_TIMES = { leaseDurationMs: 60_000, renewDeadlineMs: 50_000, retryPeriodMs: 20_000 } as const;

export function auditorCommand(): Command {
  return auditorCommandWithFlags().action(auditor);
}

async function auditor(flags: AuditorFlags): Promise<void> {
  // Before anything that takes time: until then a signal ends the process.
  const stopped = stopSignal(['SIGINT', 'SIGTERM']);
  const stop = new AbortController();
  void stopped.then(() => stop.abort());
  // Threads that start later inherit it.
  runInBackground(process.pid);
  const times = electionTimes(flags);
  const connection = await connectionOf(flags);
  const log = createLog({ level: flags.logLevel, format: flags.logFmt, color: process.stdout.isTTY });
  // Stops what already runs when the rest fails to start.
  await using running = new AsyncDisposableStack();
  running.defer(endThreads);
  const cluster = running.use(new KubernetesCluster(connection, { fieldManager: AUDITOR_FIELD_MANAGER }));
  const controlled = controlledCluster({ cluster, log });
  const lookups = new LookedUpObjects();
  const host = running.use(await startedHost(flags, { cluster, log, workers: flags.workers, lookups }));
  const { namespace, exemptNamespaces, modulesDir, namespacedPoliciesCapabilities: tenantCapabilities } = flags;
  const exceptions = new AuditorExceptions({ cluster, host, log });
  const installation = {
    productNamespace: namespace,
    exemptNamespaces,
    ...(modulesDir === undefined ? {} : { modulesUrl: folderUrl(modulesDir) }),
    ...(tenantCapabilities === undefined ? {} : { tenantCapabilities }),
  };
  const includesSecrets = flags.includeSecrets === true;
  const audit = new Auditor({
    controlled,
    host,
    lookups,
    exceptions,
    installation,
    includesSecrets,
    atOnce: flags.workers,
  });
  const previews = new RevisionPreviews({
    ...controlled,
    installation,
    includesSecrets,
    startHost: () => startedHost(flags, { cluster, log, workers: 1 }),
  });
  logFindings(audit, log);
  const exceptionCaches = new SharedCaches(controlled);
  const statuses = new StatusFindings(controlled);
  const format = REPORT_FORMATS[flags.reports === 'served' ? 'openreports' : flags.reports];
  const reports = new ReportWriter({ ...controlled, findings: [audit, statuses], format });
  const { metrics } = controlled;
  const elector = leaderElection(running, {
    connection,
    fieldManager: AUDITOR_FIELD_MANAGER,
    times: flags.leaderElect ? times : PRESENCE_TIMES,
    namespace,
    name: LEASE,
    labels: REPORT_LABELS,
    annotations: () => unreadAnnotation(audit.unreadKinds()),
    log,
    metrics,
  });
  const runtime = new Runtime({ log, ...(flags.leaderElect ? { elector } : {}) })
    .add('cache', controlled.caches, exceptions)
    .add('leader', audit, statuses, reports, previews, new AuditStatusController({ ...controlled, audited: audit }))
    // Without `ready`: an older installation does not serve the kind.
    .add('cache', { name: 'exception caches', start: (signal) => exceptionCaches.start(signal) })
    .add('leader', new MatchedStatusController({ ...controlled, caches: exceptionCaches, audited: audit }));
  if (!flags.leaderElect) {
    // Shows controllers that an auditor works.
    runtime.add('leader', { name: 'presence', start: (signal) => elector.run(signal, aborted) });
  }
  const pages = new MetricsEndpoint([controlled]);
  const operations = operationsServer(flags, pages, () => runtime.notReady());
  running.defer(() => operations.stop());
  const address = await operations.start();
  const ended = runtime.run(stop.signal);
  log.info({ operations: address }, 'auditor ready');
  report({ ready: { operations: address } });
  log.info({ signal: await Promise.race([stopped, ended]) }, 'stopping');
  await ended;
  log.info('stopped');
}

interface HostParts {
  readonly cluster: KubernetesCluster;
  readonly log: Logger;
  readonly workers: number;
  /** Told what policies look up. */
  readonly lookups?: LookedUpObjects;
}

async function startedHost(
  flags: AuditorFlags,
  { cluster, log, workers, lookups }: HostParts,
): Promise<EvaluationHost> {
  const { policyMemory, modulesDir } = flags;
  const source = policyCluster(flags);
  const host = new EvaluationHost({
    cacheDir: resolve(flags.policiesDownloadDir),
    workers,
    ...(policyMemory === undefined ? {} : { policyMemoryBytes: policyMemory * 2 ** 20 }),
    ...(modulesDir === undefined ? {} : { tenantFolder: resolve(modulesDir) }),
    sources: await readServerSources(flags),
    ...(await readVerification(flags)),
    ...(source === undefined ? {} : { cluster: source }),
    lookups: { cluster, log, ...(lookups === undefined ? {} : { onChange: (change) => lookups.apply(change) }) },
    log: ({ level, message, fields }) => log[level](fields, message),
  });
  host.accountMemory((id) => namespaceOfPolicyId(id) ?? CLUSTER_OWNER);
  await host.start();
  return host;
}
