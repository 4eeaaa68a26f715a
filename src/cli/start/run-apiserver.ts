// The API server of `start`, with the objects that `start` puts into its cluster.
import type { EmbeddedCluster } from '../../apiserver/index.ts';
import type { LocalCertificates } from '../../control/certificates/index.ts';
import { POLICY_SERVERS } from '../../resources/index.ts';
import { stopSignal } from '../signals.ts';
import { report } from '../supervised.ts';
import { grantAccess, grantGovernance } from './access.ts';
import { applyObject } from './apply-object.ts';
import {
  EXISTING_OBJECTS_EXAMPLE,
  GOVERNANCE_EXAMPLE,
  NETWORK_POLICY_EXAMPLE,
  POLICY_EXAMPLE_FILES,
} from './examples-folder.ts';
import { installationGuard } from './installation-guard.ts';
import { type LocalCluster, startLocalCluster } from './local-cluster.ts';
import { POLICY_SERVER } from './roles.ts';
import { startLog } from './start-log.ts';

/** The flags of `portcullis apiserver`. */
export interface ApiserverFlags {
  readonly dataDir: string;
  readonly port: number;
  readonly examples?: true;
  readonly governance: boolean;
  readonly governanceRole: readonly string[];
  readonly networkPolicyStatusSubresource: boolean;
}

/** Runs until its supervisor stops it. */
export async function runApiserver(flags: ApiserverFlags, certificates: LocalCertificates): Promise<void> {
  const stopped = stopSignal();
  // Stops what already runs when the rest fails to start.
  await using running = new AsyncDisposableStack();
  const local = await startLocalCluster({
    dataDir: flags.dataDir,
    certificates,
    port: flags.port,
    networkPolicyStatus: flags.networkPolicyStatusSubresource,
    guard: installationGuard(),
    log: startLog(),
  });
  running.defer(() => local.stop());
  await grantAccess(local.cluster);
  await grantGovernance(local.cluster, flags.governance ? flags.governanceRole : undefined);
  await furnish(local, flags);
  report({ ready: { cluster: local.url, isNew: String(local.isNew) } });
  await stopped;
}

/** Creates the PolicyServer if it is missing, and in a new cluster the examples if the flag is set. */
async function furnish({ cluster, isNew }: LocalCluster, { examples, governance }: ApiserverFlags): Promise<void> {
  if (cluster.state.get(POLICY_SERVERS, undefined, POLICY_SERVER) === undefined) {
    await applyObject(cluster, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name: POLICY_SERVER },
      // Unused: `start` runs the replica.
      spec: { image: 'portcullis', replicas: 1 },
    });
  }
  if (examples === true && isNew) {
    await applyExamples(cluster, governance);
  }
}

async function applyExamples(cluster: EmbeddedCluster, withGovernance: boolean): Promise<void> {
  // Loaded lazily: most starts add no examples.
  const { readObjects } = await import('../cluster/apply-files.ts');
  const files = [
    ...POLICY_EXAMPLE_FILES,
    EXISTING_OBJECTS_EXAMPLE,
    NETWORK_POLICY_EXAMPLE,
    ...(withGovernance ? [GOVERNANCE_EXAMPLE] : []),
  ];
  for (const object of await readObjects(files, false)) {
    await applyObject(cluster, object);
  }
}
