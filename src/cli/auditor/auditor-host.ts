// The evaluation host of an auditor.
import { resolve } from 'node:path';
import type { LookedUpObjects } from '../../audit/index.ts';
import type { KubernetesCluster } from '../../cluster/index.ts';
import { CLUSTER_OWNER, EvaluationHost } from '../../evaluation/index.ts';
import type { Logger } from '../../log/index.ts';
import { namespaceOfPolicyId } from '../../resources/index.ts';
import { policyCluster } from '../daemon-flags.ts';
import { readServerSources } from '../module/read-sources.ts';
import { readVerification } from '../module/read-verification.ts';
import type { AuditorFlags } from './auditor-flags.ts';

interface HostParts {
  readonly cluster: KubernetesCluster;
  readonly log: Logger;
  readonly workers: number;
  /** Told what policies look up. */
  readonly lookups?: LookedUpObjects;
}

export async function startedHost(
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
