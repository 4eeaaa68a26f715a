// The policy server, the controller and the auditor of `start`, which need a cluster.
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Cluster, KubernetesCluster, loadKubeconfig, unlessGone } from '../../cluster/index.ts';
import { maxModuleMebibytes, tenantCapabilities } from '../../lifecycle/grants/index.ts';
import { POLICY_SERVERS } from '../../resources/index.ts';
import type { ServedPolicyStatus } from '../../server/index.ts';
import { parseJson } from '../../values/index.ts';
import type { Facts } from '../supervised.ts';
import { credentialFiles, writeAddress } from './data-folder.ts';
import { greeting } from './greeting.ts';
import { policiesSettled } from './policies-settled.ts';
import { policyTable } from './policy-table.ts';
import {
  auditorRole,
  controllerRole,
  type Granted,
  POLICY_SERVER,
  policyServerRole,
  type RoleOptions,
} from './roles.ts';
import type { Supervisor } from './supervisor.ts';

interface StartedCluster {
  readonly url: string;
  /** Whether the cluster was empty. */
  readonly isNew: boolean;
}

/**
 * Starts policy server and controller, and prints the greeting when all policies have loaded or failed; then the auditor, which
 * nobody waits for.
 * @throws CliError
 */
export async function startPolicyRoles(
  supervisor: Supervisor,
  options: RoleOptions,
  { url, isNew }: StartedCluster,
): Promise<void> {
  const { flags, dataDir } = options;
  const kubeconfig = credentialFiles(dataDir).user;
  using cluster = new KubernetesCluster((await loadKubeconfig({ paths: [kubeconfig], env: {} })).connection);
  const granted = await grantedBy(cluster);
  const [server, controller] = await Promise.all([
    supervisor.start(policyServerRole(options, granted)),
    supervisor.start(controllerRole(options, granted)),
  ]);
  await policiesSettled(cluster, supervisor.signal);
  const admission = (server['admission'] ?? '').replace('127.0.0.1', 'localhost');
  writeAddress(dataDir, admission);
  const policies = await policiesOf(server);
  process.stdout.write(
    `\n${policyTable(policies)}\n\n${greeting({
      url,
      kubeconfig,
      isNew,
      admission,
      operations: server['operations'] ?? '',
      controllerOperations: controller['operations'] ?? '',
      auditorOperations: flags.auditor ? `http://127.0.0.1:${options.ports.auditorOperations}` : undefined,
      dataDir,
      certificates: options.certificates,
      withExamples: flags.examples === true,
      policies: policies.length,
      governanceRoles: flags.governance ? flags.governanceRole : undefined,
    })}`,
  );
  if (flags.auditor) {
    await supervisor.start(auditorRole(options, granted));
  }
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
  // `fetch` loads a client of its own.
  const [answer] = (await once(get(`${operations}/policies`), 'response')) as [IncomingMessage];
  // An answer of our own.
  const { policies } = parseJson(await text(answer)) as { readonly policies: readonly ServedPolicyStatus[] };
  return policies;
}
