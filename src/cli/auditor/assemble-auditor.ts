// The parts of an auditor.
import {
  type AuditedInstallation,
  Auditor,
  AuditorExceptions,
  AuditStatusController,
  logFindings,
  LookedUpObjects,
  MatchedStatusController,
  onOneAuditor,
  ReportWriter,
  RevisionPreviews,
  StatusFindings,
  SummedAudit,
  unreadAnnotation,
  WHOLE_CLUSTER,
} from '../../audit/index.ts';
import { type Connection, KubernetesCluster } from '../../cluster/index.ts';
import type { Logger } from '../../log/index.ts';
import { AUDITOR_FIELD_MANAGER, REPORT_FORMATS } from '../../resources/index.ts';
import { type ControlledCluster, controlledCluster, Runtime, SharedCaches } from '../../runtime/index.ts';
import { folderUrl } from '../daemon-flags.ts';
import type { AuditorFlags } from './auditor-flags.ts';
import { startedHost } from './auditor-host.ts';
import { auditorMembers } from './auditor-members.ts';

/** @param running ends what has to end after the runtime */
export async function assembleAuditor(
  running: AsyncDisposableStack,
  flags: AuditorFlags,
  connection: Connection,
  log: Logger,
): Promise<{ readonly controlled: ControlledCluster; readonly runtime: Runtime }> {
  const cluster = running.use(new KubernetesCluster(connection, { fieldManager: AUDITOR_FIELD_MANAGER }));
  const controlled = controlledCluster({ cluster, log });
  const members = auditorMembers(running, flags, connection, controlled);
  const share = flags.leaderElect ? members : WHOLE_CLUSTER;
  const lookups = new LookedUpObjects();
  const host = running.use(await startedHost(flags, { cluster, log, workers: flags.workers, lookups }));
  const exceptions = new AuditorExceptions({ cluster, host, log });
  const installation = auditedInstallation(flags);
  const includesSecrets = flags.includeSecrets === true;
  const atOnce = flags.workers;
  const judged = { controlled, host, lookups, exceptions, share, installation, includesSecrets, atOnce };
  const audit = new Auditor(judged);
  logFindings(audit, log);
  const previews = new RevisionPreviews({
    ...controlled,
    installation,
    includesSecrets,
    startHost: () => startedHost(flags, { cluster, log, workers: 1 }),
  });
  const exceptionCaches = new SharedCaches(controlled);
  const statuses = new StatusFindings(controlled);
  const format = REPORT_FORMATS[flags.reports === 'served' ? 'openreports' : flags.reports];
  const reports = new ReportWriter({ ...controlled, findings: [audit, statuses], share, format });
  const summed = new SummedAudit(audit, members);
  const audited = flags.leaderElect ? summed : audit;
  members.annotations = () => ({
    ...(flags.leaderElect ? summed.annotations() : {}),
    ...unreadAnnotation(audit.unreadKinds()),
  });
  const runtime = new Runtime({ log })
    .add('cache', controlled.caches, exceptions)
    // It ends after all that writes. Without a share its Lease only shows that this one works.
    .add(flags.leaderElect ? 'server' : 'leader', members)
    .add('leader', audit, statuses, reports, new AuditStatusController({ ...controlled, audited }))
    // Without `ready`: an older installation does not serve the kind.
    .add('cache', { name: 'exception caches', start: (signal) => exceptionCaches.start(signal) })
    .add('leader', new MatchedStatusController({ ...controlled, caches: exceptionCaches, audited: audit, share }))
    .add('leader', onOneAuditor(share, previews));
  return { controlled, runtime };
}

function auditedInstallation({
  namespace,
  exemptNamespaces,
  modulesDir,
  namespacedPoliciesCapabilities: tenantCapabilities,
}: AuditorFlags): AuditedInstallation {
  return {
    productNamespace: namespace,
    exemptNamespaces,
    ...(modulesDir === undefined ? {} : { modulesUrl: folderUrl(modulesDir) }),
    ...(tenantCapabilities === undefined ? {} : { tenantCapabilities }),
  };
}
