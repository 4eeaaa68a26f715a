// `portcullis controller`: rolls policies of a cluster out to its policy servers.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { type Connection, connectionAs, KubernetesCluster } from '../../cluster/index.ts';
import {
  assembleController,
  certificateFiles,
  controllerService,
  type ManagedOptions,
  productIdentities,
  serviceAccountUser,
  type WebhookOptions,
} from '../../controller/index.ts';
import { ensureCertificates, type WebhookTarget } from '../../lifecycle/index.ts';
import { CONTROLLER_FIELD_MANAGER } from '../../resources/index.ts';
import { controlledCluster } from '../../runtime/index.ts';
import type { ControlTls } from '../../control/index.ts';
import { createLog } from '../../log/index.ts';
import { MetricsEndpoint } from '../../metrics/index.ts';
import { connectionOf, controlTlsOf, folderUrl } from '../daemon-flags.ts';
import { fileProblem, readWholeFileSync } from '../../files/index.ts';
import { CliError } from '../errors.ts';
import { endThreads } from '../../threads/index.ts';
import { stopSignal } from '../signals.ts';
import { report } from '../supervised.ts';
import {
  controllerCommandWithFlags,
  type ControllerFlags,
  remoteServers,
  rolloutSettings,
  type WebhookFlags,
  webhookFlags,
} from './controller-flags.ts';
import { copySettings } from './copies-flags.ts';
import { electionTimes, leaderElection } from './leader-election.ts';
import { operationsServer } from '../operations-server.ts';
import { readServerSources } from '../module/read-sources.ts';
import { readVerification } from '../module/read-verification.ts';
import { governanceSettings } from './governance-flags.ts';
import { managedSettings } from './managed-flags.ts';
import { catalogueLoader } from './network-policy-flags.ts';
import { untilAnswered } from './until-answered.ts';
import { usernameIn } from './username.ts';

/** The Lease of leader election. */
const LEASE = 'portcullis-controller';

export function controllerCommand(): Command {
  return controllerCommandWithFlags().action(controller);
}

async function controller(flags: ControllerFlags): Promise<void> {
  const settings = rolloutSettings(flags);
  const times = electionTimes(flags);
  const servers = await policyServers(flags);
  const copies = copySettings(flags);
  const governing = governanceSettings(flags, flags.namespace);
  const connection = await connectionOf(flags);
  const stopped = stopSignal(['SIGINT', 'SIGTERM']);
  const stop = new AbortController();
  void stopped.then(() => stop.abort());
  const log = createLog({ level: flags.logLevel, format: flags.logFmt, color: process.stdout.isTTY });
  // Stops what already runs when the rest fails to start.
  await using running = new AsyncDisposableStack();
  running.defer(endThreads);
  const cluster = running.use(new KubernetesCluster(connection, { fieldManager: CONTROLLER_FIELD_MANAGER }));
  const controlled = controlledCluster({ cluster, log });
  let notReady = (): string | undefined => 'the API server has not answered yet';
  const pages = new MetricsEndpoint([controlled]);
  const operations = operationsServer(flags, pages, () => notReady());
  running.defer(() => operations.stop());
  const address = await operations.start();
  const { exemptNamespaces, namespace } = flags;
  const user = await usernameIn(cluster, log, stop.signal);
  const governance =
    governing === undefined
      ? undefined
      : { settings: governing, governed: running.use(governedCluster(connection, flags)) };
  const { managed } = servers;
  if (managed?.certificates === 'own') {
    // The webhook and the connections to policy servers need certificates also before this process leads.
    const options = { cluster, namespace, settings: managed.lifetimes, log };
    await untilAnswered(() => ensureCertificates(options, stop.signal), log, stop.signal);
  }
  const {
    runtime,
    ready,
    working,
    webhook: checks,
  } = assembleController({
    controlled,
    settings,
    namespace,
    exemptNamespaces,
    isExemptGuarded: flags.exemptGuard,
    tls: servers.tls,
    copies,
    servers: servers.managed ?? servers.target,
    identities: [...new Set([...(isServiceAccount(user) ? [user] : []), ...productIdentities(namespace)])],
    ...(flags.leaderElect
      ? {
          elector: leaderElection(running, {
            connection,
            fieldManager: CONTROLLER_FIELD_MANAGER,
            times,
            namespace,
            name: LEASE,
            log,
            metrics: controlled.metrics,
          }),
        }
      : {}),
    ...(servers.webhook === undefined ? {} : { webhook: { ...servers.webhook, controllerUser: user } }),
    ...(governance === undefined ? {} : { governance }),
    isAudited: flags.auditor,
    networkPolicyStatus: flags.networkPolicyStatus,
    networkPolicyAnnotation: flags.networkPolicyAnnotation,
    networkPolicyCatalogue: catalogueLoader(flags, {
      sources: () => readServerSources(flags),
      verification: async () => (await readVerification(flags)).verification,
      log,
    }),
  });
  notReady = () => runtime.notReady();
  const ended = runtime.run(stop.signal);
  ready
    .then(async () => {
      const url = await checks?.url;
      log.info({ operations: address, ...(url === undefined ? {} : { webhook: url }) }, 'controller ready');
      await working;
      report({ ready: { operations: address } });
    })
    // The failure ends the runtime, which reports it.
    .catch(() => undefined);
  log.info({ signal: await Promise.race([stopped, ended]) }, 'stopping');
  await ended;
  log.info('stopped');
}

/** The cluster as the governance account, whose groups API servers add. The rights of policies are those of this account. */
function governedCluster(
  connection: Connection,
  { namespace, governanceAccount }: Pick<ControllerFlags, 'namespace' | 'governanceAccount'>,
): KubernetesCluster {
  const user = serviceAccountUser(namespace, governanceAccount);
  return new KubernetesCluster(connectionAs(connection, { user }), { fieldManager: CONTROLLER_FIELD_MANAGER });
}

/** Only service accounts become exempt from policies: a controller may run with the kubeconfig of a user. */
function isServiceAccount(user: string): boolean {
  return user.startsWith('system:serviceaccount:');
}

/** Policy servers and certificates, by the flags. */
type PolicyServers = {
  /** For control connections. */
  readonly tls: ControlTls;
  /** The webhook for our own kinds, before the controller's username is known. */
  readonly webhook: Omit<WebhookOptions, 'controllerUser'> | undefined;
} & (
  | { readonly managed: ManagedOptions }
  | { readonly managed?: never; readonly target: (policyServer: string) => WebhookTarget }
);

/** @throws CliError */
async function policyServers(flags: ControllerFlags): Promise<PolicyServers> {
  const managed = managedSettings(flags);
  const webhook = webhookFlags(flags, managed !== undefined);
  if (managed === undefined) {
    return {
      tls: controlTlsOf(flags),
      target: webhookTarget(flags),
      webhook: webhook && remoteWebhook(webhook, await namespacedRules(flags)),
    };
  }
  const certificatesDir = managed.certificatesDir ?? mkdtempSync(join(tmpdir(), 'portcullis-certificates-'));
  const { control: tls, webhook: files } = certificateFiles(certificatesDir);
  const { namespace } = flags;
  return {
    tls,
    managed: { ...managed, certificatesDir },
    webhook: webhook && {
      host: webhook.host,
      port: webhook.port,
      tls: { ...files, clientCaFiles: webhook.clientCaFiles },
      apiServers: webhook.apiServers,
      ...(webhook.url === undefined ? { service: controllerService(namespace) } : { url: webhook.url }),
    },
  };
}

function remoteWebhook(
  { host, port, url, files, clientCaFiles, apiServers }: WebhookFlags,
  rules: Partial<WebhookOptions>,
): Omit<WebhookOptions, 'controllerUser'> | undefined {
  return (
    files && { ...rules, host, port, url, tls: { ...files, clientCaFiles }, apiServers, ca: readPem(files.caFile) }
  );
}

/** What policies of namespaces may use of policy servers with the same flags; unknown without them. */
async function namespacedRules(flags: ControllerFlags): Promise<Partial<WebhookOptions>> {
  const { modulesDir, namespacedPoliciesCapabilities: capabilities, sourcesPath } = flags;
  const sources = sourcesPath === undefined ? undefined : await readServerSources(flags);
  return {
    ...(modulesDir === undefined ? {} : { modulesUrl: folderUrl(modulesDir) }),
    ...(capabilities === undefined ? {} : { tenantCapabilities: () => capabilities }),
    ...(sources === undefined
      ? {}
      : { tenantHosts: () => sources.tenantHosts, tenantModules: () => sources.tenantModules }),
  };
}

/** The CA file is read for each call: certificates are renewed while the controller runs. */
function webhookTarget(flags: ControllerFlags): (policyServer: string) => WebhookTarget {
  const { urlOf, caFile } = remoteServers(flags);
  readPem(caFile);
  return (policyServer) => ({ url: urlOf(policyServer), ca: readPem(caFile) });
}

function readPem(file: string): string {
  try {
    return readWholeFileSync(file).toString('utf8');
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${fileProblem(error)}`, { cause: error });
  }
}
