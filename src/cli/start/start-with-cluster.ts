// `portcullis start`: an API server, the controller of its policies and a policy server, each in a process of its own.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, KubernetesCluster, listAll, loadKubeconfig, unlessGone } from '../../cluster/index.ts';
import type { LocalCertificates } from '../../control/index.ts';
import { maxModuleMebibytes, tenantCapabilities } from '../../lifecycle/index.ts';
import { sourcesText } from '../../modules/index.ts';
import { type AdmissionPolicyObject, POLICY_KINDS, POLICY_SERVERS } from '../../resources/index.ts';
import type { ServedPolicyStatus } from '../../server/index.ts';
import { governanceSettings } from '../controller/governance-flags.ts';
import { readVerification } from '../module/read-verification.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';
import { stopSignal } from '../signals.ts';
import type { Facts } from '../supervised.ts';
import { credentialFiles, forgetTokens, writeAddress, writeSources } from './data-folder.ts';
import { EXAMPLES } from './examples-folder.ts';
import { freePorts } from './free-ports.ts';
import { greeting } from './greeting.ts';
import {
  apiserverRole,
  controllerRole,
  type Granted,
  POLICY_SERVER,
  policyServerRole,
  type RoleOptions,
  type StartPorts,
} from './roles.ts';
import { policyTable, startLog } from './start-server.ts';
import type { StartFlags } from './start-flags.ts';
import { startSources } from './start-sources.ts';
import { Supervisor } from './supervisor.ts';

/** How long the first table waits for the next change of a policy. Milliseconds. */
const FIRST_TABLE_MS = 10_000;
/** Interval of that check. Milliseconds. */
const POLL_MS = 100;

/** Runs until a signal stops it. */
export async function startWithCluster(
  flags: StartFlags,
  dataDir: string,
  certificates: LocalCertificates,
): Promise<void> {
  const stopped = stopSignal();
  const options = await roleOptions(flags, dataDir, certificates);
  await using supervisor = new Supervisor(startLog());
  await Promise.race([stopped, startRoles(supervisor, options)]);
  await stopped;
  process.stdout.write('\nStopping…\n');
}

/** Reads the files of the flags, so that mistakes in them end `start`. @throws CliError, ModuleError */
async function roleOptions(flags: StartFlags, dataDir: string, certificates: LocalCertificates): Promise<RoleOptions> {
  const sources = await startSources(flags);
  await readVerification(flags);
  governanceSettings(flags, PRODUCT_NAMESPACE);
  forgetTokens(dataDir);
  return {
    flags,
    dataDir,
    certificates,
    ports: await startPorts(flags),
    modulesDir: flags.examples === true ? EXAMPLES : process.cwd(),
    sourcesFile: writeSources(dataDir, sourcesText(sources)),
  };
}

async function startPorts({ clusterPort, port, operationsPort }: StartFlags): Promise<StartPorts> {
  const next = operationsPort === 0 ? 0 : operationsPort + 1;
  const [cluster = 0, admission = 0, operations = 0, controllerOperations = 0] = await freePorts([
    clusterPort,
    port,
    operationsPort,
    next,
  ]);
  return { cluster, admission, operations, controllerOperations };
}

/** Starts the processes, and prints the greeting when all policies have loaded or failed. @throws CliError */
async function startRoles(supervisor: Supervisor, options: RoleOptions): Promise<void> {
  const { flags, dataDir } = options;
  const { cluster: url = '', isNew } = await supervisor.start(apiserverRole(options));
  const kubeconfig = credentialFiles(dataDir).user;
  using cluster = new KubernetesCluster((await loadKubeconfig({ paths: [kubeconfig], env: {} })).connection);
  const granted = await grantedBy(cluster);
  const [server, controller] = await Promise.all([
    supervisor.start(policyServerRole(options, granted)),
    supervisor.start(controllerRole(options, granted)),
  ]);
  await settled(cluster);
  const admission = (server['admission'] ?? '').replace('127.0.0.1', 'localhost');
  writeAddress(dataDir, admission);
  const policies = await policiesOf(server);
  process.stdout.write(
    `\n${policyTable(policies)}\n\n${greeting({
      url,
      kubeconfig,
      isNew: isNew === 'true',
      admission,
      operations: server['operations'] ?? '',
      controllerOperations: controller['operations'] ?? '',
      dataDir,
      certificates: options.certificates,
      withExamples: flags.examples === true,
      policies: policies.length,
      governanceRoles: flags.governance ? flags.governanceRole : undefined,
    })}`,
  );
}

/** What the PolicyServer grants when the processes start. */
async function grantedBy(cluster: Cluster): Promise<Granted> {
  const server = await unlessGone(cluster.get(POLICY_SERVERS, { name: POLICY_SERVER }));
  if (server === undefined) {
    return { capabilities: [], maxModuleSize: undefined };
  }
  return { capabilities: tenantCapabilities(server), maxModuleSize: maxModuleMebibytes(server) };
}

/** The policies that a policy server knows. */
async function policiesOf({ operations = '' }: Facts): Promise<readonly ServedPolicyStatus[]> {
  // An answer of our own.
  const { policies } = (await (await fetch(`${operations}/policies`)).json()) as {
    readonly policies: readonly ServedPolicyStatus[];
  };
  return policies;
}

/** Waits until every policy of the policy server has loaded or failed, or none has changed for {@link FIRST_TABLE_MS}. */
async function settled(cluster: Cluster): Promise<void> {
  let seen: string | undefined;
  let changedAt = performance.now();
  for (;;) {
    const policies = await policiesToServe(cluster);
    const versions = policies.map(({ metadata }) => metadata.resourceVersion).join();
    if (versions !== seen) {
      seen = versions;
      changedAt = performance.now();
    }
    if (policies.every(hasSettled) || performance.now() - changedAt > FIRST_TABLE_MS) {
      return;
    }
    await sleep(POLL_MS);
  }
}

async function policiesToServe(cluster: Cluster): Promise<readonly AdmissionPolicyObject[]> {
  const lists = await Promise.all(POLICY_KINDS.map((kind) => listAll(cluster, kind)));
  return lists.flatMap(({ items }) => items).filter(({ spec }) => spec.policyServer === POLICY_SERVER);
}

function hasSettled({ metadata, status }: AdmissionPolicyObject): boolean {
  const { phase = 'Pending', desiredRevision = 0, observedGeneration = 0 } = status ?? {};
  const isUnderWay = phase === 'Pending' || phase === 'Updating';
  return !isUnderWay && desiredRevision > 0 && observedGeneration >= (metadata.generation ?? 0);
}
