// `portcullis start`: an embedded cluster, the controller of its policies, and a replica of its policy server.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { GovernanceSettings } from '../../governance/index.ts';
import type { LoadCatalogue, ProjectionOptions } from '../../network-policy/index.ts';
import {
  DEFAULT_ROLLOUT_SETTINGS,
  maxModuleMebibytes,
  type RolloutSettings,
  tenantCapabilities,
} from '../../lifecycle/index.ts';
import {
  type AdmissionPolicyObject,
  CONTROLLER_FIELD_MANAGER,
  POLICY_KINDS,
  POLICY_SERVERS,
  type PolicyServerObject,
} from '../../resources/index.ts';
import { controlledCluster } from '../../runtime/index.ts';
import type { ControlTls, LocalCertificates } from '../../control/index.ts';
import type { Logger } from '../../log/index.ts';
import type { ClusterPoliciesOptions } from '../../server/index.ts';
import { readObjects } from '../cluster/apply-files.ts';
import { type AssembledController, assembleController } from '../../controller/index.ts';
import { readVerification } from '../module/read-verification.ts';
import { governanceSettings } from '../controller/governance-flags.ts';
import { catalogueLoader } from '../controller/network-policy-flags.ts';
import { failingPolicies } from '../controller/failing-policies-flags.ts';
import { writeAddress } from './data-folder.ts';
import { EXAMPLES, GOVERNANCE_EXAMPLE, NETWORK_POLICY_EXAMPLE, POLICY_EXAMPLE_FILES } from './examples-folder.ts';
import { applyObject, type LocalCluster, startLocalCluster } from './local-cluster.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';
import { stopSignal } from '../signals.ts';
import { CONTROLLER_USER, GOVERNANCE_USER, grantAccess, grantGovernance, REPLICA_USER } from './access.ts';
import { installationGuard } from './installation-guard.ts';
import { greeting } from './greeting.ts';
import { policyTable, type StartedServer, startLog, startServer } from './start-server.ts';
import type { StartFlags } from './start-flags.ts';
import { startSources } from './start-sources.ts';

/** The only PolicyServer and its only replica: no other process opens the file of the cluster. */
const POLICY_SERVER = 'default';
const REPLICA = 'local';
/** The host of connections within this process. */
const HOST = '127.0.0.1';
/** How long the first table waits for the next policy to load or fail. Milliseconds. */
const FIRST_TABLE_MS = 10_000;
/** Interval of that check. Milliseconds. */
const POLL_MS = 10;

/** Runs until a signal stops it. */
export async function startWithCluster(
  flags: StartFlags,
  dataDir: string,
  certificates: LocalCertificates,
): Promise<void> {
  const stopped = stopSignal();
  const sources = await startSources(flags);
  const { verification, trustRoot } = await readVerification(flags);
  // Stops what already runs when the rest fails to start.
  await using running = new AsyncDisposableStack();
  const log = startLog();
  const subresource = flags.networkPolicyStatusSubresource === true;
  const local = await startLocalCluster({
    dataDir,
    certificates,
    port: flags.clusterPort,
    networkPolicyStatus: subresource,
    guard: installationGuard(),
    log,
  });
  running.defer(() => local.stop());
  const governance = governanceSettings(flags, PRODUCT_NAMESPACE);
  const networkPolicyProjection = { annotation: flags.networkPolicyAnnotation, subresource };
  await grantAccess(local.cluster, networkPolicyProjection);
  const governanceRoles = governance === undefined ? undefined : flags.governanceRole;
  await grantGovernance(local.cluster, governanceRoles ?? []);
  const parts = {
    local,
    certificates,
    log,
    modulesUrl: modulesUrl(flags),
    tenantHosts: sources.tenantHosts,
    tenantModules: sources.tenantModules,
    tenantCapabilities: capabilitiesOf(local),
    failing: failingPolicies(flags),
    governance,
    networkPolicyStatus: flags.networkPolicyStatus,
    networkPolicyProjection,
    networkPolicyCatalogue: catalogueLoader(flags, {
      sources: () => Promise.resolve(sources),
      verification: () => Promise.resolve(verification),
      log,
    }),
  };
  const started = await startServer(flags, certificates, {
    replica: replicaOptions(parts),
    dataDir,
    cluster: { kind: 'kubeconfig', file: local.kubeconfig, env: process.env },
    sources,
    ...maxModuleSizeOf(local),
    ...(verification === undefined ? {} : { verification }),
    ...(trustRoot === undefined ? {} : { trustRoot }),
    log,
  });
  running.defer(() => started.server.stop());
  const controller = localController(parts, started);
  const stop = new AbortController();
  const ended = controller.runtime.run(stop.signal);
  running.defer(async () => {
    stop.abort();
    await ended;
  });
  await Promise.race([controller.working, ended]);
  await furnish(local, flags.examples === true, governance !== undefined);
  await settled(local);
  writeAddress(dataDir, started.admission);
  const { policies } = started.server.policies();
  process.stdout.write(
    `\n${policyTable(policies)}\n\n${greeting({ ...local, ...started, dataDir, certificates, withExamples: flags.examples === true, policies: policies.length, governanceRoles })}`,
  );
  await Promise.race([stopped, ended]);
  process.stdout.write('\nStopping…\n');
}

interface Parts {
  readonly local: LocalCluster;
  readonly certificates: LocalCertificates;
  readonly log: Logger;
  /** The base of `file://./…` references. */
  readonly modulesUrl: URL;
  /** Hosts that policies of namespaces may have modules from, whatever their addresses. */
  readonly tenantHosts: readonly string[];
  readonly tenantModules: readonly string[] | undefined;
  /** The host capabilities of policies of namespaces until the process ends. */
  readonly tenantCapabilities: readonly string[];
  readonly failing: Pick<RolloutSettings, 'degraded' | 'unserved'>;
  /** Undefined: off. */
  readonly governance: GovernanceSettings | undefined;
  readonly networkPolicyStatus: boolean;
  readonly networkPolicyProjection: ProjectionOptions;
  readonly networkPolicyCatalogue: LoadCatalogue | undefined;
}

/** What the PolicyServer grants when the process starts. */
function capabilitiesOf(local: LocalCluster): readonly string[] {
  const server = policyServerOf(local);
  return server === undefined ? [] : tenantCapabilities(server);
}

/** The largest module that the PolicyServer allows when the process starts. */
function maxModuleSizeOf(local: LocalCluster): { readonly maxModuleBytes?: number } {
  const server = policyServerOf(local);
  const mebibytes = server === undefined ? undefined : maxModuleMebibytes(server);
  return mebibytes === undefined ? {} : { maxModuleBytes: mebibytes * 2 ** 20 };
}

function policyServerOf({ cluster }: LocalCluster): PolicyServerObject | undefined {
  // Validated by the schema of the kind.
  return cluster.state.get(POLICY_SERVERS, undefined, POLICY_SERVER) as PolicyServerObject | undefined;
}

function modulesUrl({ examples }: StartFlags): URL {
  return pathToFileURL(examples === true ? EXAMPLES : `${process.cwd()}/`);
}

function controlTls({ controlCertFile, controlKeyFile, caFile }: LocalCertificates): ControlTls {
  return { certFile: controlCertFile, keyFile: controlKeyFile, caFile };
}

function replicaOptions({
  local,
  certificates,
  modulesUrl: folder,
  tenantCapabilities: granted,
}: Parts): ClusterPoliciesOptions {
  return {
    cluster: local.cluster.as(REPLICA_USER, { fieldManager: 'portcullis-policy-server' }),
    // Policies read with the kubeconfig, as the administrator.
    policyCluster: local.cluster.admin,
    namespace: PRODUCT_NAMESPACE,
    policyServer: POLICY_SERVER,
    name: REPLICA,
    control: { host: HOST, port: 0, tls: controlTls(certificates) },
    modulesUrl: folder,
    namespacedPoliciesCapabilities: granted,
  };
}

function localController(
  {
    local,
    certificates,
    log,
    modulesUrl: folder,
    tenantHosts,
    tenantModules,
    tenantCapabilities: granted,
    failing,
    governance,
    networkPolicyStatus,
    networkPolicyProjection,
    networkPolicyCatalogue,
  }: Parts,
  { admission, registry }: StartedServer,
): AssembledController {
  const ca = readFileSync(certificates.caFile, 'utf8');
  return assembleController({
    controlled: controlledCluster({
      cluster: local.cluster.as(CONTROLLER_USER, { fieldManager: CONTROLLER_FIELD_MANAGER }),
      registry,
      log,
    }),
    namespace: PRODUCT_NAMESPACE,
    settings: { ...DEFAULT_ROLLOUT_SETTINGS, ...failing },
    tls: controlTls(certificates),
    copies: 'durable',
    servers: () => ({ url: admission, ca }),
    identities: [CONTROLLER_USER.username, REPLICA_USER.username],
    webhook: {
      host: HOST,
      port: 0,
      tls: {
        certFile: certificates.certFile,
        keyFile: certificates.keyFile,
        clientCaFiles: [certificates.caFile],
      },
      ca,
      controllerUser: CONTROLLER_USER.username,
      modulesUrl: folder,
      tenantHosts: () => tenantHosts,
      tenantModules: () => tenantModules,
      tenantCapabilities: () => granted,
    },
    ...(governance === undefined
      ? {}
      : {
          governance: {
            settings: governance,
            governed: local.cluster.as(GOVERNANCE_USER, { fieldManager: CONTROLLER_FIELD_MANAGER }),
          },
        }),
    networkPolicyStatus,
    networkPolicyProjection,
    networkPolicyCatalogue,
  });
}

/** Creates the PolicyServer if it is missing, and in a new cluster the examples if the flag is set. */
async function furnish({ cluster, isNew }: LocalCluster, withExamples: boolean, hasGovernance: boolean): Promise<void> {
  if (cluster.state.get(POLICY_SERVERS, undefined, POLICY_SERVER) === undefined) {
    await applyObject(cluster, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name: POLICY_SERVER },
      // Unused: this process is the replica.
      spec: { image: 'portcullis', replicas: 1 },
    });
  }
  if (withExamples && isNew) {
    const files = [...POLICY_EXAMPLE_FILES, NETWORK_POLICY_EXAMPLE, ...(hasGovernance ? [GOVERNANCE_EXAMPLE] : [])];
    for (const object of await readObjects(files, false)) {
      await applyObject(cluster, object);
    }
  }
}

/** Waits until every policy of the policy server has loaded or failed, or none has for {@link FIRST_TABLE_MS}. */
async function settled({ cluster }: LocalCluster): Promise<void> {
  const unsettled = (): number =>
    POLICY_KINDS.flatMap((kind) =>
      // Validated by the schema of the kind.
      ([...cluster.state.list(kind)] as AdmissionPolicyObject[]).filter(
        (policy) => policy.spec.policyServer === POLICY_SERVER && !hasSettled(policy),
      ),
    ).length;
  let fewest = Infinity;
  let progressAt = performance.now();
  for (let left = unsettled(); left > 0 && performance.now() - progressAt < FIRST_TABLE_MS; left = unsettled()) {
    if (left < fewest) {
      fewest = left;
      progressAt = performance.now();
    }
    await sleep(POLL_MS);
  }
}

function hasSettled({ metadata, status }: AdmissionPolicyObject): boolean {
  const { phase = 'Pending', desiredRevision = 0, observedGeneration = 0 } = status ?? {};
  const isUnderWay = phase === 'Pending' || phase === 'Updating';
  return !isUnderWay && desiredRevision > 0 && observedGeneration >= (metadata.generation ?? 0);
}
